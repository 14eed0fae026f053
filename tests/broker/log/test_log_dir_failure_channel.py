"""Disk errors that take a data directory offline."""

import errno

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError
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


@pytest.mark.fault("B12")
@pytest.mark.parametrize("suffix", [".log", ".index"])
def test_disk_error_takes_directory_offline(
    bench: LogBench, log: UnifiedLog, files: FaultySystemFiles, suffix: str
) -> None:
    files.fail("write", suffix, errno.EIO)
    with pytest.raises(KafkaStorageError, match="Input/output"):
        log.append_as_leader(next_batch(), 0)
    files.heal()
    for action in (lambda: log.append_as_leader(next_batch(), 0), lambda: log.read(0, 1)):
        with pytest.raises(KafkaStorageError, match="offline"):
            action()
    assert bench.failures.is_offline


@pytest.mark.fault("B12")
def test_failed_truncation_takes_directory_offline(
    bench: LogBench, log: UnifiedLog, files: FaultySystemFiles
) -> None:
    files.fail("write", ".log", errno.ENOSPC)
    files.fail("truncate", ".log", errno.EIO)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(next_batch(), 0)
    assert bench.failures.is_offline
    bench.crash(log)
    files.heal()
    recovered = LogBench(bench.runtime, bench.directory.parent).open(CONFIG)
    assert offsets(recovered) == list(range(5))
    recovered.maintenance.release()


@pytest.mark.fault("B12")
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("suffix", [".log", ".index"])
def test_failed_fsync_is_not_retried(
    bench: LogBench, log: UnifiedLog, files: FaultySystemFiles, code: int, suffix: str
) -> None:
    log.append_as_leader(next_batch(), 0)  # now the index has something to flush as well
    files.fail("flush", suffix, code)
    with pytest.raises(KafkaStorageError):
        log.flush()
    files.heal()
    assert log.maintenance.recovery_point == 0
    with pytest.raises(KafkaStorageError, match="offline"):
        log.flush()
    with pytest.raises(KafkaStorageError):
        log.close()
