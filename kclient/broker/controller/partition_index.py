"""Partitions by broker, so that a change of a broker reads only the partitions it concerns.

Kafka: BrokersToIsrs, and the indexes of ReplicationControlManager. The index follows the image
that includes uncommitted changes; after a loss of leadership it is built again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import (
    NO_LEADER,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)

PartitionKey = tuple[bytes, int]
"""Topic id and partition number."""


class _Entry(NamedTuple):
    """Indexed parts of a partition."""

    members: tuple[int, ...]
    leader: int
    is_imbalanced: bool

    @classmethod
    def of(cls, partition: PartitionRegistration) -> "_Entry":
        members = partition.isr + partition.elr if partition.elr else partition.isr
        return cls(
            members,
            partition.leader,
            partition.leader != partition.replicas[0],
        )


class PartitionIndex:
    """Index of the partitions of an image.

    Attributes:
        leaderless: Partitions without a leader.
        imbalanced: Partitions that their first replica does not lead.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._entries: dict[PartitionKey, _Entry] = {}
        self._by_member: dict[int, dict[PartitionKey, None]] = {}
        self._leaderships: dict[int, int] = {}
        self.leaderless: dict[PartitionKey, None] = {}
        self.imbalanced: dict[PartitionKey, None] = {}
        topics = image.topics
        for topic in topics.values():
            self._add(topic, range(len(topic.partitions)))

    def update(self, old: MetadataImage, new: MetadataImage, changes: MetadataChanges) -> None:
        """Follow a change of the image."""
        for deleted in changes.deleted_topics:
            topic = old.topic_by_id(deleted.topic_id)
            for number in range(0 if topic is None else len(topic.partitions)):
                self._remove((deleted.topic_id, number))
        for name, numbers in changes.changed_partitions.items():
            changed = new.topic(name)
            if changed is not None:
                self._add(changed, numbers)

    def members(self, broker: int) -> list[PartitionKey]:
        """Return the partitions with a broker in their ISR or eligible leader replicas."""
        return list(self._by_member.get(broker, ()))

    def leads(self, broker: int) -> bool:
        """Return whether a broker leads any partition."""
        return self._leaderships.get(broker, 0) > 0

    def _add(self, topic: TopicImage, numbers: Iterable[int]) -> None:
        topic_id, partitions = topic.topic_id, topic.partitions
        for number in numbers:
            key = (topic_id, number)
            entry = _Entry.of(partitions[number])
            old = self._entries.get(key)
            if old == entry:
                continue
            if old is not None:
                self._remove(key)
            self._insert(key, entry)

    def _insert(self, key: PartitionKey, entry: _Entry) -> None:
        self._entries[key] = entry
        for broker in entry.members:
            self._by_member.setdefault(broker, {})[key] = None
        if entry.leader == NO_LEADER:
            self.leaderless[key] = None
        else:
            self._leaderships[entry.leader] = self._leaderships.get(entry.leader, 0) + 1
        if entry.is_imbalanced:
            self.imbalanced[key] = None

    def _remove(self, key: PartitionKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        for broker in entry.members:
            self._by_member[broker].pop(key, None)
        if entry.leader != NO_LEADER:
            self._leaderships[entry.leader] -= 1
        for partitions in (self.leaderless, self.imbalanced):
            partitions.pop(key, None)
