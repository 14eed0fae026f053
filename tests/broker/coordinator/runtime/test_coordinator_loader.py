"""Loading of a shard: chunks of the log, up to its end, committed."""

import pytest

from kclient.broker.coordinator.runtime.coordinator_loader import CoordinatorLoader, LoadProgress
from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.broker.coordinator.runtime.partition_log import (
    AppendCallback,
    LogBatch,
    LogChunk,
    ReadBounds,
    TransactionEnd,
    TransactionOwner,
)
from kclient.common.broker_errors import FencedLeaderEpochError, UnknownLeaderEpochError
from kclient.common.errors import KafkaError
from kclient.record import Record

EPOCH = 5


class ChunkedLog:
    """Log that returns two records per read."""

    partition_count = 1

    def __init__(self, keys: bytes, start: int = 0) -> None:
        self.keys = keys
        self.start = start
        self.high_watermark = start + len(keys)
        self.leader_epoch = EPOCH
        self.reads: list[int] = []

    def bounds(self, partition: int, leader_epoch: int) -> ReadBounds:
        if leader_epoch < self.leader_epoch:
            raise FencedLeaderEpochError
        if leader_epoch > self.leader_epoch:
            raise UnknownLeaderEpochError
        return ReadBounds(self.start, self.high_watermark, self.start + len(self.keys))

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: object,
        on_done: AppendCallback,
        transaction_of: TransactionOwner | None = None,
    ) -> None:
        raise AssertionError

    def append_marker(
        self, partition: int, leader_epoch: int, end: TransactionEnd, on_done: AppendCallback
    ) -> None:
        raise AssertionError

    def read(self, partition: int, offset: int) -> LogChunk:
        self.reads.append(offset)
        at = offset - self.start
        keys = self.keys[at : at + 2]
        records = [
            Record(offset + n, -1, bytes([key]), b"%d" % (at + n), []) for n, key in enumerate(keys)
        ]
        return LogChunk([LogBatch(records)], offset + len(keys))


class Shard:
    def __init__(self) -> None:
        self.loaded: list[tuple[bytes, bytes | None]] = []
        self.origins: list[tuple[int, int]] = []
        self.ended: list[tuple[int, bool]] = []

    def load(self, raw_key: bytes, raw_value: bytes | None, offset: int, producer_id: int) -> None:
        self.loaded.append((raw_key, raw_value))
        self.origins.append((offset, producer_id))

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        raise AssertionError

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.ended.append((producer_id, committed))

    def on_loaded(self) -> None:
        raise AssertionError

    def on_unloaded(self, error: KafkaError) -> None:
        raise AssertionError


def finish(loader: CoordinatorLoader) -> LoadProgress:
    for _ in range(20):
        progress = loader.step()
        if progress is not LoadProgress.RUNNING:
            return progress
    raise AssertionError("loading does not end")


def test_each_step_reads_one_chunk() -> None:
    log, shard = ChunkedLog(b"abcde", start=3), Shard()
    loader = CoordinatorLoader(log, 0, EPOCH, shard)
    for count in (1, 2, 3):
        assert loader.step() is LoadProgress.RUNNING
        assert len(log.reads) == count
    assert shard.loaded == []
    assert finish(loader) is LoadProgress.LOADED
    assert log.reads == [3, 5, 7]
    assert (len(shard.loaded), loader.end_offset) == (5, 8)


def test_only_the_last_record_of_a_key_is_applied_in_order_of_the_log() -> None:
    shard = Shard()
    assert finish(CoordinatorLoader(ChunkedLog(b"abac"), 0, EPOCH, shard)) is LoadProgress.LOADED
    assert shard.loaded == [(b"b", b"1"), (b"a", b"2"), (b"c", b"3")]


def test_loading_waits_until_the_end_of_the_log_is_committed() -> None:
    log, shard = ChunkedLog(b"abc"), Shard()
    log.high_watermark = 1
    loader = CoordinatorLoader(log, 0, EPOCH, shard)
    assert finish(loader) is LoadProgress.WAITING
    assert len(shard.loaded) == 3
    log.high_watermark = 2
    assert loader.step() is LoadProgress.WAITING
    log.keys += b"d"  # as a transaction marker would
    assert finish(loader) is LoadProgress.WAITING
    log.high_watermark = 4
    assert finish(loader) is LoadProgress.LOADED
    assert (shard.loaded[-1], loader.end_offset) == ((b"d", b"3"), 4)


def test_loading_ends_with_leadership() -> None:
    log = ChunkedLog(b"abcd")
    loader = CoordinatorLoader(log, 0, EPOCH, Shard())
    loader.step()
    log.leader_epoch += 1
    with pytest.raises(FencedLeaderEpochError):
        loader.step()


def test_loading_begins_when_the_partition_is_in_its_epoch() -> None:
    log = ChunkedLog(b"a")
    log.leader_epoch -= 1
    loader = CoordinatorLoader(log, 0, EPOCH, Shard())
    assert loader.step() is LoadProgress.WAITING
    log.leader_epoch = EPOCH
    assert finish(loader) is LoadProgress.LOADED


def test_end_of_a_transaction_that_was_applied_as_open_is_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, shard = ChunkedLog(b"a"), Shard()
    opening = LogBatch([Record(0, -1, b"a", b"0", [])], 7)
    chunks = [LogChunk([opening], 1), LogChunk([LogBatch((), 7, True)], 2)]
    monkeypatch.setattr(log, "read", lambda _partition, offset: chunks[offset])
    log.high_watermark = 0
    loader = CoordinatorLoader(log, 0, EPOCH, shard)
    assert finish(loader) is LoadProgress.WAITING
    assert (shard.origins, shard.ended) == ([(0, 7)], [])
    log.keys, log.high_watermark = b"ab", 2
    assert finish(loader) is LoadProgress.LOADED
    assert (shard.origins, shard.ended) == ([(0, 7)], [(7, True)])


def test_compacted_end_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ChunkedLog(b"abc")
    monkeypatch.setattr(log, "read", lambda _partition, offset: LogChunk([], offset))
    loader = CoordinatorLoader(log, 0, EPOCH, Shard())
    assert finish(loader) is LoadProgress.LOADED
    assert loader.end_offset == 3
