"""Offsets of groups in open transactions."""

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.coordinator.group.pending_offsets import PendingOffsets
from kclient.common.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def offset(value: int) -> CommittedOffset:
    return CommittedOffset(value, -1, "", 0)


def test_end_returns_the_offsets_of_one_producer() -> None:
    pending = PendingOffsets()
    pending.add(1, "g", T0, offset(5))
    pending.add(1, "g", T0, offset(6))
    pending.add(2, "g", T0, offset(7))
    pending.add(1, "h", T1, offset(8))
    assert pending.end(1) == [("g", T0, offset(6)), ("h", T1, offset(8))]
    assert (set(pending.group_ids()), set(pending.partitions("g"))) == ({"g"}, {T0})
    assert pending.end(1) == []
    assert pending.end(2) == [("g", T0, offset(7))]
    assert set(pending.group_ids()) == set()


def test_removed_partition_is_not_returned() -> None:
    pending = PendingOffsets()
    for producer_id in (1, 2):
        pending.add(producer_id, "g", T0, offset(5))
    pending.add(1, "g", T1, offset(6))
    pending.remove("g", T0)
    pending.remove("g", T0)
    pending.remove("absent", T0)
    assert pending.end(2) == []
    assert pending.end(1) == [("g", T1, offset(6))]
