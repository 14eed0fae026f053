"""Cleaner of segments: offset map, transactions, record filter, both passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.log.cleaned_segment import CleanedSegment, CleaningAbandonedError
from kclient.broker.log.log_state import LogState
from kclient.broker.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from kclient.broker.log.segment_cleaner import (
    SLICE_BYTES,
    BatchFilter,
    CleanedTransactions,
    OffsetMap,
    RetainedBatches,
    SegmentCleaner,
)
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import CorruptRecordError
from kclient.record import ControlRecordType, EndTxnMarker, RecordBatch, build_end_txn_batch
from tests.support.disks.clean_log import keyed_batch, write
from tests.support.disks.log_bench import NOW_MS, LogBench, make_batch

NOTHING = RetainedBatches(frozenset(), {})
RETENTION_MS = 1_000


def batch_at(offset: int, *pairs: tuple[bytes | None, bytes | None], **how: object) -> RecordBatch:
    batch = RecordBatch(keyed_batch(pairs, **how))  # type: ignore[arg-type]  # by name
    batch.assign(offset, 0)
    return batch


def marker_at(offset: int, kind: ControlRecordType, producer_id: int = 7) -> RecordBatch:
    marker = EndTxnMarker(kind, 0)
    data = build_end_txn_batch(marker, producer_id, 0, NOW_MS, base_offset=offset)
    return RecordBatch(bytearray(data))


def offset_map(*entries: tuple[bytes, int], next_offset: int = 1_000) -> OffsetMap:
    offsets = OffsetMap(1 << 20, 0)
    for key, offset in entries:
        offsets.put(key, offset)
    offsets.next_offset = next_offset
    return offsets


def batch_filter(
    offsets: OffsetMap,
    *aborted: AbortedTxn,
    retained: RetainedBatches = NOTHING,
    now_ms: int = NOW_MS,
) -> BatchFilter:
    return BatchFilter(offsets, CleanedTransactions(aborted), retained, now_ms, RETENTION_MS)


def kept(result: object) -> list[tuple[int, bytes | None]]:
    assert isinstance(result, bytes | bytearray | memoryview)
    return [(each.offset, each.key) for each in RecordBatch(result).records()]


@given(st.lists(st.binary(max_size=3), max_size=50))
def test_offset_map_knows_the_last_offset_of_each_key(keys: list[bytes]) -> None:
    offsets = offset_map(*((key, offset) for offset, key in enumerate(keys)))
    assert len(offsets) == len(set(keys))
    for offset, key in enumerate(keys):
        assert offsets.is_latest(key, offset) is (key not in keys[offset + 1 :])
    assert offsets.is_latest(b"another key", 0)


def test_memory_limits_the_number_of_keys() -> None:
    offsets = OffsetMap(400, 5)
    assert offsets.next_offset == 5
    offsets.put(b"a", 5)
    offsets.put(b"a", 6)
    full = [offsets.is_full]
    offsets.put(b"b", 7)
    full.append(offsets.is_full)
    assert full == [False, True]
    assert len(OffsetMap(0, 0)) == 0
    assert not OffsetMap(0, 0).is_full  # one key at least


def test_record_is_retained_if_no_later_one_has_its_key() -> None:
    batch = batch_at(10, (b"a", b"1"), (b"b", b"1"), (None, b"x"), (b"a", b"2"))
    result = batch_filter(offset_map((b"a", 13), (b"b", 11))).apply(batch)
    assert kept(result) == [(11, b"b"), (13, b"a")]
    assert batch_filter(offset_map((b"a", 20), (b"b", 21))).apply(batch) == b""


def test_unchanged_batch_is_the_same_bytes() -> None:
    batch = batch_at(10, (b"a", b"1"), (b"b", b"1"))
    assert batch_filter(offset_map((b"a", 10), (b"b", 11))).apply(batch) is batch.buffer


def test_batch_after_the_map_is_not_changed() -> None:
    batch = batch_at(10, (b"a", b"1"), (b"a", None), (None, b""))
    assert batch_filter(offset_map((b"a", 11), next_offset=10)).apply(batch) is batch.buffer


def test_tombstone_gets_a_horizon_and_is_removed_after_it() -> None:
    batch = batch_at(10, (b"a", None), (b"b", b"1"))
    offsets = offset_map((b"a", 10), (b"b", 11))
    first = RecordBatch(batch_filter(offsets).apply(batch))
    assert first.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert kept(first.buffer) == [(10, b"a"), (11, b"b")]
    before = batch_filter(offsets, now_ms=NOW_MS + RETENTION_MS - 1).apply(first)
    assert before is first.buffer
    after = batch_filter(offsets, now_ms=NOW_MS + RETENTION_MS).apply(first)
    assert kept(after) == [(11, b"b")]


def test_empty_batch_is_kept_while_producer_state_refers_to_it() -> None:
    batch = batch_at(10, (b"a", b"1"), producer=(7, 2, 40))
    entry = ProducerStateEntry(7, 2)
    entry.add_batch(2, BatchMetadata.of(batch))
    retained = RetainedBatches.of({7: entry})
    result = RecordBatch(batch_filter(offset_map((b"a", 20)), retained=retained).apply(batch))
    assert (result.base_offset, result.last_offset, result.count) == (10, 10, 0)
    assert (result.producer_id, result.producer_epoch, result.base_sequence) == (7, 2, 40)
    assert batch_filter(offset_map((b"a", 20))).apply(batch) == b""


def test_marker_of_a_producer_without_batches_is_retained_in_its_epoch() -> None:
    retained = RetainedBatches.of({7: ProducerStateEntry(7, 0)})
    assert retained.contains(marker_at(3, ControlRecordType.COMMIT))
    assert not retained.contains(marker_at(3, ControlRecordType.COMMIT, producer_id=8))
    other = RetainedBatches.of({7: ProducerStateEntry(7, 1)})
    assert not other.contains(marker_at(3, ControlRecordType.COMMIT))
    assert not retained.contains(batch_at(3, (b"a", b"1")))


def test_records_of_aborted_transaction_are_removed_and_the_marker_stays() -> None:
    aborted = AbortedTxn(7, 10, 12, 10)
    filter_ = batch_filter(offset_map((b"a", 10), (b"b", 11)), aborted)
    data = batch_at(10, (b"a", b"1"), producer=(7, 0, 0), transactional=True)
    other = batch_at(11, (b"b", b"1"), producer=(8, 0, 0), transactional=True)
    marker = marker_at(12, ControlRecordType.ABORT)
    assert filter_.apply(data) == b""
    assert filter_.apply(other) is other.buffer
    assert filter_.apply(marker) is marker.buffer
    assert filter_.transactions.drain_kept_aborts() == [aborted]
    assert filter_.transactions.drain_kept_aborts() == []


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_marker_without_records_is_removed_after_its_horizon(kind: ControlRecordType) -> None:
    marker = marker_at(12, kind)
    first = RecordBatch(batch_filter(offset_map(), AbortedTxn(7, 10, 12, 10)).apply(marker))
    assert first.delete_horizon_ms == NOW_MS + RETENTION_MS
    later = batch_filter(offset_map(), now_ms=NOW_MS + RETENTION_MS)
    assert later.apply(first) == b""


def test_committed_transaction_of_the_same_producer_is_kept_after_an_aborted_one() -> None:
    transactions = CleanedTransactions([AbortedTxn(7, 10, 11, 10)])
    steps = [
        batch_at(10, (b"a", b"1"), producer=(7, 0, 0), transactional=True),
        marker_at(11, ControlRecordType.ABORT),
        batch_at(12, (b"a", b"2"), producer=(7, 0, 1), transactional=True),
        marker_at(13, ControlRecordType.COMMIT),
        marker_at(14, ControlRecordType.COMMIT),  # of a transaction whose records are gone
    ]
    found = [transactions.on_batch_read(step) for step in steps]
    assert found == [True, False, False, False, True]


# --- both passes


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open()


@pytest.fixture
def state(log: UnifiedLog) -> LogState:
    return log._state


def test_map_is_filled_up_to_an_offset(log: UnifiedLog, state: LogState) -> None:
    write(log, (b"a", b"1"), (None, b"x"))
    write(log, (b"b", b"1"))
    write(log, (b"a", b"2"))
    offsets = OffsetMap(1 << 20, 0)
    assert list(SegmentCleaner(state).fill(offsets, state.local.all_segments(), 3)) == []
    assert (len(offsets), offsets.next_offset) == (2, 3)
    assert offsets.is_latest(b"a", 0)
    assert not offsets.is_latest(b"b", 1)


def test_full_map_ends_after_the_last_whole_batch(log: UnifiedLog, state: LogState) -> None:
    for number in range(10):
        write(log, (b"%d" % number, b""), (b"x%d" % number, b""))
    offsets = OffsetMap(192 * 3, 0)
    list(SegmentCleaner(state).fill(offsets, state.local.all_segments(), 20))
    assert offsets.next_offset == 4


def test_passes_yield_after_each_slice(log: UnifiedLog, state: LogState) -> None:
    for number in range(8):
        write(log, (b"%d" % number, b"v" * (SLICE_BYTES // 2)))
    cleaner, segments = SegmentCleaner(state), state.local.all_segments()
    offsets = OffsetMap(1 << 20, 0)
    slices = sum(1 for _ in cleaner.fill(offsets, segments, 8))
    assert 3 <= slices <= 4
    cleaned = CleanedSegment(state, 0)
    assert sum(1 for _ in cleaner.rewrite(segments, batch_filter(offsets), cleaned)) == slices
    assert not cleaned.is_changed
    assert cleaned.segment.size == segments[0].size
    cleaned.drop()


def test_rewrite_keeps_what_the_filter_keeps(log: UnifiedLog, state: LogState) -> None:
    write(log, (b"a", b"1"), (b"b", b"1"))
    write(log, (b"a", b"2"))
    cleaner, segments = SegmentCleaner(state), state.local.all_segments()
    offsets = OffsetMap(1 << 20, 0)
    list(cleaner.fill(offsets, segments, 3))
    cleaned = CleanedSegment(state, 0)
    list(cleaner.rewrite(segments, batch_filter(offsets), cleaned))
    assert cleaned.is_changed
    records = [r for each in cleaned.segment.records.batches(0) for r in each.records()]
    assert [(record.offset, record.key) for record in records] == [(1, b"b"), (2, b"a")]
    cleaned.drop()


def test_incomplete_batch_aborts_the_pass(log: UnifiedLog, state: LogState) -> None:
    write(log, (b"a", b"1"))
    (segment,) = state.local.all_segments()
    segment.records.truncate_to(segment.size - 1)
    with pytest.raises(CorruptRecordError, match="incomplete batch at position 0"):
        list(SegmentCleaner(state).fill(OffsetMap(1 << 20, 0), [segment], 1))


def test_closed_log_abandons_the_pass(log: UnifiedLog, state: LogState) -> None:
    for _ in range(8):
        log.append_as_leader(make_batch(1, value=b"v" * 300_000), 0)
    segments = state.local.all_segments()
    slices = SegmentCleaner(state).fill(OffsetMap(1 << 20, 0), segments, 8)
    next(slices)
    log.close()
    with pytest.raises(CleaningAbandonedError, match="topic-0: closed"):
        list(slices)


def test_aborted_transactions_that_ended_before_an_offset_are_ignored(
    log: UnifiedLog, state: LogState
) -> None:
    for offset, producer_id in ((0, 7), (2, 8)):
        log.append_as_leader(make_batch(1, producer=(producer_id, 0, 0), transactional=True), 0)
        marker = EndTxnMarker(ControlRecordType.ABORT, 0)
        data = build_end_txn_batch(marker, producer_id, 0, NOW_MS, base_offset=offset + 1)
        log.append_as_leader(data, 0, origin="coordinator")
    cleaner = SegmentCleaner(state)
    assert [txn.producer_id for txn in cleaner.aborted_from(0)] == [7, 8]
    assert [txn.producer_id for txn in cleaner.aborted_from(2)] == [8]
