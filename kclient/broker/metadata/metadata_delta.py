"""Changes between two metadata images."""

from collections.abc import Callable
from typing import Any

from kclient.broker.metadata.metadata_image import (
    TOPIC_RESOURCE,
    UNASSIGNED_DIRECTORY,
    BrokerRegistration,
    ConfigResource,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.common.errors import KafkaError
from kclient.network.endpoint import Endpoint, SecurityProtocol
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

_NO_LEADER_CHANGE = -2
_FENCED_CHANGE = {1: True, -1: False}


class MetadataDelta:
    """An image with records replayed onto it (Kafka: MetadataDelta).

    Attributes:
        created_topics: Names of created topics.
        deleted_topics: Deleted topics; a topic created again has another id.
        changed_topics: Names of topics whose partitions changed.
        changed_configs: Resources whose settings changed.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.created_topics: dict[str, None] = {}
        self.deleted_topics: list[TopicImage] = []
        self.changed_topics: dict[str, None] = {}
        self.changed_configs: dict[ConfigResource, None] = {}
        self._topics = dict(image.topics)
        # Partitions of changed topics, as lists until `apply`: a topic may have thousands.
        self._partitions: dict[str, list[PartitionRegistration]] = {}
        self._topic_names = dict(image.topic_names)
        self._configs = dict(image.configs)
        self._brokers = dict(image.brokers)
        self._features = dict(image.features)
        self._next_producer_id = image.next_producer_id
        self._actions: dict[type[MetadataRecord], Callable[[Any], None]] = {
            TopicRecord: self._topic_record,
            PartitionRecord: self._partition_record,
            PartitionChangeRecord: self._partition_change,
            RemoveTopicRecord: self._remove_topic,
            ConfigRecord: self._config_record,
            RegisterBrokerRecord: self._register_broker,
            BrokerRegistrationChangeRecord: self._broker_change,
            UnregisterBrokerRecord: self._unregister_broker,
            FeatureLevelRecord: self._feature_level,
            ProducerIdsRecord: self._producer_ids,
        }

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record; record types that this broker does not use are ignored.

        Raises:
            KafkaError: The record refers to an object that does not exist.
        """
        action = self._actions.get(type(record))
        if action is not None:
            action(record)

    def apply(self, offset: int) -> MetadataImage:
        """Return the image with the changes applied.

        Args:
            offset: Offset of the last record replayed.
        """
        for name, partitions in self._partitions.items():
            self._topics[name] = self._topics[name]._replace(partitions=tuple(partitions))
        self._partitions.clear()
        return MetadataImage(
            offset=offset,
            topics=self._topics,
            topic_names=self._topic_names,
            configs=self._configs,
            brokers=self._brokers,
            features=self._features,
            next_producer_id=self._next_producer_id,
        )

    def _topic(self, topic_id: bytes) -> TopicImage:
        name = self._topic_names.get(topic_id)
        if name is None:
            raise KafkaError(f"metadata log: topic id {topic_id.hex()} is unknown")
        return self._topics[name]

    def _topic_record(self, record: TopicRecord) -> None:
        if record.name in self._topics or record.topic_id in self._topic_names:
            raise KafkaError(f"metadata log: topic {record.name!r:.80} or its id exists already")
        self._topics[record.name] = TopicImage(record.name, record.topic_id, ())
        self._topic_names[record.topic_id] = record.name
        self.created_topics[record.name] = None

    def _partition_record(self, record: PartitionRecord) -> None:
        topic = self._topic(record.topic_id)
        registration = PartitionRegistration(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=tuple(record.directories),
        )
        self._set_partition(topic, record.partition_id, registration)

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        partitions = self._partitions_of(topic)
        if not 0 <= record.partition_id < len(partitions):
            raise KafkaError(f"metadata log: {topic.name}-{record.partition_id} does not exist")
        old = partitions[record.partition_id]
        leader_moved = record.leader != _NO_LEADER_CHANGE
        registration = PartitionRegistration(
            replicas=old.replicas if record.replicas is None else tuple(record.replicas),
            isr=old.isr if record.isr is None else tuple(record.isr),
            leader=record.leader if leader_moved else old.leader,
            leader_epoch=old.leader_epoch + leader_moved,
            partition_epoch=old.partition_epoch + 1,
            directories=(
                old.directories if record.directories is None else tuple(record.directories)
            ),
        )
        self._set_partition(topic, record.partition_id, registration)

    def _set_partition(
        self, topic: TopicImage, number: int, registration: PartitionRegistration
    ) -> None:
        partitions = self._partitions_of(topic)
        if not 0 <= number <= len(partitions):
            raise KafkaError(f"metadata log: {topic.name}-{number} is out of order")
        partitions[number : number + 1] = [registration]
        if topic.name not in self.created_topics:
            self.changed_topics[topic.name] = None

    def _partitions_of(self, topic: TopicImage) -> list[PartitionRegistration]:
        partitions = self._partitions.get(topic.name)
        if partitions is None:
            partitions = self._partitions[topic.name] = list(topic.partitions)
        return partitions

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._topic(record.topic_id)
        partitions = self._partitions.pop(topic.name, None)
        if partitions is not None:
            topic = topic._replace(partitions=tuple(partitions))
        del self._topics[topic.name]
        del self._topic_names[topic.topic_id]
        self._configs.pop((TOPIC_RESOURCE, topic.name), None)
        self.created_topics.pop(topic.name, None)
        self.changed_topics.pop(topic.name, None)
        self.deleted_topics.append(topic)

    def _config_record(self, record: ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        settings = dict(self._configs.get(resource, {}))
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        self._configs[resource] = settings
        self.changed_configs[resource] = None

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self._brokers[record.broker_id] = BrokerRegistration(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(_endpoint(each) for each in record.end_points),
            rack=record.rack,
            fenced=record.fenced,
            directory_id=record.log_dirs[0] if record.log_dirs else UNASSIGNED_DIRECTORY,
        )

    def _broker_change(self, record: BrokerRegistrationChangeRecord) -> None:
        old = self._brokers.get(record.broker_id)
        if old is None:
            raise KafkaError(f"metadata log: broker {record.broker_id} is not registered")
        fenced = _FENCED_CHANGE.get(record.fenced, old.fenced)
        self._brokers[record.broker_id] = old._replace(fenced=fenced)

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._brokers.pop(record.broker_id, None)

    def _feature_level(self, record: FeatureLevelRecord) -> None:
        self._features[record.name] = record.feature_level
        if not record.feature_level:
            del self._features[record.name]

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id


def _endpoint(registered: BrokerEndpoint) -> Endpoint:
    try:
        protocol = SecurityProtocol(registered.security_protocol)
    except ValueError:
        raise KafkaError(
            f"metadata log: listener {registered.name!r:.80} has the unknown security protocol "
            f"{registered.security_protocol}"
        ) from None
    return Endpoint(registered.name, registered.host, registered.port, protocol)
