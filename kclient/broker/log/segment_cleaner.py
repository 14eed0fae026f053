"""Cleaner of a log's segments: rewrites them without obsolete records (Kafka: Cleaner)."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from kclient.broker.log.batch_filter import BatchFilter
from kclient.broker.log.cleaned_segment import CleanedSegment
from kclient.broker.log.cleaned_transactions import CleanedTransactions
from kclient.broker.log.log_errors import CleaningAbandonedError
from kclient.broker.log.log_parts import LogParts
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.offset_map import OffsetMap
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.broker_errors import CorruptRecordError
from kclient.record import RecordBatch

SLICE_BYTES = 32 * 1024
"""Bytes read per slice; the calling thread can run other tasks in between."""


class SegmentCleaner:
    """The two passes of compaction over inactive segments, in slices.

    Each method is a generator that yields after every slice. No lock is held while batches are
    read or written; `SegmentSwap` makes the result part of the log.
    """

    def __init__(self, parts: LogParts) -> None:
        self._parts = parts

    def fill(
        self, offsets: OffsetMap, segments: list[LogSegment], end_offset: int
    ) -> Generator[None, None, None]:
        """Fill the offset map, up to an offset or until it is full.

        Raises:
            CorruptRecordError: A batch is damaged.
            CompressionError: A batch cannot be decompressed.
            CleaningAbandonedError: The log was closed.
            KafkaStorageError: The disk failed.
        """
        transactions = CleanedTransactions(self.aborted_from(offsets.next_offset))
        start_offset = offsets.next_offset
        for segment in segments:
            for batch in self._sliced(segment):
                if batch is None:
                    yield
                    continue
                if batch.last_offset >= end_offset or offsets.is_full:
                    return
                if batch.last_offset < start_offset:
                    continue
                if not transactions.on_batch_read(batch) and not batch.is_control:
                    _put_keys(offsets, batch)
                offsets.next_offset = batch.next_offset

    def aborted_from(self, offset: int) -> list[AbortedTxn]:
        """Return the aborted transactions that ended at or after an offset."""
        with self._parts.locked("find aborted transactions"):
            return [
                txn
                for segment in self._parts.local.segments.values()
                for txn in segment.indexes.transactions.aborted_txns()
                if txn.last_offset >= offset
            ]

    def rewrite(
        self, group: list[LogSegment], batch_filter: BatchFilter, cleaned: CleanedSegment
    ) -> Generator[None, None, None]:
        """Write the retained records of a group of segments into a new segment.

        Raises:
            KafkaError: As `fill`.
        """
        for segment in group:
            for batch in self._sliced(segment):
                if batch is None:
                    yield
                    continue
                kept = batch_filter.apply(batch)
                if kept is not batch.buffer:
                    cleaned.is_changed = True
                if len(kept):
                    cleaned.add(kept)
        cleaned.complete(batch_filter.transactions.drain_kept_aborts())

    def _sliced(self, segment: LogSegment) -> Iterator[RecordBatch | None]:
        """Iterate over a segment's verified batches, with None between two slices."""
        size, position, until = segment.size, 0, SLICE_BYTES
        with self._reading(segment):
            for batch in segment.records.batches(0, size):
                batch.ensure_valid()
                yield batch
                position = batch.end_position
                if position >= until:
                    yield None
                    until = position + SLICE_BYTES
        if position < size:
            raise CorruptRecordError(f"{segment}: incomplete batch at position {position}")

    @contextmanager
    def _reading(self, segment: LogSegment) -> Iterator[None]:
        """Convert errors into storage errors, unless the segment was closed concurrently."""
        parts = self._parts
        with parts.failures.guarding(f"{parts.partition}: clean"):
            try:
                yield
            except OSError:
                with parts.lock:
                    if parts.local.is_closed or not segment.is_open:
                        raise CleaningAbandonedError(f"{parts.partition}: closed") from None
                raise


def _put_keys(offsets: OffsetMap, batch: RecordBatch) -> None:
    for record in batch.records():
        if record.key is not None:
            offsets.put(record.key, record.offset)
