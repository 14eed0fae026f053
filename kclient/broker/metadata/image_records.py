"""Records that make an image: the content of a snapshot (Kafka: MetadataImage.write)."""

from collections.abc import Iterator

from kclient.broker.metadata.metadata_image import (
    MIGRATING_DIRECTORY,
    BrokerRegistration,
    ControllerRegistration,
    MetadataImage,
    PartitionRegistration,
)
from kclient.broker.metadata.metadata_version import (
    METADATA_VERSION,
    MetadataVersion,
    finalized_version,
)
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    BrokerEndpoint,
    BrokerFeature,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)


def encoded_records(image: MetadataImage) -> Iterator[bytes]:
    """Yield the values of an image's records, in the versions of its metadata.version.

    Raises:
        UnsupportedVersionError: The image has a value that its metadata.version does not have.
    """
    version = finalized_version(image.features)
    for record in image_records(image):
        yield version.encode(record)


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records that make an image from an empty one, in the order of Kafka's snapshots."""
    version = finalized_version(image.features)
    yield from _features(image)
    for broker in image.brokers.values():
        yield _broker(broker, version)
    for controller in image.controllers.values():
        yield _controller(controller)
    yield from _topics(image)
    yield from _configs(image)
    yield from _client_quotas(image)
    if image.next_producer_id:
        yield ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from _acls(image)
    yield from _scram(image)
    yield from _delegation_tokens(image)


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the levels, metadata.version first: readers decode the rest by it."""
    for name in sorted(image.features, key=lambda each: (each != METADATA_VERSION, each)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    if image.zk_migration_state:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)


def _broker(broker: BrokerRegistration, version: MetadataVersion) -> MetadataRecord:
    cordoned = list(broker.cordoned_directories)
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=cordoned if cordoned or version.has_cordoned_directories else None,
    )


def _controller(controller: ControllerRegistration) -> MetadataRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            ControllerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in controller.endpoints
        ],
        features=[
            ControllerFeature(
                name=name, min_supported_version=lowest, max_supported_version=highest
            )
            for name, (lowest, highest) in controller.features.items()
        ],
    )


def _topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    has_directories = finalized_version(image.features).has_directories
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for number, partition in enumerate(topic.partitions):
            yield partition_record(
                topic.topic_id, number, partition, has_directories=has_directories
            )


def partition_record(
    topic_id: bytes, number: int, partition: PartitionRegistration, *, has_directories: bool = True
) -> PartitionRecord:
    """Return the record that makes a partition (Kafka: PartitionRegistration.toRecord).

    Args:
        topic_id: Id of the topic.
        number: Number of the partition.
        partition: The partition.
        has_directories: Whether the level of metadata.version has directory ids; if not, the
            record is refused when it is encoded, unless the replicas have none.
    """
    omits = not has_directories and set(partition.directories) <= {MIGRATING_DIRECTORY}
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=[] if omits else list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def _configs(image: MetadataImage) -> Iterator[MetadataRecord]:
    for (kind, name), settings in image.configs.items():
        for key, value in settings.items():
            yield ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def _client_quotas(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, quotas in image.client_quotas.items():
        for key, value in quotas.items():
            parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=value)


def _acls(image: MetadataImage) -> Iterator[MetadataRecord]:
    for acl_id, acl in image.acls.items():
        yield AccessControlEntryRecord(id=acl_id, **acl._asdict())


def _scram(image: MetadataImage) -> Iterator[MetadataRecord]:
    for (mechanism, user), credential in image.scram.items():
        yield UserScramCredentialRecord(name=user, mechanism=mechanism, **credential._asdict())


def _delegation_tokens(image: MetadataImage) -> Iterator[MetadataRecord]:
    for token_id, token in image.delegation_tokens.items():
        yield DelegationTokenRecord(
            owner=token.owner,
            requester=token.requester,
            renewers=list(token.renewers),
            issue_timestamp=token.issue_timestamp,
            max_timestamp=token.max_timestamp,
            expiration_timestamp=token.expiration_timestamp,
            token_id=token_id,
        )
