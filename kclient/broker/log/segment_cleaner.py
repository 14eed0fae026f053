"""Cleaner of a log's segments: rewrites them without obsolete records (Kafka: Cleaner)."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple, Self

from kclient.broker.log.cleaned_segment import CleanedSegment, CleaningAbandonedError
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.log_state import LogState
from kclient.broker.log.producer_state_entry import ProducerStateEntry
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import WireBytes
from kclient.record import ControlRecordType, Record, RecordBatch, iter_records
from kclient.record.sealing import with_records, without_records

_DIGEST_SIZE = 16
_BYTES_PER_ENTRY = 192
"""Upper bound of an entry's memory in CPython: digest, offset, and its share of the table."""


class OffsetMap:
    """Offsets by digest of the key, so that entries have a fixed size.

    The digest is cryptographic: a producer cannot construct colliding keys.

    Attributes:
        next_offset: Offset after the last batch that was added completely.
    """

    def __init__(self, memory_bytes: int, start_offset: int) -> None:
        self._capacity = max(1, memory_bytes // _BYTES_PER_ENTRY)
        self._offsets: dict[bytes, int] = {}
        self.next_offset = start_offset

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether the memory is used up."""
        return len(self._offsets) >= self._capacity

    def put(self, key: bytes, offset: int) -> None:
        """Set the offset of a key's record; offsets must ascend."""
        self._offsets[_digest(key)] = offset

    def is_latest(self, key: bytes, offset: int) -> bool:
        """Return whether the map has no later record with this key."""
        return offset >= self._offsets.get(_digest(key), -1)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_SIZE).digest()


class CleanedTransactions:
    """Tracks the transactions of a log from an offset on, batch by batch.

    Records of aborted transactions are discarded immediately. A marker is discarded when no record
    of its transaction is left: until then consumers need it to see the end of the transaction.
    """

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._pending = deque(sorted(aborted, key=lambda txn: txn.first_offset))
        self._aborted: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()
        self._kept_aborts: list[AbortedTxn] = []

    def on_batch_read(self, batch: RecordBatch) -> bool:
        """Add the next batch; return whether its records can be discarded."""
        self._advance(batch.last_offset)
        if batch.is_control:
            return self._on_control_batch_read(batch)
        if not batch.is_transactional:
            return False
        self._seen.add(batch.producer_id)
        return batch.producer_id in self._aborted

    def drain_kept_aborts(self) -> list[AbortedTxn]:
        """Return the aborted transactions whose markers were kept since the last call."""
        kept, self._kept_aborts = self._kept_aborts, []
        return kept

    def _advance(self, offset: int) -> None:
        while self._pending and self._pending[0].first_offset <= offset:
            txn = self._pending.popleft()
            self._aborted.setdefault(txn.producer_id, txn)

    def _on_control_batch_read(self, marker: RecordBatch) -> bool:
        records = marker.records()
        if not records:
            return True
        kind = ControlRecordType.parse(records[0].key)
        had_records = marker.producer_id in self._seen
        if kind is ControlRecordType.ABORT:
            aborted = self._aborted.pop(marker.producer_id, None)
            if aborted is not None and had_records:
                self._kept_aborts.append(aborted)
        elif kind is not ControlRecordType.COMMIT:
            return False
        self._seen.discard(marker.producer_id)
        return not had_records


_LATEST_MS = 2**63 - 1


class RetainedBatches(NamedTuple):
    """Batches that the cleaner must keep, because producer state is restored from them.

    Attributes:
        ends: Pairs of producer id and last offset.
        epochs: Epoch by producer id, for producers with markers only.
    """

    ends: frozenset[tuple[int, int]]
    epochs: Mapping[int, int]

    @classmethod
    def of(cls, entries: Mapping[int, ProducerStateEntry]) -> Self:
        """Return the batches that a log's producer state refers to."""
        ends = frozenset(
            (producer_id, batch.last_offset)
            for producer_id, entry in entries.items()
            for batch in entry.batches
        )
        epochs = {
            producer_id: entry.producer_epoch
            for producer_id, entry in entries.items()
            if not entry.batches
        }
        return cls(ends, epochs)

    def contains(self, batch: RecordBatch) -> bool:
        """Return whether a batch must be kept."""
        if not batch.has_producer_id:
            return False
        if batch.is_control:
            return self.epochs.get(batch.producer_id) == batch.producer_epoch
        return (batch.producer_id, batch.last_offset) in self.ends


class BatchFilter:
    """Record filter of one cleaner run. Batches must be passed in offset order.

    A record is retained if no later record has its key. A tombstone is retained until
    delete.retention.ms after the cleaner first saw it, so that consumers read it. An empty batch is
    removed unless producer state refers to it.
    """

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        retained: RetainedBatches,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """Create a filter.

        Args:
            offsets: Last offset of each key, up to the end of the cleaned range.
            transactions: Tracks the transactions.
            retained: Batches that must be kept.
            now_ms: Wall time.
            delete_retention_ms: Retention time of tombstones.
        """
        self._offsets = offsets
        self.transactions = transactions
        self._retained = retained
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, _LATEST_MS)

    def apply(self, batch: RecordBatch) -> WireBytes:
        """Return the retained part of a batch: the batch itself, a smaller one, or no bytes.

        Raises:
            CorruptRecordError: A record is malformed.
            CompressionError: The records cannot be decompressed.
        """
        is_obsolete = self.transactions.on_batch_read(batch)
        if not is_obsolete and batch.base_offset >= self._offsets.next_offset:
            return batch.buffer
        kept = self._kept(batch, is_obsolete=is_obsolete)
        if not kept:
            return without_records(batch) if self._retained.contains(batch) else b""
        ends_nothing = is_obsolete and batch.is_control
        horizon_ms = self._new_horizon(batch, kept, ends_nothing=ends_nothing)
        if len(kept) == batch.count and horizon_ms is None:
            return batch.buffer
        return with_records(batch, kept, horizon_ms)

    def _kept(self, batch: RecordBatch, *, is_obsolete: bool) -> list[Record]:
        horizon_ms = batch.delete_horizon_ms
        is_over = horizon_ms is not None and horizon_ms <= self._now_ms
        if batch.is_control:
            return [] if is_obsolete and is_over else batch.records()
        if is_obsolete:
            return []
        return [
            Record(record.offset, record.timestamp_ms, record.key, record.value, record.headers)
            for record in iter_records(batch)  # those that are not kept need no memory
            if record.key is not None
            and self._offsets.is_latest(record.key, record.offset)
            and not (record.value is None and is_over)
        ]

    def _new_horizon(
        self, batch: RecordBatch, kept: list[Record], *, ends_nothing: bool
    ) -> int | None:
        """Return the delete horizon to write into a batch that needs one and has none."""
        if batch.delete_horizon_ms is not None:
            return None
        has_tombstones = not batch.is_control and any(record.value is None for record in kept)
        return self._horizon_ms if has_tombstones or ends_nothing else None


SLICE_BYTES = 32 * 1024
"""Bytes read per slice; the calling thread can run other tasks in between."""


class SegmentCleaner:
    """The two passes of compaction over inactive segments, in slices.

    Each method is a generator that yields after every slice. No lock is held while batches are
    read or written; `SegmentSwap` makes the result part of the log.
    """

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._local = state.local

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
        with self._state.locked("find aborted transactions"):
            return [
                txn
                for segment in self._local.all_segments()
                for txn in segment.transactions.aborted_txns()
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
        state = self._state
        with state.guarded("clean"):
            try:
                yield
            except OSError:
                with state.lock:
                    if self._local.is_closed or not segment.is_open:
                        raise CleaningAbandonedError(f"{state.partition}: closed") from None
                raise


def _put_keys(offsets: OffsetMap, batch: RecordBatch) -> None:
    for record in iter_records(batch):
        if record.key is not None:
            offsets.put(record.key, record.offset)
