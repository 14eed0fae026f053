"""Committed offsets in memory."""

from collections.abc import Collection
from dataclasses import dataclass

from kclient.common.types import TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Committed offset of a group in a partition.

    Attributes:
        offset: Next offset to read.
        leader_epoch: Epoch of the last consumed record's leader, or -1.
        metadata: Metadata of the commit.
        commit_timestamp_ms: Wall-clock time of the commit.
        expire_timestamp_ms: Explicit expiration time (request versions 2 to 4), or None for the
            broker's retention.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


class OffsetStore:
    """Offsets by group and partition (Kafka: OffsetMetadataManager)."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Store an offset."""
        self._groups.setdefault(group_id, {})[partition] = offset

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Remove an offset; idempotent."""
        offsets = self._groups.get(group_id)
        if offsets is not None:
            offsets.pop(partition, None)
            if not offsets:
                del self._groups[group_id]

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """Return an offset, or None."""
        return self._groups.get(group_id, {}).get(partition)

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all offsets of a group."""
        return dict(self._groups.get(group_id, {}))

    def group_ids(self) -> list[str]:
        """Return the groups with committed offsets."""
        return list(self._groups)

    def of_topics(self, topics: Collection[str]) -> dict[str, list[TopicPartition]]:
        """Return, by group, the partitions of these topics that have a committed offset."""
        found: dict[str, list[TopicPartition]] = {}
        for group_id, offsets in self._groups.items():
            for partition in offsets:
                if partition.topic in topics:
                    found.setdefault(group_id, []).append(partition)
        return found
