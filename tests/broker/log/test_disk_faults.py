"""Full and failing disks: partial writes are truncated, and a failed fsync is not retried."""

import errno
import os
import signal
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError, NotLeaderOrFollowerError
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import LogBench, make_batch, offsets

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100)


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    log = bench.open(CONFIG)
    log.append_as_leader(make_batch(5, producer=(1, 0, 0)), 0)
    return log


def next_batch() -> bytearray:
    return make_batch(5, producer=(1, 0, 5))


def sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in directory.glob("*.log")}


@pytest.mark.fault("B11")
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_append_fails_on_full_disk_and_succeeds_later(
    bench: LogBench, log: UnifiedLog, files: FaultySystemFiles, suffix: str
) -> None:
    before = sizes(bench.directory)
    files.fail("write", suffix, errno.ENOSPC)
    with pytest.raises(KafkaStorageError, match="No space left") as caught:
        log.append_as_leader(next_batch(), 0)
    assert caught.value.retriable
    assert sizes(bench.directory) == before
    assert log.log_end_offset == 5
    assert not bench.failures.is_offline
    files.heal()
    assert log.append_as_leader(next_batch(), 0).first_offset == 5
    assert log.append_as_leader(next_batch(), 0).duplicate
    log.close()
    log = bench.open(CONFIG, clean=True)
    assert offsets(log) == list(range(10))
    assert log.offset_for_timestamp(0) is not None


@pytest.mark.fault("B11")
def test_roll_fails_on_full_disk(
    bench: LogBench, log: UnifiedLog, files: FaultySystemFiles
) -> None:
    files.fail("open", ".log", errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(make_batch(1, value=b"x" * 1900, producer=(1, 0, 5)), 0)
    files.heal()
    big = make_batch(1, value=b"x" * 1900, producer=(1, 0, 5))
    assert log.append_as_leader(big, 0).first_offset == 5
    assert offsets(log) == list(range(6))
    assert log.append_as_leader(make_batch(producer=(1, 0, 6)), 0).first_offset == 6


@pytest.mark.fault("B11")
@pytest.mark.parametrize("suffix", ["leader-epoch-checkpoint", ".snapshot"])
def test_small_file_writes_fail_on_full_disk(
    bench: LogBench, log: UnifiedLog, files: FaultySystemFiles, suffix: str
) -> None:
    big = make_batch(1, value=b"x" * 1900, producer=(1, 0, 5))
    files.fail("write", suffix, errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(big, 1)
    files.heal()
    big = make_batch(1, value=b"x" * 1900, producer=(1, 0, 5))
    info = log.append_as_leader(big, 1)
    assert (info.first_offset, info.duplicate) == (5, False)
    assert log.end_offset_for_epoch(0) == (0, 5)
    bench.crash(log)
    log = bench.open(CONFIG)
    assert offsets(log) == list(range(6))
    assert log.end_offset_for_epoch(0) == (0, 5)


@pytest.mark.fault("B12")
def test_short_writes_are_continued(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: whole(file, data[:7], at))
    log = bench.open(CONFIG)
    for sequence in range(0, 100, 5):
        log.append_as_leader(make_batch(5, producer=(1, 0, sequence)), 0)
    log.close()
    assert offsets(bench.open(CONFIG, clean=True)) == list(range(100))


@pytest.mark.fault("B12")
def test_system_calls_are_retried_after_signals(bench: LogBench) -> None:
    """Each system call may fail with EINTR at every tick of a timer."""
    rings: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rings.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        log = bench.open(CONFIG)
        count = 0
        while len(rings) < 100:
            log.append_as_leader(make_batch(5, producer=(1, 0, count)), 0)
            log.flush()
            count += 5
        assert offsets(log) == list(range(count))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_flush_messages(bench: LogBench, files: FaultySystemFiles) -> None:
    log = bench.open(LogConfig(flush_messages=3))
    log.append_as_leader(make_batch(2), 0)
    assert log.maintenance.recovery_point == 0
    log.append_as_leader(make_batch(2), 0)
    assert log.maintenance.recovery_point == 4
    files.fail("flush", ".log")
    log.append_as_leader(make_batch(2), 0)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(make_batch(2), 0)


def test_closed_log_rejects_operations(bench: LogBench, log: UnifiedLog) -> None:
    log.close()
    log.close()
    for action in (lambda: log.append_as_leader(next_batch(), 0), lambda: log.read(0, 1)):
        with pytest.raises(NotLeaderOrFollowerError, match="closed"):
            action()
    assert not bench.failures.is_offline
