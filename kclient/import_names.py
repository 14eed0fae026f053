"""Names that programs import from `kclient` and that are elsewhere, or have another name here."""

from collections.abc import Mapping

from kclient.common.foreign_names import missing_import

_PRODUCER = "use kclient.Producer"
_CONSUMER = "use kclient.Consumer"
_ADMIN = "use kclient.AdminClient"
_CALLBACKS = "use on_assigned=, on_revoked= and on_lost= of Consumer.subscribe()"

_ELSEWHERE = {
    "kclient.admin": (
        "AclBinding", "AclBindingFilter", "AclOperation", "AclPermissionType", "AlterConfigOp",
        "AlterConfigOpType", "ClientQuotaEntity", "ConfigEntry", "ConfigResource",
        "ConfigResourceType", "ConfigSource", "ElectionType", "FeatureUpdate", "OffsetSpec",
        "PatternType", "ResourcePattern", "ResourceType", "ScramCredentialInfo",
        "TopicPartitionReplica", "UserScramCredentialDeletion", "UserScramCredentialUpsertion",
    ),
    "kclient.consumer": ("ConsumerGroupMetadata", "ConsumerRecords"),
    "kclient.journey": ("Journey",),
    "kclient.transactions": ("TransactionalLoop",),
    "kclient.producer": ("BatchDelivery", "DeliveryFuture", "ProducerRecord"),
    "kclient.serialization": (
        "Deserializer", "Serializer", "json_deserializer", "json_serializer",
        "string_deserializer", "string_serializer",
    ),
    "kclient.testing": ("EmbeddedCluster", "FaultProxy"),
}  # fmt: skip

IMPORT_NAMES: Mapping[str, str] = {
    "AIOKafkaAdminClient": "use kclient.aio.AdminClient",
    "AIOKafkaClient": "use kclient.aio.AdminClient",
    "AIOKafkaConsumer": "use kclient.aio.Consumer",
    "AIOKafkaProducer": "use kclient.aio.Producer",
    "AIOConsumer": "use kclient.aio.Consumer",
    "AIOProducer": "use kclient.aio.Producer",
    "AvroConsumer": f"{_CONSUMER}, with value_deserializer=",
    "AvroProducer": f"{_PRODUCER}, with value_serializer=",
    "ConsumerRebalanceListener": _CALLBACKS,
    "DeserializingConsumer": f"{_CONSUMER}, with key_deserializer= and value_deserializer=",
    "KafkaAdminClient": _ADMIN,
    "KafkaClient": f"{_ADMIN}, kclient.Producer or kclient.Consumer",
    "KafkaConsumer": _CONSUMER,
    "KafkaException": "use KafkaError of kclient.errors",
    "KafkaProducer": _PRODUCER,
    "Message": "use kclient.ConsumerRecord",
    "NewPartitions": "use AdminClient.create_partitions() with the total numbers",
    "SerializingProducer": f"{_PRODUCER}, with key_serializer= and value_serializer=",
    "libversion": "use kclient.__version__",
    "version": "use kclient.__version__",
    **{name: f"import it from {module}" for module, names in _ELSEWHERE.items() for name in names},
}
"""What to import instead, by the names of other clients and of other modules."""


def missing(name: str) -> ImportError | AttributeError:
    """Return the error for a name that `kclient` does not have."""
    hints = IMPORT_NAMES
    if name.endswith("Error") and name not in hints:
        from kclient import errors  # noqa: PLC0415 (it imports all errors of the clients)

        if hasattr(errors, name):
            hints = {name: "import it from kclient.errors"}
    return missing_import("kclient", name, hints)
