"""Replay of records of topics and partitions."""

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import (
    MIGRATING_DIRECTORY,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.metadata.shared_mapping import SharedMapping
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1


class TopicsDelta:
    """Topics with records replayed onto them (Kafka: TopicsDelta).

    Attributes:
        topics: Topics by name; their partitions are those before the change until `freeze`.
        topic_names: Topic names by id.
    """

    def __init__(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self._changes = changes
        self.topics: SharedMapping[str, TopicImage] = SharedMapping(image.topics)
        self.topic_names: SharedMapping[bytes, str] = SharedMapping(image.topic_names)
        # Partitions of changed topics, as lists until `freeze`: a topic may have thousands.
        self._partitions: dict[str, list[PartitionRegistration]] = {}

    def freeze(self) -> None:
        """Put the changed partitions into the topics."""
        for name, partitions in self._partitions.items():
            topic = self.topics.current[name]
            self.topics.set(name, topic._replace(partitions=tuple(partitions)))
        self._partitions.clear()

    def add_topic(self, record: TopicRecord) -> None:
        """Add a topic without partitions."""
        if record.name in self.topics or record.topic_id in self.topic_names:
            raise KafkaError(f"metadata log: topic {record.name!r:.80} or its id exists already")
        self.topics.set(record.name, TopicImage(record.name, record.topic_id, ()))
        self.topic_names.set(record.topic_id, record.name)
        self._changes.created_topics[record.name] = None

    def add_partition(self, record: PartitionRecord) -> None:
        """Add a partition, or replace it."""
        directories = record.directories or [MIGRATING_DIRECTORY] * len(record.replicas)
        self._check_directories(record.partition_id, record.replicas, directories)
        registration = PartitionRegistration(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=tuple(directories),
            removing=tuple(record.removing_replicas),
            adding=tuple(record.adding_replicas),
            recovery_state=record.leader_recovery_state,
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )
        self._set_partition(self._topic(record.topic_id), record.partition_id, registration)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        """Change a partition (Kafka: PartitionRegistration.merge)."""
        topic = self._topic(record.topic_id)
        partitions = self._partitions_of(topic)
        if not 0 <= record.partition_id < len(partitions):
            raise KafkaError(f"metadata log: {topic.name}-{record.partition_id} does not exist")
        old = partitions[record.partition_id]
        leads = record.leader != _NO_LEADER_CHANGE
        recovers = record.leader_recovery_state != _NO_RECOVERY_CHANGE
        registration = PartitionRegistration(
            replicas=_either(record.replicas, old.replicas),
            isr=_either(record.isr, old.isr),
            leader=record.leader if leads else old.leader,
            leader_epoch=old.leader_epoch + leads,
            partition_epoch=old.partition_epoch + 1,
            directories=_changed_directories(record, old),
            removing=_either(record.removing_replicas, old.removing),
            adding=_either(record.adding_replicas, old.adding),
            recovery_state=record.leader_recovery_state if recovers else old.recovery_state,
            elr=_either(record.eligible_leader_replicas, old.elr),
            last_known_elr=_either(record.last_known_elr, old.last_known_elr),
        )
        if record.directories is not None:
            self._check_directories(
                record.partition_id, registration.replicas, registration.directories
            )
        self._set_partition(topic, record.partition_id, registration)

    def remove_topic(self, record: RemoveTopicRecord) -> TopicImage:
        """Remove a topic, and return its last state."""
        topic = self._topic(record.topic_id)
        partitions = self._partitions.pop(topic.name, None)
        if partitions is not None:
            topic = topic._replace(partitions=tuple(partitions))
        self.topics.remove(topic.name)
        self.topic_names.remove(topic.topic_id)
        self._changes.note_topic_deleted(topic)
        return topic

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas of a topic or, if its name is empty, of all."""
        if record.topic_name and record.topic_name not in self.topics:
            raise KafkaError(f"metadata log: topic {record.topic_name!r:.80} does not exist")
        for name in (record.topic_name,) if record.topic_name else tuple(self.topics.current):
            topic = self.topics.current[name]
            for number, old in enumerate(self._partitions.get(name, topic.partitions)):
                if old.elr or old.last_known_elr:
                    self._set_partition(topic, number, old._replace(elr=(), last_known_elr=()))

    def _topic(self, topic_id: bytes) -> TopicImage:
        name = self.topic_names.get(topic_id)
        if name is None:
            raise KafkaError(f"metadata log: topic id {topic_id.hex()} is unknown")
        return self.topics.current[name]

    def _set_partition(
        self, topic: TopicImage, number: int, registration: PartitionRegistration
    ) -> None:
        partitions = self._partitions_of(topic)
        if not 0 <= number <= len(partitions):
            raise KafkaError(f"metadata log: {topic.name}-{number} is out of order")
        partitions[number : number + 1] = [registration]
        self._changes.note_partition_changed(topic.name, number)

    def _partitions_of(self, topic: TopicImage) -> list[PartitionRegistration]:
        partitions = self._partitions.get(topic.name)
        if partitions is None:
            partitions = self._partitions[topic.name] = list(topic.partitions)
        return partitions

    @staticmethod
    def _check_directories(
        number: int,
        replicas: list[int] | tuple[int, ...],
        directories: list[bytes] | tuple[bytes, ...],
    ) -> None:
        if len(directories) != len(replicas):
            raise KafkaError(
                f"metadata log: partition {number} has {len(replicas)} replicas in "
                f"{len(directories)} directories"
            )


def _either(changed: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if changed is None else tuple(changed)


def _changed_directories(
    record: PartitionChangeRecord, old: PartitionRegistration
) -> tuple[bytes, ...]:
    """Return the directory of each replica; a change of replicas alone keeps those that stay."""
    if record.directories:
        return tuple(record.directories)
    if record.replicas is None:
        return old.directories
    known = dict(zip(old.replicas, old.directories, strict=False))
    return tuple(known.get(replica, MIGRATING_DIRECTORY) for replica in record.replicas)
