"""Brings a log's directory back to order after a start (Kafka: LogLoader)."""

import logging
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from kclient.broker.log import log_file_utils
from kclient.broker.log.batch_recall import recall_batches
from kclient.broker.log.file_records import (
    IS_CONTROL,
    IS_TRANSACTIONAL,
    BatchHeader,
    FileRecords,
    header_of,
    runs,
)
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_errors import CorruptIndexError, MalformedCheckpointError
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.producer_append_info import CompletedTxn, ProducerAppendInfo
from kclient.broker.log.producer_replay import telling_rows
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.swap_recovery import settle_directory
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import Files
from kclient.record import BatchColumns, EndTxnMarker, RecordBatch

_log = logging.getLogger(__name__)

BatchReader = Callable[[BatchHeader], RecordBatch]
"""Reads the batch whose fixed fields are known."""


class LogCheckpoint(NamedTuple):
    """What the checkpoints said about a log.

    Attributes:
        clean: Whether the last shutdown was clean.
        recovery_point: Everything before this offset was flushed.
        log_start_offset: First offset of the log.
    """

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0


class LogLoader:
    """Loads segments, cuts a torn tail, and rebuilds indexes, epochs and producers' state."""

    def __init__(
        self,
        files: Files,
        local: LocalLog,
        producers: ProducerStateManager,
        epochs: LeaderEpochFileCache,
    ) -> None:
        self._files = files
        self._local = local
        self._producers = producers
        self._epochs = epochs

    def load(self, checkpoint: LogCheckpoint) -> int:
        """Load everything; return the log's start offset.

        Args:
            checkpoint: What the checkpoints said.

        Raises:
            CorruptRecordError: After a clean shutdown, batches are damaged.
            OSError: A file could not be read or written.
        """
        settle_directory(self._files, self._local)
        self._load_segments()
        self._producers.load_snapshot_list()
        self._load_epochs()
        if not checkpoint.clean:
            self._recover_unflushed(checkpoint)
        elif self._is_torn():
            self._recover(self._local.active, checkpoint.log_start_offset)
        if not len(self._local.segments):
            self._local.segments.add(self._local.open_segment(checkpoint.log_start_offset))
        log_start_offset = self._settle_offsets(checkpoint)
        self._epochs.truncate_from_end(self._local.log_end_offset)
        self._epochs.truncate_from_start(log_start_offset)
        self._producers.remove_stray_snapshots(self._local.segments.base_offsets())
        self.rebuild_producers(log_start_offset, self._local.log_end_offset)
        recall_batches(self._local, self._producers)
        return log_start_offset

    def rebuild_producers(self, start_offset: int, end_offset: int) -> None:
        """Bring the producers' state to that of an offset: the nearest snapshot, then the log."""
        producers = self._producers
        producers.truncate_and_reload(start_offset, end_offset)
        for segment in self._local.segments.between(producers.map_end_offset, end_offset):
            first = segment.locate(max(producers.map_end_offset, start_offset))
            if first is None:
                continue
            for columns in segment.records.all_headers(first.position):
                before_end = bisect_left(columns.base_offsets, end_offset)
                for rows in runs(columns, before_end):
                    self._take_in(None, segment.records, columns, rows)
                if before_end < columns.batch_count:
                    break
        producers.update_map_end_offset(end_offset)

    def _load_segments(self) -> None:
        names = self._files.list_directory(self._local.directory)
        present = set(names)
        for name in names:
            base_offset = log_file_utils.base_offset_of(name)
            if base_offset is None:
                continue
            suffix = f".{name.partition('.')[2]}"
            if suffix == log_file_utils.LOG_FILE_SUFFIX:
                self._local.segments.add(self._local.open_segment(base_offset))
            elif suffix in log_file_utils.SEGMENT_SUFFIXES:
                stem = name.removesuffix(suffix)
                if stem + log_file_utils.LOG_FILE_SUFFIX not in present:
                    self._files.remove(self._local.directory / name)

    def _load_epochs(self) -> None:
        """Read the epochs' checkpoint, or, where it is of no use, the batches."""
        try:
            self._epochs.load()
            usable = self._epochs.latest_epoch is not None
        except MalformedCheckpointError as problem:
            _log.warning("%s: rebuilding the leader epochs: %s", self._local.partition, problem)
            usable = False
        if usable:
            return
        self._epochs.clear()
        for segment in self._local.segments.values():
            with suppress(CorruptRecordError):
                for columns in segment.records.all_headers():
                    self._note_epochs(columns, range(columns.batch_count))

    def _note_epochs(self, columns: BatchColumns, rows: range) -> None:
        epochs = columns.leader_epochs
        latest = _latest(self._epochs)
        if max(epochs[rows.start : rows.stop]) <= latest:
            return
        for row in rows:
            if epochs[row] > latest:
                latest = epochs[row]
                self._epochs.assign(latest, columns.base_offsets[row])

    def _recover_unflushed(self, checkpoint: LogCheckpoint) -> None:
        """Check what may not have reached the disk; older segments were flushed whole."""
        segments = self._local.segments
        suspects = segments.between(checkpoint.recovery_point, 2**63 - 1)
        for number, segment in enumerate(suspects):
            cut = self._recover(segment, checkpoint.log_start_offset)
            if self._local.config.flushes_appends:
                _flush_recovered(segment, checkpoint.recovery_point)
            if cut:
                for later in suspects[number + 1 :]:
                    _log.warning("%s: deleting %s behind a cut", self._local.partition, later)
                    segments.remove(later.base_offset)
                    later.delete_files()
                    later.release()
                return

    def _is_torn(self) -> bool:
        """Return whether behind the last whole batch stands something that is none.

        What is written behind it nobody would find.
        """
        if not len(self._local.segments):
            return False
        active = self._local.active
        end = 0
        for header in active.indexes.last_headers():
            end = header.end_position
        return end != active.size

    def _recover(self, segment: LogSegment, log_start_offset: int) -> int:
        self.rebuild_producers(log_start_offset, segment.base_offset)
        cut = segment.recover(
            lambda columns, rows: self._take_in(
                segment.indexes.transactions, segment.records, columns, rows
            )
        )
        self._producers.take_snapshot()
        return cut

    def _settle_offsets(self, checkpoint: LogCheckpoint) -> int:
        local = self._local
        for segment in local.segments.values():
            self._check_transactions(segment)
        end_offset = local.active.read_next_offset()
        start_offset = max(checkpoint.log_start_offset, local.segments.first.base_offset)
        if end_offset < start_offset:
            # The log was cut to before its start: nothing of it counts any more.
            _log.warning("%s: ends before its start %d", local.partition, start_offset)
            local.truncate_fully_and_start_at(start_offset)
            self._producers.truncate_fully_and_start_at(start_offset)
            end_offset = start_offset
        local.log_end_offset = end_offset
        local.active.indexes.prepare_for_append()
        if checkpoint.clean:
            local.recovery_point = end_offset
        else:
            local.recovery_point = min(checkpoint.recovery_point, end_offset)
        return start_offset

    def _check_transactions(self, segment: LogSegment) -> None:
        try:
            segment.indexes.transactions.sanity_check()
        except CorruptIndexError as problem:
            _log.warning("%s: rebuilding %s: %s", self._local.partition, segment, problem)
            segment.indexes.transactions.reset()
            self._rebuild_transactions(segment)

    def _rebuild_transactions(self, segment: LogSegment) -> None:
        """Fill a transaction index anew, from the state before the segment and its batches."""
        self.rebuild_producers(0, segment.base_offset)
        for columns in segment.records.all_headers():
            for rows in runs(columns):
                self._take_in(segment.indexes.transactions, segment.records, columns, rows)

    def _take_in(
        self,
        aborted: TransactionIndex | None,
        records: FileRecords,
        columns: BatchColumns,
        rows: range,
    ) -> None:
        """Note what a run of batches says about epochs, producers and transactions.

        Args:
            aborted: Where to note transactions that were aborted; None where they are known.
            records: The file of the batches.
            columns: Their fixed fields.
            rows: Which of them.
        """
        self._note_epochs(columns, rows)
        for row in telling_rows(columns, rows, self._producers):
            self._take_in_batch(aborted, records, header_of(columns, row))
        self._producers.update_map_end_offset(columns.last_offsets[rows[-1]] + 1)

    def _take_in_batch(
        self, aborted: TransactionIndex | None, records: FileRecords, header: BatchHeader
    ) -> None:
        info = self._producers.prepare_update(header.producer_id, None)
        completed = take_in_batch(info, header, records.batch)
        self._producers.update(info)
        if completed is not None:
            stable = self._producers.last_stable_offset(completed)
            self._producers.complete_txn(completed)
            if completed.aborted and aborted is not None:
                aborted.append(aborted_txn(completed, stable))


def _latest(epochs: LeaderEpochFileCache) -> int:
    return -1 if epochs.latest_epoch is None else epochs.latest_epoch


def _flush_recovered(segment: LogSegment, recovery_point: int) -> None:
    """Force the batches that recovery kept to the disk, before anything is read from them.

    They are written once more, because after a failed fsync the operating system treats pages as
    clean that it only holds in memory: no later fsync would write them.

    Raises:
        OSError: A write or the flush failed.
    """
    first = segment.locate(recovery_point)
    if first is not None:
        segment.records.write_back(first.position)
        segment.flush_records()


def take_in_batch(
    info: ProducerAppendInfo, header: BatchHeader, read: BatchReader
) -> CompletedTxn | None:
    """Add a batch to a producer's part of an append; return the transaction it ended, if any.

    Args:
        info: The producer's part.
        header: The batch's fixed fields.
        read: Reads the whole batch, which only a marker needs.

    Raises:
        KafkaError: The batch does not fit the producer's state.
    """
    if not header.attributes & IS_CONTROL:
        info.append(header, transactional=bool(header.attributes & IS_TRANSACTIONAL))
        return None
    records = read(header).records()
    if not records:
        return None
    return info.append_marker(header, EndTxnMarker.parse(records[0].key, records[0].value))


def aborted_txn(completed: CompletedTxn, last_stable_offset: int) -> AbortedTxn:
    """Return the index entry of a transaction that was aborted."""
    return AbortedTxn(
        completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )
