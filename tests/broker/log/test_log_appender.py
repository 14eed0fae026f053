"""Append path of a log: assigned offsets, results, rolls, producer state, failures."""

import errno

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import LogAppendInfo
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    CorruptRecordError,
    KafkaStorageError,
    OutOfOrderSequenceError,
    RecordBatchTooLargeError,
)
from kclient.common.types import OffsetAndTimestamp
from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import NOW_MS, LogBench, ManualClock, make_batch, read_all


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open()


def test_batches_of_a_request_get_consecutive_offsets_and_the_leader_epoch(
    log: UnifiedLog,
) -> None:
    log.append_as_leader(make_batch(2), 3)
    info = log.append_as_leader(make_batch(3) + make_batch(1), 4)
    assert (info.first_offset, info.last_offset) == (2, 5)
    found = [(each.base_offset, each.partition_leader_epoch) for each in read_all(log)]
    assert found == [(0, 3), (2, 4), (5, 4)]
    assert log.end_offset_for_epoch(3) == (3, 2)


def test_result_spans_all_batches_of_the_append(log: UnifiedLog) -> None:
    data = make_batch(2, first_timestamp=NOW_MS + 50) + make_batch(3)
    assert log.append_as_leader(data, 0) == LogAppendInfo(0, 4, log_start_offset=0)
    assert log.offset_of_max_timestamp() == OffsetAndTimestamp(1, NOW_MS + 51, 0)


def test_append_time_is_that_of_the_broker(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(LogConfig(message_timestamp_type="LogAppendTime"))
    clock.elapsed_ms = 7
    info = log.append_as_leader(make_batch(2, first_timestamp=5), 0)
    assert info.log_append_time == NOW_MS + 7
    assert [record.timestamp for record in read_all(log)[0].records()] == [NOW_MS + 7] * 2


def test_rejected_batch_rejects_the_whole_request(log: UnifiedLog) -> None:
    damaged = make_batch(1)
    damaged[57:61] = (5).to_bytes(4)  # the number of records
    with pytest.raises(CorruptRecordError):
        log.append_as_leader(make_batch(2) + damaged, 0)
    assert (log.log_end_offset, read_all(log)) == (0, [])


def test_request_that_no_segment_can_hold_is_rejected(bench: LogBench) -> None:
    log = bench.open(LogConfig(segment_bytes=300))
    with pytest.raises(RecordBatchTooLargeError):
        log.append_as_leader(make_batch(3, value=b"v" * 100), 0)
    assert log.log_end_offset == 0


def test_full_segment_is_rolled_before_the_append(bench: LogBench) -> None:
    size = len(make_batch(1))
    log = bench.open(LogConfig(segment_bytes=2 * size))
    for _ in range(5):
        log.append_as_leader(make_batch(1), 0)
    assert [path.stem for path in sorted(bench.directory.glob("*.log"))] == [
        f"{offset:020d}" for offset in (0, 2, 4)
    ]
    # A snapshot of the producer state is taken at each roll.
    assert bench.path(4, ".snapshot").exists()


def test_duplicate_has_the_result_of_the_first_append(log: UnifiedLog) -> None:
    first = log.append_as_leader(make_batch(2, producer=(9, 0, 0)), 0)
    log.append_as_leader(make_batch(2, producer=(9, 0, 2)), 0)
    again = log.append_as_leader(make_batch(2, producer=(9, 0, 0)), 0)
    assert (again.first_offset, again.last_offset) == (first.first_offset, first.last_offset)
    assert (again.duplicate, again.log_append_time) == (True, NOW_MS + 1)
    assert log.log_end_offset == 4


def test_rejected_sequence_changes_no_producer_state(log: UnifiedLog) -> None:
    log.append_as_leader(make_batch(2, producer=(9, 0, 0)), 0)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(
            make_batch(1, producer=(9, 0, 2)) + make_batch(1, producer=(9, 0, 7)), 0
        )
    assert log.log_end_offset == 2
    log.append_as_leader(make_batch(1, producer=(9, 0, 2)), 0)
    assert log.log_end_offset == 3


def test_failed_write_changes_neither_log_nor_producer_state(
    log: UnifiedLog, files: FaultySystemFiles
) -> None:
    log.append_as_leader(make_batch(1, producer=(9, 0, 0)), 0)
    files.fail("write", ".log", errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(make_batch(2, producer=(9, 0, 1)), 0)
    files.heal()
    assert log.log_end_offset == 1
    info = log.append_as_leader(make_batch(2, producer=(9, 0, 1)), 0)
    assert (info.first_offset, info.duplicate) == (1, False)


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_marker_ends_the_transaction_and_aborts_are_indexed(
    log: UnifiedLog, kind: ControlRecordType
) -> None:
    log.append_as_leader(make_batch(2, producer=(9, 0, 0), transactional=True), 0)
    log.high_watermark = 2
    assert log.last_stable_offset == 0
    marker = build_end_txn_batch(EndTxnMarker(kind, 0), 9, 0, NOW_MS)
    log.append_as_leader(marker, 0, origin="coordinator")
    log.high_watermark = 3
    assert log.last_stable_offset == 3
    found = log.read(0, 1 << 20, include_aborted=True).aborted_transactions
    expected = [(9, 0, 2)] if kind is ControlRecordType.ABORT else []
    assert [txn[:3] for txn in found] == expected
