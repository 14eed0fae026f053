"""Log of a coordinator: appends through the replica manager, and reads of a whole partition."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from kclient.broker.coordinator.runtime.partition_log import (
    ReplicatedLog,
    TransactionEnd,
    TransactionOwner,
    partition_for,
)
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.transaction_verification import OPEN_TRANSACTION, VerificationGuard
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.replication.delayed_requests import AppendResults
from kclient.broker.replication.fetch_params import AppendResult
from kclient.broker.replication.partition import ACKS_ALL
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.common.broker_errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptRecordError,
    FencedLeaderEpochError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaStorageError,
    NetworkError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.record import ControlRecordType, ProducerIdAndEpoch, RecordBatchBuilder
from tests.support.disks.clean_log import clean, write
from tests.support.disks.log_bench import NOW_MS, LogBench, ManualClock, make_batch

PARTITION = TopicPartition("__offsets", 3)
EPOCH = 4


class Replicas:
    """Replica manager with one partition, whose appends the test completes."""

    def __init__(self, log: UnifiedLog) -> None:
        self.log = log
        self.leader_epoch = EPOCH
        self.on_done: list[Callable[[AppendResults], None]] = []

    def append_records(
        self,
        acks: int,
        entries: Mapping[TopicPartition, MemoryRecords],
        timeout_ms: float,
        on_done: Callable[[AppendResults], None],
        origin: str,
        transaction_version: int,
        guards: Mapping[TopicPartition, VerificationGuard] | None,
    ) -> None:
        assert (acks, origin, [*entries]) == (ACKS_ALL, "coordinator", [PARTITION])
        assert timeout_ms > 1e9
        self.log.append_as_leader(
            entries[PARTITION],
            EPOCH,
            origin="coordinator",
            transaction_version=transaction_version,
            guard=guards[PARTITION] if guards else None,
        )
        self.on_done.append(on_done)

    def partition(self, topic_partition: TopicPartition) -> SimpleNamespace:
        if topic_partition != PARTITION:
            raise UnknownTopicOrPartitionError
        return SimpleNamespace(log=self.log, check_leader_epoch=self.check_leader_epoch)

    def check_leader_epoch(self, leader_epoch: int) -> None:
        if leader_epoch < self.leader_epoch:
            raise FencedLeaderEpochError
        if leader_epoch > self.leader_epoch:
            raise UnknownLeaderEpochError

    def complete(self, error: KafkaError | None = None) -> None:
        end_offset = self.log.log_end_offset
        self.on_done.pop()({PARTITION: AppendResult(error=error, end_offset=end_offset)})


class Outcomes(list[KafkaError | int]):
    """Errors or end offsets of appends."""

    def add(self, error: KafkaError | None, end_offset: int) -> None:
        self.append(end_offset if error is None else error)


def read_all(log: ReplicatedLog) -> list[tuple[bytes, bytes | None]]:
    """Read the partition as a coordinator does that is loaded."""
    found = []
    bounds = log.bounds(3, EPOCH)
    offset = bounds.log_start_offset
    while offset < bounds.log_end_offset:
        chunk = log.read(3, offset)
        for batch in chunk.batches:
            found += [
                (bytes(record.key or b""), None if record.value is None else bytes(record.value))
                for record in batch.records
            ]
        assert chunk.next_offset > offset
        offset = chunk.next_offset
    return found


@pytest.fixture
def replicas(bench: LogBench) -> Replicas:
    return Replicas(bench.open())


@pytest.fixture
def log(replicas: Replicas, clock: ManualClock) -> ReplicatedLog:
    return ReplicatedLog(PARTITION.topic, cast("ReplicaManager", replicas), clock, lambda: 50)


def test_appended_records_are_read_back_in_order(log: ReplicatedLog, replicas: Replicas) -> None:
    done = Outcomes()
    log.append(3, EPOCH, [(b"a", b"1"), (b"b", None)], done.add)
    assert done == []  # not committed yet
    replicas.complete()
    assert done == [2]
    log.append(3, EPOCH, [(b"a", b"2")], done.add)
    assert read_all(log) == [(b"a", b"1"), (b"b", None), (b"a", b"2")]
    assert log.partition_count == 50


def test_records_of_one_append_are_one_batch_of_the_present_time(
    log: ReplicatedLog, replicas: Replicas, clock: ManualClock
) -> None:
    clock.elapsed_ms = 5
    log.append(3, EPOCH, [(b"a", b"1"), (b"b", b"2")], Outcomes().add)
    found = replicas.log.offset_of_max_timestamp()
    assert found is not None
    assert found.timestamp_ms == NOW_MS + 5
    assert replicas.log.log_end_offset == 2


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NotEnoughReplicasError(), CoordinatorNotAvailableError),
        (NotEnoughReplicasAfterAppendError(), CoordinatorNotAvailableError),
        (RequestTimedOutError(), CoordinatorNotAvailableError),
        (UnknownTopicOrPartitionError(), CoordinatorNotAvailableError),
        (NotLeaderOrFollowerError(), NotCoordinatorError),
        (KafkaStorageError(), NotCoordinatorError),
        (NetworkError(), CoordinatorLoadInProgressError),
        (RecordTooLargeError(), RecordTooLargeError),
    ],
)
def test_errors_are_those_of_a_coordinator(
    log: ReplicatedLog, replicas: Replicas, error: KafkaError, expected: type[KafkaError]
) -> None:
    done = Outcomes()
    log.append(3, EPOCH, [(b"a", b"1")], done.add)
    replicas.complete(error)
    assert [type(each) for each in done] == [expected]


def test_partition_that_does_not_exist_has_no_bounds(log: ReplicatedLog) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        log.bounds(4, EPOCH)


def test_append_in_another_epoch_writes_nothing(log: ReplicatedLog, replicas: Replicas) -> None:
    done = Outcomes()
    log.append(3, EPOCH - 1, [(b"a", b"1")], done.add)
    log.append(3, EPOCH + 1, [(b"a", b"1")], done.add)
    assert [type(each) for each in done] == [NotCoordinatorError] * 2
    assert replicas.log.log_end_offset == 0


def test_append_is_not_committed_in_a_later_epoch(log: ReplicatedLog, replicas: Replicas) -> None:
    """The high watermark that passes its offset may be that of other records."""
    done = Outcomes()
    log.append(3, EPOCH, [(b"a", b"1")], done.add)
    replicas.leader_epoch += 2
    replicas.complete()
    assert [type(each) for each in done] == [NotCoordinatorError]


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [(EPOCH - 1, FencedLeaderEpochError), (EPOCH + 1, UnknownLeaderEpochError)],
)
def test_bounds_are_those_of_one_epoch(
    log: ReplicatedLog, leader_epoch: int, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        log.bounds(3, leader_epoch)


def test_log_after_last_batch_is_empty(log: ReplicatedLog, replicas: Replicas) -> None:
    write(replicas.log, (b"a", b"1"))
    chunk = log.read(3, 1)
    assert ([*chunk.batches], chunk.next_offset) == ([], 1)


def test_transaction_is_read_back_with_its_marker(log: ReplicatedLog, replicas: Replicas) -> None:
    producer = TransactionOwner(7, 2)
    log.append(3, EPOCH, [(b"a", b"1")], Outcomes().add)
    log.append(3, EPOCH, [(b"b", b"2"), (b"c", None)], Outcomes().add, producer)
    assert replicas.log.last_stable_offset == 0
    for committed in (True, False):
        end = TransactionEnd(ProducerIdAndEpoch(7, 3), committed, 9, transaction_version=2)
        log.append_marker(3, EPOCH, end, Outcomes().add)
    found = [
        ([(each.offset, bytes(each.key or b"")) for each in batch.records], *batch[1:])
        for batch in log.read(3, 0).batches
    ]
    assert found == [
        ([(0, b"a")], -1, None),
        ([(1, b"b"), (2, b"c")], 7, None),
        ([], 7, True),
        ([], 7, False),
    ]
    replicas.log.high_watermark = replicas.log.log_end_offset
    assert replicas.log.last_stable_offset == 5


def test_marker_is_checked_by_the_version_of_its_transaction(
    log: ReplicatedLog, replicas: Replicas
) -> None:
    log.append(3, EPOCH, [(b"a", b"1")], Outcomes().add, TransactionOwner(7, 2))
    end = TransactionEnd(ProducerIdAndEpoch(7, 2), True, 9, transaction_version=2)
    with pytest.raises(InvalidProducerEpochError):
        log.append_marker(3, EPOCH, end, Outcomes().add)
    log.append_marker(3, EPOCH, end._replace(transaction_version=1), Outcomes().add)
    assert replicas.log.log_end_offset == 2


def test_transaction_is_written_with_its_guard(log: ReplicatedLog, replicas: Replicas) -> None:
    with pytest.raises(InvalidTxnStateError):
        log.append(
            3, EPOCH, [(b"a", b"1")], Outcomes().add, TransactionOwner(7, 2, OPEN_TRANSACTION)
        )
    guard = replicas.log.begin_verification(7, 2, -1, supports_epoch_bump=True)
    for each in (guard, OPEN_TRANSACTION):
        producer = TransactionOwner(7, 2, each)
        log.append(3, EPOCH, [(b"a", b"1")], Outcomes().add, producer)
    assert replicas.log.log_end_offset == 2


def test_other_control_batches_are_skipped(log: ReplicatedLog, replicas: Replicas) -> None:
    write(replicas.log, (b"a", b"1"))
    builder = RecordBatchBuilder(bytearray(200))
    builder.append(NOW_MS, ControlRecordType.LEADER_CHANGE.record_key(), b"", None)
    leader_change = MemoryRecords(builder.seal(control=True))
    replicas.log.append_as_leader(leader_change, 0, origin="coordinator")
    write(replicas.log, (b"b", b"2"))
    assert [key for key, _ in read_all(log)] == [b"a", b"b"]


def test_gaps_of_compaction_are_skipped(bench: LogBench, clock: ManualClock) -> None:
    compacted = bench.open(LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0))
    replicas = Replicas(compacted)
    log = ReplicatedLog(PARTITION.topic, cast("ReplicaManager", replicas), clock, lambda: 50)
    write(compacted, (b"a", b"1"), (b"b", b"1"))
    write(compacted, (b"a", b"2"), (b"b", b"2"))
    compacted.maintenance.roll()
    clean(compacted)
    assert read_all(log) == [(b"a", b"2"), (b"b", b"2")]


def test_read_that_makes_no_progress_is_an_error(
    log: ReplicatedLog, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(replicas.log, (b"a", b"1"))
    found = replicas.log.read(0, 1 << 20)
    found.records = bytes(make_batch(1)[:-1])
    monkeypatch.setattr(replicas.log, "read", lambda _offset, _size: found)
    with pytest.raises(CorruptRecordError, match="topic-0: no batch at offset 0"):
        log.read(3, 0)


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("g", 3),
        ("console-consumer-1234", 9),
        ("gruppe-ä", 48),
        ("gruppe-\U0001f600", 11),
        ("orders", 31),  # its hash is negative
        ("polygenelubricants", 0),  # the hash without an absolute value
    ],
)
def test_partition_of_key_matches_java(key: str, partition: int) -> None:
    # Reference: Utils.abs(key.hashCode()) % 50, computed by a JVM.
    assert partition_for(key, 50) == partition
