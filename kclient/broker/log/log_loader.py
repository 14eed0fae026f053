"""Loading and recovery of a log after a start (Kafka: LogLoader)."""

import logging
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kclient.broker.log import log_file_utils
from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.checkpoint_file import MalformedCheckpointError
from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.producer_state_recovery import relevant_rows, restore_recent_batches
from kclient.broker.log.transaction_index import TransactionIndex
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import Files
from kclient.record import BatchColumns, BatchHeader

_log = logging.getLogger(__name__)


class LogCheckpoint(NamedTuple):
    """Checkpointed state of a log.

    Attributes:
        clean: Whether the last shutdown was clean.
        recovery_point: All records before this offset are flushed.
        log_start_offset: First offset of the log.
    """

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0


class LogLoader:
    """Loads segments, truncates a torn tail, rebuilds indexes, leader epochs and producer state."""

    def __init__(
        self,
        files: Files,
        local: LocalLog,
        producers: ProducerStateManager,
        epochs: LeaderEpochFileCache,
    ) -> None:
        self._files = files
        self._local = local
        self._segments = local.segments
        self._producers = producers
        self._epochs = epochs

    def load(self, checkpoint: LogCheckpoint) -> int:
        """Load the log; return the log start offset.

        Args:
            checkpoint: Checkpointed state of the log.

        Raises:
            CorruptRecordError: After a clean shutdown, batches are damaged.
            OSError: A file could not be read or written.
        """
        complete_interrupted_operations(self._files, self._local)
        self._load_segments()
        self._producers.load_snapshot_list()
        self._load_epochs()
        if not checkpoint.clean:
            self._recover_unflushed(checkpoint)
        elif self._local.is_torn():
            self._recover(self._local.active, checkpoint.log_start_offset)
        if not len(self._segments):
            self._segments.add(self._local.open_segment(checkpoint.log_start_offset))
        log_start_offset = self._set_offsets(checkpoint)
        self._epochs.truncate_from_end(self._local.log_end_offset)
        self._epochs.truncate_from_start(log_start_offset)
        self._complete_epochs(log_start_offset)
        self._producers.remove_stray_snapshots(self._segments.base_offsets())
        self.rebuild_producers(log_start_offset, self._local.log_end_offset)
        restore_recent_batches(self._local, self._producers)
        return log_start_offset

    def rebuild_producers(self, start_offset: int, end_offset: int) -> None:
        """Rebuild the producer state up to an offset, from the latest snapshot and the log."""
        producers = self._producers
        producers.truncate_and_reload(start_offset, end_offset)
        for segment in self._segments.between(producers.map_end_offset, end_offset):
            first = segment.locate(max(producers.map_end_offset, start_offset))
            if first is None:
                continue
            for columns in segment.records.header_columns(first.position):
                before_end = bisect_left(columns.base_offsets, end_offset)
                for rows in columns.runs(before_end):
                    self._replay(None, segment.records, columns, rows)
                if before_end < columns.batch_count:
                    break
        producers.map_end_offset = end_offset

    def _load_segments(self) -> None:
        names = self._files.list_directory(self._local.directory)
        present = set(names)
        for name in names:
            base_offset = log_file_utils.base_offset_of(name)
            if base_offset is None:
                continue
            suffix = f".{name.partition('.')[2]}"
            if suffix == log_file_utils.LOG_FILE_SUFFIX:
                self._segments.add(self._local.open_segment(base_offset))
            elif suffix in log_file_utils.SEGMENT_SUFFIXES:
                stem = name.removesuffix(suffix)
                if stem + log_file_utils.LOG_FILE_SUFFIX not in present:
                    self._files.remove(self._local.directory / name)

    def _load_epochs(self) -> None:
        """Load the leader epochs from the checkpoint, or from the batches if it is unusable."""
        try:
            self._epochs.load()
            usable = self._epochs.latest_epoch is not None
        except MalformedCheckpointError as problem:
            _log.warning("%s: rebuilding the leader epochs: %s", self._local.partition, problem)
            usable = False
        if not usable:
            self._rebuild_epochs()

    def _complete_epochs(self, log_start_offset: int) -> None:
        """Rebuild the leader epochs if they start later than the log.

        A crash may restore an earlier log start offset, up to which they were truncated.
        """
        first = self._epochs.first_offset
        is_empty = self._local.log_end_offset <= log_start_offset
        if not is_empty and (first is None or first > log_start_offset):
            self._rebuild_epochs()
            self._epochs.truncate_from_start(log_start_offset)

    def _rebuild_epochs(self) -> None:
        self._epochs.clear()
        for segment in self._segments.values():
            with suppress(CorruptRecordError):
                for columns in segment.records.header_columns():
                    self._assign_epochs(columns, range(columns.batch_count))

    def _assign_epochs(self, columns: BatchColumns, rows: range) -> None:
        epochs = columns.leader_epochs
        latest = _latest(self._epochs)
        if max(epochs[rows.start : rows.stop]) <= latest:
            return
        for row in rows:
            if epochs[row] > latest:
                latest = epochs[row]
                self._epochs.assign(latest, columns.base_offsets[row])

    def _recover_unflushed(self, checkpoint: LogCheckpoint) -> None:
        """Recover the segments from the recovery point on; earlier ones were flushed."""
        suspects = self._segments.between(checkpoint.recovery_point)
        for number, segment in enumerate(suspects):
            cut = self._recover(segment, checkpoint.log_start_offset)
            if self._local.flushes_appends:
                _write_back(segment, checkpoint.recovery_point)
            if cut or self._local.flushes_appends:
                # A truncation that is lost would leave an invalid batch below the recovery point.
                segment.flush_records()
            if cut or self._ends_before_next(segment):
                for later in suspects[number + 1 :]:
                    _log.warning(
                        "%s: deleting %s after a truncated segment", self._local.partition, later
                    )
                    self._segments.remove(later.base_offset)
                    later.delete_files()
                    later.release()
                return

    def _ends_before_next(self, segment: LogSegment) -> bool:
        """Return whether a power failure has removed whole batches, or segments, after a segment.

        Compaction also leaves holes.
        """
        config = self._local.config
        following = self._segments.higher(segment.base_offset)
        if following is None or config.compacts:
            return False
        return segment.read_next_offset() < following.base_offset

    def _recover(self, segment: LogSegment, log_start_offset: int) -> int:
        self.rebuild_producers(log_start_offset, segment.base_offset)
        cut = segment.recover(
            lambda columns, rows: self._replay(segment.transactions, segment.records, columns, rows)
        )
        self._producers.take_snapshot()
        return cut

    def _set_offsets(self, checkpoint: LogCheckpoint) -> int:
        local = self._local
        for segment in self._segments.values():
            self._check_transactions(segment)
        end_offset = local.active.read_next_offset()
        start_offset = max(checkpoint.log_start_offset, local.first_offset)
        if end_offset < start_offset:
            # The log was truncated to an offset before its start offset.
            _log.warning(
                "%s: the log ends before its start offset %d", local.partition, start_offset
            )
            local.truncate_fully_and_start_at(start_offset)
            self._producers.truncate_fully_and_start_at(start_offset)
            end_offset = start_offset
        local.log_end_offset = end_offset
        local.active.prepare_for_append()
        if checkpoint.clean:
            local.recovery_point = end_offset
        else:
            local.recovery_point = min(checkpoint.recovery_point, end_offset)
        return start_offset

    def _check_transactions(self, segment: LogSegment) -> None:
        try:
            segment.transactions.sanity_check()
        except CorruptIndexError as problem:
            _log.warning("%s: rebuilding %s: %s", self._local.partition, segment, problem)
            segment.transactions.reset()
            self._rebuild_transactions(segment)

    def _rebuild_transactions(self, segment: LogSegment) -> None:
        """Rebuild a transaction index from the batches and the producer state before them."""
        self.rebuild_producers(0, segment.base_offset)
        for columns in segment.records.header_columns():
            for rows in columns.runs():
                self._replay(segment.transactions, segment.records, columns, rows)

    def _replay(
        self,
        aborted: TransactionIndex | None,
        records: FileRecords,
        columns: BatchColumns,
        rows: range,
    ) -> None:
        """Update leader epochs, producer state and transactions by a range of batches.

        Args:
            aborted: Index to add aborted transactions to; None if they are indexed.
            records: The file of the batches.
            columns: Headers of the batches.
            rows: The rows to replay.
        """
        self._assign_epochs(columns, rows)
        for row in relevant_rows(columns, rows, self._producers):
            self._apply_batch(aborted, records, columns.header(row))
        self._producers.map_end_offset = columns.last_offsets[rows[-1]] + 1

    def _apply_batch(
        self, aborted: TransactionIndex | None, records: FileRecords, header: BatchHeader
    ) -> None:
        info = self._producers.prepare_update(header.producer_id, None)
        completed = None
        if header.is_control:
            completed = info.append_marker(records.batch(header))
        else:
            info.append_data(header)
        self._producers.update(info)
        if completed is not None:
            stable = self._producers.last_stable_offset(completed)
            self._producers.complete_txn(completed)
            if completed.aborted and aborted is not None:
                aborted.append(completed.index_entry(stable))


def _latest(epochs: LeaderEpochFileCache) -> int:
    return -1 if epochs.latest_epoch is None else epochs.latest_epoch


def _write_back(segment: LogSegment, recovery_point: int) -> None:
    """Rewrite the batches that recovery kept; they are flushed before they are read.

    After a failed fsync the operating system marks the pages clean although they are only in
    memory, and no later fsync writes them.

    Raises:
        OSError: A write failed.
    """
    first = segment.locate(recovery_point)
    if first is not None:
        segment.records.write_back(first.position)


_UNFINISHED = (
    log_file_utils.DELETED_FILE_SUFFIX,
    log_file_utils.CLEANED_FILE_SUFFIX,
    ".tmp",
)
_INDEXES = (
    log_file_utils.INDEX_FILE_SUFFIX,
    log_file_utils.TIME_INDEX_FILE_SUFFIX,
    log_file_utils.TXN_INDEX_FILE_SUFFIX,
)
_SWAPPED_LOG = log_file_utils.LOG_FILE_SUFFIX + log_file_utils.SWAP_FILE_SUFFIX
_CLEANED_LOG = log_file_utils.LOG_FILE_SUFFIX + log_file_utils.CLEANED_FILE_SUFFIX


def complete_interrupted_operations(files: Files, local: LocalLog) -> None:
    """Complete or undo interrupted operations in a log's directory."""
    names = files.list_directory(local.directory)
    if not any(name.endswith((*_UNFINISHED, log_file_utils.SWAP_FILE_SUFFIX)) for name in names):
        return
    first_cleaned = min(_offsets(names, _CLEANED_LOG), default=2**63)
    for name in names:
        offset = log_file_utils.base_offset_of(name)
        swapped = name.endswith(log_file_utils.SWAP_FILE_SUFFIX)
        # A split writes several segments, which are valid only if all are complete.
        if name.endswith(_UNFINISHED) or (
            swapped and offset is not None and offset >= first_cleaned
        ):
            files.remove(local.directory / name)
    for offset in _offsets(files.list_directory(local.directory), _SWAPPED_LOG):
        _swap_in(files, local, offset)
    for name in files.list_directory(local.directory):
        # The log file was renamed already.
        if name.endswith(log_file_utils.SWAP_FILE_SUFFIX):
            _remove_swap_suffix(files, local.directory / name)


def _swap_in(files: Files, local: LocalLog, base_offset: int) -> None:
    """Remove the replaced segments, then rename the replacement.

    While the log file has the suffix ``.swap``, the next start repeats this.
    """
    swapped = log_file_utils.segment_file(local.directory, base_offset, _SWAPPED_LOG)
    end_offset = _end_offset(files, swapped, base_offset)
    for name in files.list_directory(local.directory):
        offset = log_file_utils.base_offset_of(name)
        replaced = offset is not None and base_offset <= offset < max(end_offset, base_offset + 1)
        if replaced and name.endswith(log_file_utils.SEGMENT_SUFFIXES):
            # The transaction index may be that of the replacement, renamed already.
            kept = offset == base_offset and name.endswith(log_file_utils.TXN_INDEX_FILE_SUFFIX)
            if not kept:
                files.remove(local.directory / name)
    for suffix in _INDEXES:
        path = log_file_utils.segment_file(
            local.directory, base_offset, suffix + log_file_utils.SWAP_FILE_SUFFIX
        )
        if files.exists(path):
            _remove_swap_suffix(files, path)
    _remove_swap_suffix(files, swapped)
    # Some indexes of the replacement may not have been renamed.
    segment = local.open_segment(base_offset)
    segment.rebuild_indexes()
    segment.release()


def _end_offset(files: Files, path: Path, base_offset: int) -> int:
    end_offset = base_offset
    records = FileRecords(files.open(path), files.size(path))
    try:
        for header in records.headers():
            end_offset = header.last_offset + 1
    finally:
        records.close()
    return end_offset


def _remove_swap_suffix(files: Files, path: Path) -> None:
    files.rename(path, path.with_name(path.name.removesuffix(log_file_utils.SWAP_FILE_SUFFIX)))


def _offsets(names: list[str], suffix: str) -> list[int]:
    return [
        offset
        for name in names
        if name.endswith(suffix) and (offset := log_file_utils.base_offset_of(name)) is not None
    ]
