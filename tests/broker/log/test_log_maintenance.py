"""Maintenance of one log: flush, retention, closing, deletion."""

import errno
import random
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_maintenance import deletable_segments
from kclient.broker.log.log_state import LogState
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError, NotLeaderOrFollowerError
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import (
    NOW_MS,
    TOPIC_ID,
    LogBench,
    ManualClock,
    make_batch,
    offsets,
)

SIZE = len(make_batch(1))
CONFIG = LogConfig(
    segment_bytes=2 * SIZE, retention_ms=-1, retention_bytes=-1, file_delete_delay_ms=60_000
)


def filled(bench: LogBench, config: LogConfig = CONFIG, count: int = 7) -> UnifiedLog:
    """Return a log with two batches a segment; the timestamp of offset n is NOW_MS + n."""
    log = bench.open(config)
    for number in range(count):
        log.append_as_leader(make_batch(1, first_timestamp=NOW_MS + number), 0)
    log.high_watermark = count
    return log


def state_of(log: UnifiedLog) -> LogState:
    return log._state


def deletable(log: UnifiedLog, wall_ms: int = NOW_MS) -> list[int]:
    state = state_of(log)
    found = deletable_segments(state.local, state.log_start_offset, state.high_watermark, wall_ms)
    return [segment.base_offset for segment in found]


@pytest.mark.parametrize(
    ("batches", "deleted"), [(7, []), (6, []), (5, [0]), (4, [0]), (3, [0, 2]), (0, [0, 2, 4, 6])]
)
def test_retention_by_size_keeps_at_least_the_limit(
    bench: LogBench, batches: int, deleted: list[int]
) -> None:
    log = filled(bench)
    assert deletable(log) == []
    log.config = LogConfig(retention_bytes=batches * SIZE, retention_ms=-1)
    assert deletable(log) == deleted


@pytest.mark.parametrize(
    ("after_ms", "deleted"), [(11, []), (12, [0]), (14, [0, 2]), (99, [0, 2, 4, 6])]
)
def test_retention_by_age_uses_the_latest_record_of_a_segment(
    bench: LogBench, after_ms: int, deleted: list[int]
) -> None:
    log = filled(bench)
    log.config = LogConfig(retention_ms=10, retention_bytes=-1)
    assert deletable(log, NOW_MS + after_ms) == deleted


def test_retention_stops_at_the_first_segment_that_is_kept(bench: LogBench) -> None:
    log = bench.open(CONFIG)
    for timestamp in (NOW_MS, NOW_MS, NOW_MS + 500, NOW_MS, NOW_MS, NOW_MS, NOW_MS):
        log.append_as_leader(make_batch(1, first_timestamp=timestamp), 0)
    log.high_watermark = 7
    log.config = LogConfig(retention_ms=100, retention_bytes=-1)
    assert deletable(log, NOW_MS + 200) == [0]


def test_records_above_the_high_watermark_are_kept(bench: LogBench) -> None:
    log = bench.open(CONFIG)
    for _ in range(7):
        log.append_as_leader(make_batch(1), 0)
    log.config = LogConfig(retention_bytes=0)
    found = []
    for high_watermark in (1, 2, 5, 7):
        log.high_watermark = high_watermark
        found.append(deletable(log))
    assert found == [[], [0], [0, 2], [0, 2, 4, 6]]


def test_segments_before_the_log_start_are_deletable_without_retention(bench: LogBench) -> None:
    log = filled(bench, LogConfig(segment_bytes=2 * SIZE, cleanup_policy=("compact",)))
    assert deletable(log, NOW_MS + 10**12) == []
    state_of(log).raise_log_start(5)
    assert deletable(log) == [0, 2]


def test_deleted_segments_leave_the_log_at_once_and_the_disk_later(bench: LogBench) -> None:
    log = filled(bench)
    log.config = LogConfig(retention_bytes=3 * SIZE, retention_ms=-1)
    assert log.maintenance.delete_old_segments(1_000.0) == 2
    assert (log.log_start_offset, offsets(log)) == (4, [4, 5, 6])
    assert bench.path(2, ".log.deleted").exists()
    assert not bench.path(2, ".snapshot").exists()
    assert log.maintenance.delete_old_segments(1_000.0) == 0
    log.maintenance.purge_deleted(60_999.0)
    assert bench.path(2, ".log.deleted").exists()
    log.maintenance.purge_deleted(61_000.0)
    assert list(bench.directory.glob("*.deleted")) == []


def test_active_segment_is_rolled_before_all_are_deleted(bench: LogBench) -> None:
    log = filled(bench)
    log.config = LogConfig(retention_bytes=0)
    assert log.maintenance.delete_old_segments(0.0) == 4
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    assert [path.stem for path in bench.directory.glob("*.log")] == [f"{7:020d}"]
    assert deletable(log) == []  # an empty active segment is kept
    assert log.append_as_leader(make_batch(1), 0).first_offset == 7


def test_flush_of_rolled_segments_leaves_the_active_one(bench: LogBench) -> None:
    log = filled(bench)
    log.maintenance.flush_rolled()
    assert log.maintenance.recovery_point == 6
    log.maintenance.flush()
    assert log.maintenance.recovery_point == 7


def test_flush_is_due_after_flush_ms(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(LogConfig(flush_ms=100))
    clock.elapsed_ms = 50
    log.append_as_leader(make_batch(1), 0)
    points = []
    for now_ms in (99.0, 100.0):
        clock.elapsed_ms = int(now_ms)
        log.maintenance.flush_if_due(now_ms)
        points.append(log.maintenance.recovery_point)
    assert points == [0, 1]


def test_failed_flush_takes_the_directory_offline(
    bench: LogBench, files: FaultySystemFiles
) -> None:
    log = filled(bench)
    files.fail("flush", ".log")
    with pytest.raises(KafkaStorageError):
        log.maintenance.flush()
    files.heal()
    assert log.maintenance.recovery_point == 0
    with pytest.raises(KafkaStorageError):
        log.maintenance.flush()  # an fsync after a failed one proves nothing


def test_topic_id_is_written_by_the_periodic_flush(bench: LogBench) -> None:
    log = bench.open()
    log.assign_topic_id(TOPIC_ID)
    path = bench.directory / "partition.metadata"
    written = [path.exists()]
    log.maintenance.flush_topic_id()
    written.append(path.exists())
    assert written == [False, True]
    path.unlink()
    log.maintenance.flush_topic_id()  # nothing to write
    assert not path.exists()


def test_close_flushes_and_takes_a_snapshot(bench: LogBench) -> None:
    log = filled(bench)
    log.maintenance.close()
    assert log.maintenance.recovery_point == 7
    assert bench.path(7, ".snapshot").exists()
    log.maintenance.close()
    with pytest.raises(NotLeaderOrFollowerError, match="the log was closed"):
        log.maintenance.roll()


def test_failed_close_closes_the_files(bench: LogBench, files: FaultySystemFiles) -> None:
    log = filled(bench)
    files.fail("write", ".snapshot", errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.maintenance.close()
    files.heal()
    with pytest.raises(NotLeaderOrFollowerError):
        log.append_as_leader(make_batch(1), 0)
    assert offsets(bench.open(CONFIG)) == [*range(7)]


def test_deletion_renames_the_directory_first(bench: LogBench) -> None:
    log = filled(bench)
    log.maintenance.mark_for_deletion(random.Random(3))
    (left,) = bench.directory.parent.iterdir()
    assert left.name.startswith("topic-0.")
    assert left.name.endswith("-delete")
    with pytest.raises(NotLeaderOrFollowerError):
        log.append_as_leader(make_batch(1), 0)
    log.maintenance.delete()
    assert directories(bench.directory.parent) == []


def directories(data_dir: Path) -> list[str]:
    return [path.name for path in data_dir.iterdir()]
