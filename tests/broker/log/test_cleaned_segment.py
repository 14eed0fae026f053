"""Segment that the cleaner writes, and its exchange for segments of the log."""

import errno
from pathlib import Path

import pytest

from kclient.broker.log.cleaned_segment import (
    CleanedSegment,
    CleaningAbandonedError,
    SegmentSwap,
)
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_state import LogState
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import LogBench, make_batch, offsets, read_all


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    """Log of three segments with two batches of one record each."""
    log = bench.open(LogConfig(segment_bytes=2 * len(make_batch(1)), file_delete_delay_ms=0))
    for _ in range(6):
        log.append_as_leader(make_batch(1), 0)
    log.high_watermark = 6
    return log


@pytest.fixture
def state(log: UnifiedLog) -> LogState:
    return log._state


def cleaned_from(log: UnifiedLog, state: LogState, *kept: int) -> CleanedSegment:
    """Write the batches at these offsets into a cleaned segment of offset 0."""
    cleaned = CleanedSegment(state, 0)
    for batch in read_all(log):
        if batch.base_offset in kept:
            cleaned.add(batch.buffer)
    cleaned.complete([])
    return cleaned


def names(directory: Path, pattern: str) -> list[str]:
    return sorted(path.name.lstrip("0") for path in directory.glob(pattern))


def test_cleaned_segment_is_complete_under_its_own_name(
    log: UnifiedLog, state: LogState, bench: LogBench
) -> None:
    cleaned = CleanedSegment(state, 0)
    first = read_all(log)[1]
    cleaned.add(first.buffer)
    path = bench.path(0, ".log.cleaned")
    assert path.stat().st_size == 0  # writes are buffered
    cleaned.complete([AbortedTxn(7, 0, 1, 1)])
    assert path.read_bytes() == first.buffer
    assert cleaned.segment.transactions.aborted_txns() == [AbortedTxn(7, 0, 1, 1)]
    found = cleaned.segment.locate(1)
    assert found is not None
    assert (found.position, found.base_offset) == (0, 1)
    assert offsets(log) == [*range(6)]
    cleaned.drop()


def test_many_batches_are_written_before_the_end(state: LogState, bench: LogBench) -> None:
    cleaned = CleanedSegment(state, 0)
    batch = make_batch(1, value=b"v" * 100_000)
    for number in range(3):
        batch[0:8] = number.to_bytes(8)
        cleaned.add(bytes(batch))
    assert bench.path(0, ".log.cleaned").stat().st_size == 3 * len(batch)
    cleaned.drop()


def test_files_of_an_earlier_attempt_are_removed(state: LogState, bench: LogBench) -> None:
    for suffix in (".log.swap", ".index.cleaned", ".log.cleaned", ".txnindex.swap"):
        bench.path(0, suffix).write_bytes(b"left over")
    cleaned = CleanedSegment(state, 0)
    assert cleaned.segment.size == 0
    cleaned.drop()
    assert names(bench.directory, "*.swap") == names(bench.directory, "*.cleaned") == []


def test_swap_replaces_the_segments(log: UnifiedLog, state: LogState, bench: LogBench) -> None:
    cleaned = cleaned_from(log, state, 1, 2)
    swap = SegmentSwap(state, state.local.all_segments()[:2], cleaned.segment)
    swap.begin()
    assert names(bench.directory, "*.swap") == [".index.swap", ".log.swap", ".timeindex.swap"]
    assert offsets(log) == [1, 2, 4, 5]
    swap.finish()
    assert names(bench.directory, "*.log") == [".log", "4.log"]
    assert names(bench.directory, "*.log.deleted") == [".log.deleted", "2.log.deleted"]
    assert not bench.path(2, ".snapshot").exists()
    assert offsets(log) == [1, 2, 4, 5]
    log.maintenance.purge_deleted(1e12)
    assert names(bench.directory, "*.deleted") == []
    log.close()
    assert offsets(bench.open(clean=True)) == [1, 2, 4, 5]


@pytest.mark.parametrize("change", ["truncated", "removed"])
def test_swap_of_changed_segments_is_abandoned(
    log: UnifiedLog, state: LogState, bench: LogBench, change: str
) -> None:
    cleaned = cleaned_from(log, state, 1)
    old = state.local.all_segments()[:2]
    swap = SegmentSwap(state, old, cleaned.segment)
    if change == "removed":
        log.delete_records_before(2)
        log.maintenance.delete_old_segments(0)
    else:
        log.truncate_to(3)
    before = offsets(log)
    with pytest.raises(CleaningAbandonedError, match="changed concurrently"):
        swap.begin()
    cleaned.drop()
    assert offsets(log) == before
    assert names(bench.directory, "*.swap") == []


def test_failed_rename_is_continued_by_another_call(
    log: UnifiedLog, state: LogState, bench: LogBench, files: FaultySystemFiles
) -> None:
    cleaned = cleaned_from(log, state, 1)
    swap = SegmentSwap(state, state.local.all_segments()[:2], cleaned.segment)
    swap.begin()
    files.fail("rename", ".timeindex", errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        swap.finish()
    files.heal()
    assert offsets(log) == [1, 4, 5]
    swap.finish()
    assert names(bench.directory, "*.swap") == []
    assert names(bench.directory, "*.log") == [".log", "4.log"]


def test_full_disk_fails_the_cleaning_alone(
    log: UnifiedLog, state: LogState, bench: LogBench, files: FaultySystemFiles
) -> None:
    cleaned = CleanedSegment(state, 0)
    cleaned.add(read_all(log)[0].buffer)
    files.fail("write", ".log.cleaned", errno.ENOSPC)
    with pytest.raises(KafkaStorageError, match="clean a cleaned segment"):
        cleaned.complete([])
    files.heal()
    cleaned.drop()
    assert offsets(log) == [*range(6)]
    log.append_as_leader(make_batch(1), 0)
