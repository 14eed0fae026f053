"""Metadata log on a failing disk: unflushed records are not applied."""

import errno
from pathlib import Path

import pytest

from kclient.broker.controller.kafka_metadata_log import METADATA_LOG_CONFIG, KafkaMetadataLog
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import TopicRecord
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import LogBench, ManualClock, bench_runtime


def names(log: KafkaMetadataLog) -> list[str]:
    return [record.name for _, record in log.replay() if isinstance(record, TopicRecord)]


@pytest.mark.fault("B11", "B12")
@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO], ids=["descriptors", "broken"])
def test_unflushed_records_are_removed(tmp_path: Path, code: int) -> None:
    """A change reported as failed must not be applied by a later flush."""
    files, clock = FaultySystemFiles(), ManualClock()
    committed: list[KafkaError | None] = []
    bench = LogBench(bench_runtime(clock, files), tmp_path)
    log = KafkaMetadataLog(clock, bench.open(METADATA_LOG_CONFIG))
    assert log.append([TopicRecord(name="first")], committed.append) == 0
    files.fail("flush", ".log", code)
    with pytest.raises(KafkaStorageError):
        log.append([TopicRecord(name="refused")], committed.append)
    files.heal()
    if code == errno.EMFILE:
        assert log.append([TopicRecord(name="second")], committed.append) == 1
        assert names(log) == ["first", "second"]
        assert committed == [None, None]
    else:
        with pytest.raises(KafkaStorageError, match="offline"):
            log.append([TopicRecord(name="second")], committed.append)
    bench.close()
