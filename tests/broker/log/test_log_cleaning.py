"""Compaction of one log."""

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import CorruptRecordError
from kclient.record import (
    CompressionType,
    ControlRecordType,
    EndTxnMarker,
    TimestampType,
    build_end_txn_batch,
)
from tests.support.disks.clean_log import clean, keyed_batch, last_values, records, write
from tests.support.disks.log_bench import NOW_MS, LogBench, ManualClock, read_all

DAY_MS = 86_400_000
COMPACT = LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)


def offsets_of(log: UnifiedLog) -> list[int]:
    return [record.offset for record in records(log)]


def names(bench: LogBench) -> set[str]:
    return {path.name for path in bench.directory.iterdir()}


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open(COMPACT)


def test_compaction_retains_last_record_of_each_key_at_its_offset(log: UnifiedLog) -> None:
    write(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    write(log, (b"a", b"2"), (b"b", b"2"))
    write(log, (b"a", b"3"))
    before = {record.offset: record for record in records(log)}
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [2, 4, 5]
    assert [before[record.offset] for record in records(log)] == records(log)
    assert log.log_end_offset == 6
    assert log.cleaning.cleaned_to == 6


def test_rewritten_batch_keeps_base_and_last_offset(log: UnifiedLog) -> None:
    write(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"c", b"2"), (b"c", b"3"))
    write(log, (b"c", b"4"))
    log.maintenance.roll()
    [batch, _] = read_all(log)
    clean(log)
    [rest, last] = read_all(log)
    assert [record.offset for record in rest.records()] == [1, 2]
    assert (rest.base_offset, rest.last_offset) == (batch.base_offset, batch.last_offset)
    assert rest.partition_leader_epoch == batch.partition_leader_epoch
    assert rest.max_timestamp == rest.records()[-1].timestamp
    assert last.base_offset == 6


@pytest.mark.parametrize("codec", CompressionType)
def test_compaction_keeps_codec(log: UnifiedLog, codec: CompressionType) -> None:
    write(log, (b"a", b"x" * 500), (b"b", b"y" * 500), codec=codec)
    write(log, (b"a", None))
    log.maintenance.roll()
    clean(log)
    [rest, _] = read_all(log)
    assert rest.compression_type is codec
    assert [record.value for record in rest.records()] == [b"y" * 500]


def test_compaction_keeps_log_append_time(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(LogConfig(cleanup_policy=("compact",), message_timestamp_type="LogAppendTime"))
    clock.elapsed_ms = 5
    write(log, (b"a", b"1"), (b"b", b"1"), (b"b", b"2"))
    log.maintenance.roll()
    clean(log)
    [batch] = read_all(log)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in batch.records()} == {NOW_MS + 5}


def test_active_segment_and_unreplicated_records_are_not_cleaned(
    log: UnifiedLog,
) -> None:
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    clean(log)
    assert offsets_of(log) == [0, 1]  # all of it is active
    log.maintenance.roll()
    write(log, (b"a", b"3"))
    clean(log)
    assert offsets_of(log) == [1, 2]  # its replacement is in the active segment


def test_unreplicated_record_does_not_replace_replicated_one(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"), (b"b", b"2"))
    write(log, (b"a", b"3"))
    log.maintenance.roll()
    log._state.high_watermark = 3
    assert (log.cleaning.cleanable().start, log.cleaning.cleanable().end) == (0, 3)
    clean(log)
    assert offsets_of(log) == [1, 2, 3]
    assert log.cleaning.cleaned_to == 3


def test_tombstone_is_retained_for_delete_retention_ms(log: UnifiedLog, clock: ManualClock) -> None:
    write(log, (b"a", b"1"), (b"b", b"1"))
    write(log, (b"a", None), (b"c", b"1"))
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [1, 2, 3]
    [_, marked] = read_all(log)
    assert marked.delete_horizon_ms == NOW_MS + DAY_MS
    assert [record.timestamp for record in marked.records()] == [NOW_MS, NOW_MS + 1]

    clock.elapsed_ms = DAY_MS - 1
    write(log, (b"d", b"1"))
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [1, 2, 3, 4]

    clock.elapsed_ms = DAY_MS
    write(log, (b"e", b"1"))
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [1, 3, 4, 5]
    assert read_all(log)[1].delete_horizon_ms == NOW_MS + DAY_MS


def test_maximum_delete_retention_ms_is_accepted(bench: LogBench) -> None:
    log = bench.open(LogConfig(cleanup_policy=("compact",), delete_retention_ms=2**63 - 1))
    write(log, (b"a", None), timestamp=-1)
    log.maintenance.roll()
    clean(log)
    assert [(record.offset, record.timestamp) for record in records(log)] == [(0, -1)]


def test_compaction_removes_records_without_key(bench: LogBench) -> None:
    log = bench.open(LogConfig())
    write(log, (None, b"1"), (b"a", b"1"))
    log.config = COMPACT
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [1]


def test_small_segments_are_merged(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    for number in range(5):
        write(log, (b"%d" % number, b"x"), (b"same", b"x"))
        log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [0, 2, 4, 6, 8, 9]
    assert {name for name in names(bench) if name.endswith(".log")} == {
        f"{0:020d}.log",
        f"{10:020d}.log",
    }
    log.maintenance.purge_deleted(1e15)
    assert not [name for name in names(bench) if name.endswith((".deleted", ".swap", ".cleaned"))]
    bench.crash(log)
    again = bench.open(COMPACT)
    assert offsets_of(again) == [0, 2, 4, 6, 8, 9]
    assert again.log_end_offset == 10


def test_merged_segment_does_not_exceed_segment_bytes(bench: LogBench) -> None:
    log = bench.open(LogConfig(cleanup_policy=("compact",), segment_bytes=3000))
    for number in range(100):
        write(log, (b"%d" % number, b"x" * 200))
    log.maintenance.roll()
    clean(log)
    assert last_values(log) == {b"%d" % number: b"x" * 200 for number in range(100)}
    assert all(segment.size <= 3000 for segment in log._state.local.segments.values())
    assert len(log._state.local.segments) > 5


def test_clean_segment_is_not_rewritten(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    write(log, (b"a", b"1"), (b"b", b"1"))
    log.maintenance.roll()
    segment = log._state.local.all_segments()[0]
    clean(log)
    assert log._state.local.all_segments()[0] is segment
    assert log.cleaning.cleaned_to == 2
    assert not [name for name in names(bench) if name.endswith((".deleted", ".swap", ".cleaned"))]


def test_full_offset_map_limits_the_cleaned_range(log: UnifiedLog) -> None:
    for number in range(20):
        write(log, (b"%d" % number, b"1"))
    for number in range(20):
        write(log, (b"%d" % number, b"2"))
    log.maintenance.roll()
    before = last_values(log)
    clean(log, memory=10 * 192)
    assert log.cleaning.cleaned_to == 10
    for number in range(11, 41):
        clean(log, memory=1)  # one batch always fits
        assert log.cleaning.cleaned_to == number
        assert last_values(log) == before
    assert offsets_of(log) == list(range(20, 40))


def test_reader_skips_compacted_offsets(log: UnifiedLog) -> None:
    for number in range(50):
        write(log, (b"%d" % (number % 3), b"%d" % number))
    log.maintenance.roll()
    clean(log)
    for start in range(51):
        found = [record.offset for batch in read_all(log, start) for record in batch.records()]
        assert found == [offset for offset in (47, 48, 49) if offset >= start]
    assert log.log_start_offset == 0


def test_slice_being_sent_survives_segment_swap(log: UnifiedLog) -> None:
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    found = log.read(0, 1 << 20).records
    assert not isinstance(found, bytes)
    before = found.read()
    log.maintenance.roll()
    clean(log)
    assert found.read() == before
    log.maintenance.purge_deleted(1e15)
    assert found.read() == before


def test_log_whose_last_records_were_compacted_accepts_appends(
    bench: LogBench, clock: ManualClock
) -> None:
    log = bench.open(COMPACT)
    write(log, (b"a", b"1"))
    write(log, (b"a", None))
    for _ in range(2):
        log.maintenance.roll()
        clean(log)
        clock.elapsed_ms += 2 * DAY_MS
        write(log, (b"z", b"%d" % clock.elapsed_ms))
    assert offsets_of(log) == [2, 3]
    bench.crash(log)
    again = bench.open(COMPACT)
    assert again.log_end_offset == 4
    assert offsets_of(again) == [2, 3]


def test_retry_is_recognized_after_compaction_and_restart(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    for sequence in range(4):
        write(log, (b"a", b"%d" % sequence), producer=(7, 0, sequence))
    write(log, (b"a", b"x"))
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [4]
    kept = [batch for batch in read_all(log) if batch.producer_id == 7]
    assert [(batch.base_offset, batch.count, batch.last_sequence) for batch in kept] == [
        (offset, 0, offset) for offset in range(4)
    ]
    bench.crash(log)
    for path in bench.directory.glob("*.snapshot"):
        path.unlink()
    again = bench.open(COMPACT)
    for sequence in range(4):
        repeated = keyed_batch([(b"a", b"%d" % sequence)], producer=(7, 0, sequence))
        info = again.append_as_leader(repeated, 0)
        assert info.duplicate
        assert info.first_offset == sequence
    assert not again.append_as_leader(keyed_batch([(b"a", b"4")], producer=(7, 0, 4)), 0).duplicate


def test_batch_without_producer_state_is_removed(log: UnifiedLog) -> None:
    for sequence in range(9):
        write(log, (b"a", b"%d" % sequence), producer=(7, 0, sequence))
    log.maintenance.roll()
    clean(log)
    assert [batch.base_sequence for batch in read_all(log)] == [4, 5, 6, 7, 8]
    assert offsets_of(log) == [8]


def end_transaction(log: UnifiedLog, kind: ControlRecordType, producer: int = 5) -> None:
    marker = build_end_txn_batch(EndTxnMarker(kind, 0), producer, 0, NOW_MS)
    log.append_as_leader(marker, 0, origin="coordinator")
    log.high_watermark = log.log_end_offset


def test_aborted_records_are_removed_and_replace_no_record(
    bench: LogBench, clock: ManualClock
) -> None:
    log = bench.open(COMPACT)
    write(log, (b"a", b"1"))
    write(log, (b"a", b"never"), producer=(5, 0, 0), transactional=True)
    end_transaction(log, ControlRecordType.ABORT)
    write(log, (b"b", b"1"), producer=(5, 0, 1), transactional=True)
    end_transaction(log, ControlRecordType.COMMIT)
    log.maintenance.roll()
    clean(log)
    assert last_values(log) == {b"a": b"1", b"b": b"1"}
    controls = [batch for batch in read_all(log) if batch.is_control]
    assert [batch.base_offset for batch in controls] == [2, 4]
    found = log.read(0, 1 << 20, include_aborted=True)
    assert [txn.last_offset for txn in found.aborted_transactions or ()] == [2]
    for _ in range(3):
        clock.elapsed_ms += 2 * DAY_MS
        write(log, (b"b", b"2"))
        log.maintenance.roll()
        clean(log)
    assert last_values(log) == {b"a": b"1", b"b": b"2"}
    bench.crash(log)
    again = bench.open(COMPACT)
    assert last_values(again) == {b"a": b"1", b"b": b"2"}


def test_ongoing_transaction_limits_the_cleanable_range(log: UnifiedLog) -> None:
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    write(log, (b"a", b"3"), producer=(5, 0, 0), transactional=True)
    log.maintenance.roll()
    clean(log)
    assert offsets_of(log) == [1, 2]
    assert log.cleaning.cleaned_to == 2


def test_min_compaction_lag_excludes_recent_records(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(LogConfig(cleanup_policy=("compact",), min_compaction_lag_ms=1000))
    write(log, (b"a", b"1"))
    write(log, (b"a", b"2"))
    log.maintenance.roll()
    write(log, (b"a", b"3"), timestamp=NOW_MS + 500)
    log.maintenance.roll()
    clock.elapsed_ms = 1001
    assert log.cleaning.cleanable().end == 2
    clock.elapsed_ms = 1501
    assert log.cleaning.cleanable().end == 3


def test_max_compaction_lag_makes_log_cleanable(bench: LogBench, clock: ManualClock) -> None:
    config = LogConfig(
        cleanup_policy=("compact",), max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1.0
    )
    log = bench.open(config)
    write(log, (b"a", b"1"))
    log.maintenance.roll()
    clock.elapsed_ms = 1000
    assert not log.cleaning.cleanable().is_worthwhile(1.0)
    clock.elapsed_ms = 1001
    assert log.cleaning.cleanable().is_worthwhile(1.0)
    clean(log)
    assert not log.cleaning.cleanable().is_worthwhile(1.0)


def test_idle_compacted_log_is_rolled_by_age(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(
        LogConfig(cleanup_policy=("compact",), segment_ms=10_000, max_compaction_lag_ms=1000)
    )
    write(log, (b"a", b"1"))
    clock.elapsed_ms = 1000
    log.cleaning.roll_if_due()
    assert len(log._state.local.segments) == 1
    clock.elapsed_ms = 1001
    log.cleaning.roll_if_due()
    assert len(log._state.local.segments) == 2
    clock.elapsed_ms = 100_000
    log.cleaning.roll_if_due()
    assert len(log._state.local.segments) == 2  # there is nothing in the active one


def test_corrupt_batch_aborts_cleaning_without_loss(bench: LogBench) -> None:
    log = bench.open(COMPACT)
    for number in range(4):
        write(log, (b"a", b"value-%d" % number))
    log.maintenance.roll()
    path = bench.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        clean(log)
    assert path.read_bytes() == data
    assert not [name for name in names(bench) if name.endswith((".deleted", ".swap", ".cleaned"))]
