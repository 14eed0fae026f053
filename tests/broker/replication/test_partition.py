"""Partition: leadership, in-sync replicas, high watermark, bounds of reads."""

import threading

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.broker.replication.fetch_params import FetchIsolation, FetchPartition, FetchResult
from kclient.broker.replication.partition import ACKS_ALL, Partition
from kclient.broker.replication.replication_context import ReplicationContext
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownLeaderEpochError,
)
from kclient.record import read_batches
from tests.support.disks.log_bench import PARTITION, LogBench, ManualClock, make_batch

TOPIC_ID = bytes(range(16))
HIGH_WATERMARK, LOG_END = FetchIsolation.HIGH_WATERMARK, FetchIsolation.LOG_END


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open(LogConfig(min_insync_replicas=1))


@pytest.fixture
def partition(log: UnifiedLog, clock: ManualClock) -> Partition:
    """Partition whose leader is broker 1, this one; broker 2 follows."""
    context = ReplicationContext(1, clock)
    made = Partition(PARTITION, TOPIC_ID, context, log, threading.Condition())
    register(made)
    return made


def register(
    partition: Partition, *, leader: int = 1, epoch: int = 4, isr: tuple[int, ...] = (1, 2)
) -> None:
    partition_epoch = partition.in_sync.partition_epoch + 1
    partition.apply(PartitionRegistration((1, 2), isr, leader, epoch, partition_epoch))


def append(partition: Partition, count: int = 1, acks: int = ACKS_ALL) -> int:
    """Append a batch; return the high watermark after it."""
    return partition.append_records_to_leader(MemoryRecords(make_batch(count)), acks)[1]


def fetch(
    partition: Partition, offset: int, isolation: FetchIsolation = LOG_END, **wanted: int
) -> FetchResult:
    asked = FetchPartition(TOPIC_ID, offset, 1 << 20, **wanted)
    return partition.fetch_records(asked, isolation, 1 << 20, at_least_one=True)


def offsets(result: FetchResult) -> list[int]:
    assert isinstance(result.records, bytes)
    return [record.offset for batch in read_batches(result.records) for record in batch.records()]


def test_high_watermark_is_the_minimum_of_the_in_sync_replicas(partition: Partition) -> None:
    assert append(partition, 5) == 0
    partition.update_follower(2, 3)
    assert partition.log.high_watermark == 3
    partition.update_follower(2, 1)  # a follower that was restored from an older state
    assert partition.log.high_watermark == 3
    partition.update_follower(2, 5)
    assert partition.log.high_watermark == 5


def test_removed_replica_no_longer_holds_the_high_watermark_back(partition: Partition) -> None:
    append(partition, 5)
    register(partition, isr=(1,))
    assert partition.log.high_watermark == 5
    assert append(partition, 2) == 7


def test_state_of_a_replica_survives_a_change_of_the_in_sync_ones(partition: Partition) -> None:
    append(partition, 5)
    partition.update_follower(2, 3)
    register(partition, isr=(1,))
    append(partition, 1)
    register(partition, isr=(1, 2))
    assert partition.replicas[2].log_end_offset == 3
    assert append(partition, 1) == 6  # the high watermark waits for the follower again
    partition.update_follower(2, 7)
    assert partition.log.high_watermark == 7


@pytest.mark.parametrize("replica", [1, 3])
def test_only_followers_report_their_offset(partition: Partition, replica: int) -> None:
    with pytest.raises(NotLeaderOrFollowerError, match=f"broker {replica} is not a follower"):
        partition.update_follower(replica, 1)


def test_follower_rejects_appends_and_reads(partition: Partition) -> None:
    register(partition, leader=2)
    assert partition.leader == 2
    for call in (
        lambda: append(partition),
        lambda: fetch(partition, 0),
        lambda: partition.is_committed(0, partition.leader_epoch),
        lambda: partition.delete_records(0),
    ):
        with pytest.raises(NotLeaderOrFollowerError, match="topic-0 is broker 2"):
            call()
    assert partition.log.log_end_offset == 0


def test_append_with_acks_all_needs_min_insync_replicas(partition: Partition) -> None:
    partition.configure(LogConfig(min_insync_replicas=2))
    register(partition, isr=(1,))
    with pytest.raises(NotEnoughReplicasError, match="current ISR 1 is insufficient"):
        append(partition)
    assert partition.log.log_end_offset == 0
    assert append(partition, acks=1) == 0  # not committed by too few (KIP-966)
    register(partition, isr=(1, 2))
    partition.update_follower(2, 1)
    assert partition.log.high_watermark == 1


def test_min_insync_replicas_is_at_most_the_number_of_replicas(partition: Partition) -> None:
    partition.configure(LogConfig(min_insync_replicas=3))
    append(partition)
    partition.update_follower(2, 1)
    assert partition.is_committed(1, partition.leader_epoch)


def test_committed_records_need_min_insync_replicas(partition: Partition) -> None:
    append(partition)
    assert not partition.is_committed(1, partition.leader_epoch)
    partition.update_follower(2, 1)
    assert partition.is_committed(1, partition.leader_epoch)
    partition.configure(LogConfig(min_insync_replicas=2))
    register(partition, isr=(1,))
    with pytest.raises(NotEnoughReplicasAfterAppendError):
        partition.is_committed(1, partition.leader_epoch)
    assert not partition.is_committed(2, partition.leader_epoch)


def test_records_of_an_earlier_leader_epoch_are_not_known_to_be_committed(
    partition: Partition,
) -> None:
    append(partition)
    register(partition, epoch=5, isr=(1,))
    assert partition.log.high_watermark == 1
    with pytest.raises(NotLeaderOrFollowerError, match="leader epoch 4, it is 5"):
        partition.is_committed(1, 4)


def test_reads_end_at_the_bound_of_their_isolation(partition: Partition) -> None:
    append(partition, 2)
    append(partition, 3)
    partition.update_follower(2, 2)
    assert offsets(fetch(partition, 0)) == [0, 1, 2, 3, 4]
    consumed = fetch(partition, 0, HIGH_WATERMARK)
    assert offsets(consumed) == [0, 1]
    assert (consumed.high_watermark, consumed.log_start_offset, consumed.aborted) == (2, 0, None)
    assert fetch(partition, 0, FetchIsolation.TXN_COMMITTED).aborted == []
    assert partition.latest_offset(HIGH_WATERMARK)[::2] == (2, 4)
    assert partition.latest_offset(LOG_END).offset == 5


def test_read_outside_of_the_log_is_out_of_range(partition: Partition) -> None:
    append(partition, 2)
    assert offsets(fetch(partition, 2)) == []
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRangeError, match="from offset 0 to 2"):
            fetch(partition, offset)


def test_large_read_is_a_slice_of_the_file(partition: Partition) -> None:
    partition.append_records_to_leader(MemoryRecords(make_batch(20, value=b"v" * 1000)), 1)
    found = fetch(partition, 0).records
    assert not isinstance(found, bytes)
    assert len(found) > 20_000


@pytest.mark.parametrize(
    ("epoch", "error"), [(3, FencedLeaderEpochError), (5, UnknownLeaderEpochError)]
)
def test_leader_epoch_of_client_must_be_the_current_one(
    partition: Partition, epoch: int, error: type[Exception]
) -> None:
    for known in (-1, 4):
        partition.check_leader_epoch(known)
    with pytest.raises(error, match=f"got leader epoch {epoch}, current is 4"):
        fetch(partition, 0, current_leader_epoch=epoch)


def test_fetch_with_diverging_log_returns_where_it_diverges(partition: Partition) -> None:
    append(partition, 2)
    register(partition, epoch=6)
    append(partition, 2)
    assert fetch(partition, 2, last_fetched_epoch=4).diverging_epoch is None
    diverging = fetch(partition, 3, last_fetched_epoch=4)
    assert (diverging.diverging_epoch, len(diverging.records)) == ((4, 2), 0)
    assert fetch(partition, 4, last_fetched_epoch=5).diverging_epoch == (4, 2)
    assert fetch(partition, 4, last_fetched_epoch=6).diverging_epoch is None
    with pytest.raises(OffsetOutOfRangeError, match="topic-0: epoch 7"):
        fetch(partition, 1, last_fetched_epoch=7)  # unknown to this log
    assert partition.last_offset_for_leader_epoch(6, 5) == (4, 2)


def test_records_are_deleted_up_to_the_high_watermark(partition: Partition) -> None:
    append(partition, 2)
    append(partition, 3)
    partition.update_follower(2, 2)
    for offset in (3, -2):
        with pytest.raises(OffsetOutOfRangeError, match=f"offset {offset} for partition topic-0"):
            partition.delete_records(offset)
    assert partition.delete_records(-1) == 2
    assert partition.earliest_offset().offset == 2


def test_records_of_compacted_topic_are_not_deleted(partition: Partition) -> None:
    partition.configure(LogConfig(cleanup_policy=("compact",)))
    with pytest.raises(PolicyViolationError, match=r"cleanup\.policy does not contain delete"):
        partition.delete_records(0)


def test_offset_for_timestamp_ends_at_the_given_offset(partition: Partition) -> None:
    append(partition, 3)
    latest = partition.max_timestamp_offset()
    assert latest is not None
    assert latest.offset == 2
    assert partition.offset_for_timestamp(latest.timestamp_ms, 3) is not None
    assert partition.offset_for_timestamp(latest.timestamp_ms, 2) is None
    assert partition.offset_for_timestamp(latest.timestamp_ms + 1, 3) is None


@pytest.mark.parametrize("isolation", FetchIsolation)
def test_fetch_at_the_end_of_a_closed_log_is_refused(
    partition: Partition, isolation: FetchIsolation
) -> None:
    append(partition, 2)
    partition.update_follower(2, 2)
    aborted: list[tuple[int, int]] | None = (
        [] if isolation is FetchIsolation.TXN_COMMITTED else None
    )
    assert fetch(partition, 2, isolation) == FetchResult(None, 2, 2, 0, aborted=aborted)
    partition.log.close()
    with pytest.raises(NotLeaderOrFollowerError):
        fetch(partition, 2, isolation)
