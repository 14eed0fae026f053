"""Offsets of groups in open transactions."""

from collections.abc import Collection

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.common.types import TopicPartition

PendingOffset = tuple[str, TopicPartition, CommittedOffset]
"""Group, partition and offset."""

_NONE: dict[TopicPartition, dict[int, CommittedOffset]] = {}


class PendingOffsets:
    """Offsets of groups that transactions hold open (Kafka: pendingTransactionalOffsets).

    Several producers may have offsets of one partition.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, dict[int, CommittedOffset]]] = {}
        self._transactions: dict[int, dict[tuple[str, TopicPartition], None]] = {}

    def add(
        self, producer_id: int, group_id: str, partition: TopicPartition, offset: CommittedOffset
    ) -> None:
        """Add an offset, which replaces an earlier one of the producer."""
        self._groups.setdefault(group_id, {}).setdefault(partition, {})[producer_id] = offset
        self._transactions.setdefault(producer_id, {})[(group_id, partition)] = None

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Remove the offsets of all producers of a partition, which was deleted in the group."""
        for producer_id in list(self._groups.get(group_id, _NONE).get(partition, ())):
            self._remove(producer_id, group_id, partition)

    def end(self, producer_id: int) -> list[PendingOffset]:
        """Remove and return the offsets of a producer's transaction."""
        ended = list(self._transactions.get(producer_id, ()))
        return [
            (group_id, partition, self._remove(producer_id, group_id, partition))
            for group_id, partition in ended
        ]

    def partitions(self, group_id: str) -> Collection[TopicPartition]:
        """Return the partitions of a group with offsets of any producer."""
        return self._groups.get(group_id, _NONE).keys()

    def group_ids(self) -> Collection[str]:
        """Return the groups with such offsets."""
        return self._groups.keys()

    def _remove(
        self, producer_id: int, group_id: str, partition: TopicPartition
    ) -> CommittedOffset:
        group, transaction = self._groups[group_id], self._transactions[producer_id]
        removed = group[partition].pop(producer_id)
        if not group[partition]:
            del group[partition]
        if not group:
            del self._groups[group_id]
        del transaction[(group_id, partition)]
        if not transaction:
            del self._transactions[producer_id]
        return removed
