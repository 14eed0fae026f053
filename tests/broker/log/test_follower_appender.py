"""Append path of a follower: the leader's bytes, epochs and producers; offsets that may follow."""

import errno
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import LogAppendInfo
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    CorruptRecordError,
    KafkaStorageError,
    UnsupportedForMessageFormatError,
)
from kclient.common.errors import InvalidOffsetError
from kclient.common.runtime import Runtime
from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch, read_batches
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import (
    NOW_MS,
    LogBench,
    ManualClock,
    bench_runtime,
    make_batch,
    offsets,
    read_all,
)

PID = 7
SMALL = LogConfig(segment_bytes=700, index_interval_bytes=100)


@pytest.fixture
def leader(runtime: Runtime, tmp_path: Path) -> Iterator[UnifiedLog]:
    other = LogBench(runtime, tmp_path / "leader")
    yield other.open(SMALL)
    other.close()


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open(SMALL)


def at(offset: int, epoch: int, batch: bytearray) -> bytearray:
    """Return a batch as a leader has written it."""
    next(iter(read_batches(batch))).assign(offset, epoch)
    return batch


def fetch(source: UnifiedLog, offset: int, size: int) -> bytes:
    records = source.read(offset, size).records
    return records if isinstance(records, bytes) else bytes(records.read())


def replicate(source: UnifiedLog, target: UnifiedLog, size: int, epoch: int = 9) -> None:
    while target.log_end_offset < source.log_end_offset:
        assert target.append_as_follower(fetch(source, target.log_end_offset, size), epoch)


def files(directory: Path, suffix: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob(f"*{suffix}"))}


def fill(source: UnifiedLog) -> None:
    """Append batches of several epochs, and of producers with transactions."""
    marker = build_end_txn_batch(EndTxnMarker(ControlRecordType.ABORT, 3), PID, 0, NOW_MS)
    for number in range(12):
        source.append_as_leader(make_batch(number % 3 + 1, value=b"v" * number), number // 4)
        source.append_as_leader(make_batch(2, producer=(PID + 1, 1, 2 * number)), number // 4)
    source.append_as_leader(make_batch(2, producer=(PID, 0, 0), transactional=True), 4)
    source.append_as_leader(marker, 4, origin="coordinator")
    source.append_as_leader(make_batch(1, producer=(PID, 0, 2), transactional=True), 5)


@pytest.mark.parametrize("size", [100, 333, 100_000])
def test_follower_has_the_bytes_epochs_and_producers_of_the_leader(
    log: UnifiedLog, leader: UnifiedLog, size: int
) -> None:
    fill(leader)
    replicate(leader, log, size)
    read = (bytes(batch.buffer) for batch in read_all(leader))
    assert [bytes(batch.buffer) for batch in read_all(log)] == list(read)
    mine, theirs = log._state, leader._state
    assert mine.epochs.entries == theirs.epochs.entries
    assert mine.producers.entries == theirs.producers.entries
    end = log.high_watermark = leader.high_watermark = log.log_end_offset
    assert log.last_stable_offset == leader.last_stable_offset == end - 1
    found = [each.read(0, 100_000, include_aborted=True).aborted() for each in (log, leader)]
    assert found[0] == found[1]
    aborted = [
        txn for segment in mine.local.all_segments() for txn in segment.transactions.aborted_txns()
    ]
    assert [(txn.producer_id, txn.last_offset) for txn in aborted] == [(PID, end - 2)]


def test_segments_are_equal_byte_for_byte(log: UnifiedLog, leader: UnifiedLog) -> None:
    fill(leader)
    replicate(leader, log, 1)
    found = files(log.directory, ".log")
    assert len(found) > 3
    assert found == files(leader.directory, ".log")
    assert files(log.directory, ".snapshot").keys() == files(leader.directory, ".snapshot").keys()


def test_incomplete_batch_at_the_end_is_left_out(log: UnifiedLog) -> None:
    first, second = at(0, 1, make_batch(3)), at(3, 1, make_batch(2))
    info = log.append_as_follower(first + second[:-1], 1)
    assert info == LogAppendInfo(0, 2, log_start_offset=0)
    assert log.append_as_follower(second[:-1], 1) is None
    assert log.append_as_follower(b"", 1) is None
    assert log.append_as_follower(bytes(second), 1) == LogAppendInfo(3, 4, log_start_offset=0)


def test_wrong_checksum_rejects_all_unless_it_is_not_verified(log: UnifiedLog) -> None:
    damaged = at(1, 0, make_batch(1))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="checksum"):
        log.append_as_follower(at(0, 0, make_batch(1)) + damaged, 0)
    assert log.log_end_offset == 0
    assert log.latest_epoch is None
    assert log.append_as_follower(at(0, 0, make_batch(1)) + damaged, 0, verify=False)
    assert log.log_end_offset == 2


def test_bytes_that_are_no_batch_are_rejected(log: UnifiedLog) -> None:
    old = at(0, 0, make_batch(1))
    old[16] = 1
    with pytest.raises(UnsupportedForMessageFormatError):
        log.append_as_follower(old, 0)
    old[16] = 3
    with pytest.raises(CorruptRecordError):
        log.append_as_follower(at(0, 0, make_batch(1)) + old, 0)
    assert log.log_end_offset == 0


def test_batches_of_a_later_epoch_are_left_out(log: UnifiedLog) -> None:
    data = at(0, 2, make_batch(1)) + at(1, 4, make_batch(1)) + at(2, 3, make_batch(1))
    assert log.append_as_follower(data, 3) == LogAppendInfo(0, 0, log_start_offset=0)
    assert log.latest_epoch == 2
    assert log.append_as_follower(at(1, 4, make_batch(1)), 3) is None
    assert log.log_end_offset == 1


def test_offsets_may_have_holes_but_not_repeat(log: UnifiedLog) -> None:
    log.append_as_follower(at(3, 0, make_batch(2)) + at(8, 0, make_batch(2)), 0)
    assert offsets(log) == [3, 4, 8, 9]
    assert log.log_end_offset == 10
    for data in (at(9, 0, make_batch(2)), at(12, 0, make_batch(2)) + at(13, 0, make_batch(1))):
        with pytest.raises(InvalidOffsetError):
            log.append_as_follower(data, 0)
    assert log.log_end_offset == 10


def test_empty_log_starts_with_the_batch_that_holds_its_start(log: UnifiedLog) -> None:
    log.truncate_fully_and_start_at(5)
    with pytest.raises(InvalidOffsetError):
        log.append_as_follower(at(0, 1, make_batch(5)), 1)
    log.append_as_follower(at(3, 1, make_batch(4)), 1)
    assert (log.first_segment_base_offset, log.log_start_offset, log.log_end_offset) == (3, 5, 7)
    assert log.high_watermark == 5
    assert fetch(log, 5, 1000) == at(3, 1, make_batch(4))
    with pytest.raises(InvalidOffsetError):
        log.append_as_follower(at(6, 1, make_batch(4)), 1)


def test_append_that_the_disk_refuses_changes_nothing(
    log: UnifiedLog, files: FaultySystemFiles
) -> None:
    log.append_as_follower(at(0, 0, make_batch(2)), 0)
    files.fail("write", ".log", errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.append_as_follower(at(2, 0, make_batch(2, producer=(PID, 0, 0))), 0)
    files.heal()
    assert (log.log_end_offset, log._state.producers.entries) == (2, {})
    log.append_as_follower(at(2, 0, make_batch(2)), 0)
    assert offsets(log) == [0, 1, 2, 3]


def test_append_is_flushed_as_flush_messages_requires(bench: LogBench) -> None:
    log = bench.open(LogConfig(flush_messages=3))
    log.append_as_follower(at(0, 0, make_batch(2)), 0)
    assert log.maintenance.recovery_point == 0
    log.append_as_follower(at(2, 0, make_batch(2)), 0)
    assert log.maintenance.recovery_point == 4


def test_epochs_and_producers_survive_a_crash(bench: LogBench, leader: UnifiedLog) -> None:
    log = bench.open(SMALL)
    fill(leader)
    replicate(leader, log, 400)
    bench.crash(log)
    log = bench.open(SMALL)
    assert log._state.epochs.entries == leader._state.epochs.entries
    assert log._state.producers.entries == leader._state.producers.entries


@pytest.mark.parametrize("seed", range(30))
def test_power_cut_after_truncation_restores_no_truncated_batch(seed: int) -> None:
    """Batches of equal size: old ones at the next position would have the expected offset."""
    rng, clock = random.Random(seed), ManualClock()
    disk = VirtualDisk(clock)
    machine = VirtualFiles(disk)
    bench = LogBench(bench_runtime(clock, machine), Path("/srv/data"))
    log = bench.open(SMALL)
    log.append_as_follower(b"".join(at(n, 1, make_batch(1)) for n in range(40)), 1)
    if rng.random() < 0.5:
        log.flush()
    point = log.maintenance.recovery_point
    cut = rng.randrange(40)
    log.truncate_to(cut)
    count = rng.randrange(30)
    for number in range(count):
        log.append_as_follower(at(cut + number, 2, make_batch(1)), 2)
    machine.end()
    disk.lose_unflushed(rng)
    bench = LogBench(bench_runtime(clock, VirtualFiles(disk)), Path("/srv/data"))
    log = bench.open(SMALL, recovery_point=min(point, cut))
    found = [(batch.base_offset, batch.partition_leader_epoch) for batch in read_all(log)]
    expected = [(n, 1) for n in range(cut)] + [(cut + n, 2) for n in range(count)]
    assert found == expected[: len(found)]
    if point:
        assert len(found) >= cut
