"""Filter that decides which records of a batch compaction retains (Kafka: RecordFilter)."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from kclient.broker.log.cleaned_transactions import CleanedTransactions
from kclient.broker.log.offset_map import OffsetMap
from kclient.broker.log.producer_state_entry import ProducerStateEntry
from kclient.common.files import WireBytes
from kclient.record import Record, RecordBatch
from kclient.record.rewriting import with_records, without_records

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
            record
            for record in batch.records()
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
