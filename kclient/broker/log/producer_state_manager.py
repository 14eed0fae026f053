"""Producer state of a log, for idempotence and transactions (Kafka: ProducerStateManager)."""

import logging
from bisect import insort
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from kclient.broker.log import log_file_utils
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from kclient.broker.log.producer_state_entry import (
    BatchMetadata,
    CompletedTxn,
    ProducerAppendInfo,
    ProducerStateEntry,
)
from kclient.broker.log.transaction_verification import (
    OPEN_TRANSACTION,
    VerificationGuard,
    VerificationStates,
)
from kclient.common.files import Files
from kclient.common.runtime import Clock
from kclient.record import BatchHeader

_log = logging.getLogger(__name__)
_SUFFIX = log_file_utils.PRODUCER_SNAPSHOT_FILE_SUFFIX


class ProducerLimits(NamedTuple):
    """Limits of the producer state of one log.

    Attributes:
        expiration_ms: ``producer.id.expiration.ms``: time after the last append, or after the log
            was loaded, by the monotonic clock.
        max_ids: ``max.producer.ids.per.partition``. Beyond it the longest idle producer is
            evicted; its next batch is accepted with any sequence.
    """

    expiration_ms: int = 86_400_000
    max_ids: int = 10_000


DEFAULT_LIMITS = ProducerLimits()


class ProducerStateManager:
    """Producers of one log and their ongoing transactions, with snapshots on disk.

    The state covers all records before `map_end_offset`. Guarded by the log's lock.

    Unlike in Kafka, producers do not expire by record timestamps and the wall clock: after a jump
    of the wall clock, or with old record timestamps, a retried batch would be appended twice.

    Attributes:
        limits: Expiration and maximum number of producers.
        entries: State by producer id.
        map_end_offset: Offset after the last record covered by the state.
    """

    def __init__(
        self, files: Files, clock: Clock, directory: Path, partition: str, limits: ProducerLimits
    ) -> None:
        self._files = files
        self._clock = clock
        self._directory = directory
        self._partition = partition
        self.limits = limits
        self._verifications = VerificationStates(limits.max_ids)
        self.entries: dict[int, ProducerStateEntry] = {}
        self.map_end_offset = 0
        self._last_snapshot_offset = 0
        self._snapshots: list[int] = []
        # First offset of a transaction -> producer id; of a completed one -> offset of the marker.
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}

    def load_snapshot_list(self) -> None:
        """List the snapshots in the directory."""
        self._snapshots = sorted(
            offset
            for name in self._files.list_directory(self._directory)
            if name.endswith(_SUFFIX)
            and (offset := log_file_utils.base_offset_of(name)) is not None
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is no producer and no unreplicated transaction."""
        return not self.entries and not self._unreplicated

    @property
    def snapshots(self) -> tuple[int, ...]:
        """Offsets of all snapshots, in order."""
        return tuple(self._snapshots)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of a transaction that is ongoing, or whose marker is not replicated."""
        if not self._ongoing and not self._unreplicated:
            return None  # as without transactions
        return min((*self._ongoing, *self._unreplicated), default=None)

    def find_duplicate(self, batches: Iterable[BatchHeader]) -> BatchMetadata | None:
        """Return the batch that one of these repeats, or None."""
        for batch in batches:
            entry = self.entries.get(batch.producer_id)
            if entry is not None:
                found = entry.find_duplicate(
                    batch.producer_epoch, batch.base_sequence, batch.last_sequence
                )
                if found is not None:
                    return found
        return None

    def prepare_update(
        self,
        producer_id: int,
        origin: AppendOrigin | None,
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> ProducerAppendInfo:
        """Return an append on a producer's state, which `update` applies.

        Args:
            producer_id: The producer.
            origin: Origin of the append; None for batches that were appended before.
            transaction_version: ``transaction.version`` of the transaction that a marker ends.
            guard: Guard of the append to a transaction; None if transactions are not verified.
        """
        verification = None if guard is None else self._verifications.find(producer_id)
        current = self.entries.get(producer_id) or ProducerStateEntry(producer_id)
        return ProducerAppendInfo(
            self._partition, current, origin, transaction_version, guard, verification
        )

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """Return the guard of an append to a transaction.

        It is `OPEN_TRANSACTION` if the transaction is open. Otherwise the coordinator has to
        confirm the transaction before the append.

        Args:
            producer_id: The producer.
            epoch: Its epoch.
            sequence: First sequence of the append, -1 for none.
            supports_epoch_bump: Whether each end of a transaction of this producer raises the
                epoch.
        """
        entry = self.entries.get(producer_id)
        if entry is not None and entry.has_ongoing_transaction(epoch):
            return OPEN_TRANSACTION
        return self._verifications.begin(
            producer_id,
            epoch,
            sequence,
            self._clock.monotonic_ms(),
            supports_epoch_bump=supports_epoch_bump,
        )

    def update(self, info: ProducerAppendInfo) -> None:
        """Apply an append that `prepare_update` returned."""
        entry = info.entry
        entry.last_update_ms = self._clock.monotonic_ms()
        # Entries are ordered by last update: the first one is the longest idle.
        self.entries.pop(entry.producer_id, None)
        self.entries[entry.producer_id] = entry
        if len(self.entries) > self.limits.max_ids:
            self._evict_longest_idle()
        for txn in info.started:
            self._ongoing[txn.first_offset] = txn.producer_id
        if info.is_transactional:
            self._verifications.end(entry.producer_id, marker_epoch=info.marker_epoch)

    def complete_txn(self, completed: CompletedTxn) -> None:
        """Complete a transaction; it is stable once the marker is replicated."""
        # In this order: `first_unstable_offset` may be read meanwhile, without the lock.
        self._unreplicated[completed.first_offset] = completed.last_offset
        self._ongoing.pop(completed.first_offset, None)

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Return the last stable offset after this transaction is completed."""
        others = (
            first for first, producer in self._ongoing.items() if producer != completed.producer_id
        )
        return min(others, default=completed.last_offset + 1)

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Remove completed transactions whose marker is replicated."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Remove completed transactions before the new log start offset."""
        self._unreplicated = {
            first: last for first, last in self._unreplicated.items() if last >= log_start_offset
        }
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        self._last_snapshot_offset = self._snapshots[-1] if self._snapshots else log_start_offset

    def remove_expired(self) -> None:
        """Remove producers and verifications older than `producer.id.expiration.ms`."""
        latest_ms = self._clock.monotonic_ms() - self.limits.expiration_ms
        self._verifications.remove_expired(latest_ms)
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset is None and entry.last_update_ms <= latest_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]

    def take_snapshot(self, *, flush: bool = False) -> None:
        """Write a snapshot unless there is one of this offset."""
        if self.map_end_offset <= self._last_snapshot_offset:
            return
        path = self._path(self.map_end_offset)
        data = encode_snapshot(self.entries.values())
        file = self._files.open(path, create=True)
        try:
            file.write_at(0, data)
            file.truncate(len(data))
            if flush:
                file.flush()
        finally:
            file.close()
        if self.map_end_offset not in self._snapshots:
            insort(self._snapshots, self.map_end_offset)
        self._last_snapshot_offset = self.map_end_offset

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int) -> None:
        """Reload the newest snapshot in a range, unless the state covers its end already."""
        self._remove_snapshots(offset for offset in self.snapshots if offset > log_end_offset)
        if self.map_end_offset == log_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self.entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._load_from_snapshot(log_start_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all state and start at an offset."""
        self.entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._remove_snapshots(self.snapshots)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def remove_snapshot(self, offset: int) -> None:
        """Delete the snapshot of a deleted segment, if it exists."""
        self._remove_snapshots([offset])

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """Delete the snapshots that belong to no segment, except for the newest."""
        newest = self._snapshots[-1] if self._snapshots else -1
        segments = set(segment_base_offsets)
        last_segment = max(segments, default=-1)
        self._remove_snapshots(
            offset
            for offset in self.snapshots
            if offset not in segments and not (offset == newest and newest > last_segment)
        )

    def moved_to(self, directory: Path) -> None:
        """Update the directory after it was renamed."""
        self._directory = directory

    def _load_from_snapshot(self, log_start_offset: int) -> None:
        while self._snapshots:
            offset = self._snapshots[-1]
            try:
                loaded = decode_snapshot(self._files.read_bytes(self._path(offset)))
            except CorruptSnapshotError as problem:
                _log.warning("%s: deleting snapshot %d: %s", self._partition, offset, problem)
                self._remove_snapshots([offset])
                continue
            for entry in loaded:
                self._load_entry(entry)
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def _load_entry(self, entry: ProducerStateEntry) -> None:
        entry.last_update_ms = self._clock.monotonic_ms()
        self.entries[entry.producer_id] = entry
        if entry.current_txn_first_offset is not None:
            self._ongoing[entry.current_txn_first_offset] = entry.producer_id

    def _evict_longest_idle(self) -> None:
        """Remove the longest idle producer that has no ongoing transaction."""
        for producer_id, entry in self.entries.items():
            if entry.current_txn_first_offset is None:
                del self.entries[producer_id]
                return

    def _remove_snapshots(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            self._files.remove(self._path(offset))
            if offset in self._snapshots:
                self._snapshots.remove(offset)

    def _path(self, offset: int) -> Path:
        return log_file_utils.segment_file(self._directory, offset, _SUFFIX)
