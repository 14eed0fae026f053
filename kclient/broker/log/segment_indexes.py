"""Offset, time and transaction index of one segment."""

import logging
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kclient.broker.log import log_file_utils
from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.offset_index import OffsetIndex, OffsetPosition
from kclient.broker.log.time_index import UNKNOWN_TIMESTAMP_OFFSET, TimeIndex, TimestampOffset
from kclient.broker.log.transaction_index import TransactionIndex
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import Files
from kclient.record import BatchColumns, BatchHeader


class IndexProgress(NamedTuple):
    """State of the indexes after the batches indexed so far.

    Attributes:
        greatest: Greatest timestamp, and the last offset of its batch.
        bytes_since_last_entry: Size of the batches from the last indexed one on.
    """

    greatest: TimestampOffset
    bytes_since_last_entry: int


def add_entries(
    indexes: tuple[OffsetIndex, TimeIndex],
    interval_bytes: int,
    progress: IndexProgress,
    columns: BatchColumns,
    rows: range,
) -> IndexProgress:
    """Add the entries that ``index.interval.bytes`` requires.

    Args:
        indexes: The indexes.
        interval_bytes: An entry is due when more bytes than this follow the last one.
        progress: State after the preceding batches.
        columns: Consecutive batches of the file.
        rows: The rows to index.

    Raises:
        OSError: A write failed; the indexes must be rebuilt.
    """
    offset_index, time_index = indexes
    with offset_index.deferred_writes(), time_index.deferred_writes():
        positions, greatest = columns.positions, progress.greatest
        last_entry = positions[rows.start] - progress.bytes_since_last_entry
        start = rows.start
        while start < rows.stop:
            due = rows.stop
            if not (offset_index.is_full or time_index.is_full):
                due = bisect_right(positions, last_entry + interval_bytes, start, rows.stop)
            stop = min(due + 1, rows.stop)
            greatest = _greatest(greatest, columns, start, stop)
            if due < rows.stop:
                offset_index.append(columns.last_offsets[due], positions[due])
                time_index.maybe_append(*greatest)
                last_entry = positions[due]
            start = stop
    end = positions[rows[-1]] + columns.sizes[rows[-1]]
    return IndexProgress(greatest, end - last_entry)


def _greatest(
    before: TimestampOffset, columns: BatchColumns, start: int, stop: int
) -> TimestampOffset:
    timestamps = columns.max_timestamps
    latest = timestamps[start] if stop == start + 1 else max(timestamps[start:stop])
    if latest <= before.timestamp:
        return before
    return TimestampOffset(latest, columns.last_offsets[timestamps.index(latest, start, stop)])


_log = logging.getLogger(__name__)
_MAX_RELATIVE_OFFSET = 2**31 - 1


class SegmentIndexes:
    """Indexes of a segment. Guarded by the log's lock.

    Offset and time index are opened at their first use, and rebuilt from the batches if they are
    missing or corrupt.

    Attributes:
        transactions: Aborted transactions whose marker is in the segment.
        greatest: Greatest timestamp, and the last offset of its batch; None until it is read.
        needs_rebuild: Whether offset and time index are incomplete after an error, and are rebuilt
            at their next use.
    """

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        records: FileRecords,
        suffix: str = "",
    ) -> None:
        def path(kind: str) -> Path:
            return log_file_utils.segment_file(directory, base_offset, kind + suffix)

        self._files = files
        self._records = records
        self._interval_bytes = config.index_interval_bytes
        size = config.segment_index_bytes
        self._offset = OffsetIndex(files, path(log_file_utils.INDEX_FILE_SUFFIX), base_offset, size)
        self._time = TimeIndex(
            files, path(log_file_utils.TIME_INDEX_FILE_SUFFIX), base_offset, size
        )
        self.transactions = TransactionIndex(
            files, path(log_file_utils.TXN_INDEX_FILE_SUFFIX), base_offset
        )
        self._bytes_since_last_entry = 0
        self.greatest: TimestampOffset | None = None
        self._appendable = False
        self.needs_rebuild = False
        self._used = False

    @property
    def offset(self) -> OffsetIndex:
        """Offset index."""
        self._ensure_open()
        return self._offset

    @property
    def time(self) -> TimeIndex:
        """Time index."""
        self._ensure_open()
        return self._time

    @property
    def is_full(self) -> bool:
        """Whether an index accepts no further entry."""
        offset_index, time_index = self._offset, self._time
        if self.needs_rebuild or not (offset_index.is_open and time_index.is_open):
            self._ensure_open()
        self._used = True
        return offset_index.entries >= offset_index.limit or time_index.entries >= time_index.limit

    @property
    def greatest_timestamp(self) -> int:
        """Greatest timestamp of the batches, or -1."""
        return self.max_timestamp_and_offset.timestamp

    @property
    def max_timestamp_and_offset(self) -> TimestampOffset:
        """Greatest timestamp, and the last offset of its batch."""
        return self.greatest or self.read_greatest()

    @property
    def size_in_bytes(self) -> int:
        """Size of the offset index, which is the larger one with small batches."""
        return self.offset.size_in_bytes

    def locate(self, offset: int) -> BatchHeader | None:
        """Return the first batch whose last offset is at least `offset`, or None.

        Both indexes are rebuilt if an entry does not match its batch.

        Raises:
            CorruptRecordError: The batches are damaged.
        """
        try:
            return self._find(offset)
        except CorruptIndexError as problem:
            _log.warning("%s: rebuilding the indexes: %s", self._offset.path, problem)
            self.rebuild()
            return self._find(offset)

    def lookup_timestamp(self, timestamp: int) -> TimestampOffset:
        """Return the last entry of the time index whose timestamp is at most this one."""
        return self.time.lookup(timestamp)

    def batch_start(self, position: int) -> int:
        """Return the position of the last indexed batch at or before a position."""
        return self.offset.batch_start(position)

    def last_headers(self) -> Iterator[BatchHeader]:
        """Iterate over the batches from the last entry of the offset index on.

        The indexes of an empty segment are not opened: their files are created by the first append,
        which saves two files for each new partition.
        """
        if not self._records.size:
            return iter(())
        entry = self.offset.lookup(2**63 - 1)
        first = self.locate(entry.offset)
        return self._records.headers(first.position) if first is not None else iter(())

    def index_batch(self, header: BatchHeader) -> None:
        """Index an appended batch; an entry is added every index.interval.bytes."""
        greatest = self.greatest or UNKNOWN_TIMESTAMP_OFFSET
        if header.max_timestamp > greatest.timestamp:
            greatest = TimestampOffset(header.max_timestamp, header.last_offset)
        self.greatest = greatest
        if self._bytes_since_last_entry > self._interval_bytes and not self.is_full:
            self._offset.append(header.last_offset, header.position)
            self._time.maybe_append(*greatest)
            self._bytes_since_last_entry = 0
        self._bytes_since_last_entry += header.size_in_bytes

    def index_batches(self, columns: BatchColumns, rows: range) -> None:
        """Index batches of the file, with the same result as `index_batch` for each of them.

        Raises:
            OSError: A write failed; the indexes must be rebuilt.
        """
        progress = IndexProgress(
            self.greatest or UNKNOWN_TIMESTAMP_OFFSET, self._bytes_since_last_entry
        )
        self.greatest, self._bytes_since_last_entry = add_entries(
            (self.offset, self.time), self._interval_bytes, progress, columns, rows
        )

    def rebuild(self) -> None:
        """Rebuild offset and time index from the batch headers.

        Raises:
            CorruptRecordError: A batch is damaged; the indexes cover the batches before it.
        """
        self.needs_rebuild = False
        try:
            self._rebuild()
        except OSError:
            self.needs_rebuild = True
            raise

    def _rebuild(self) -> None:
        for index in (self._offset, self._time):
            index.release()
            self._files.remove(index.path)
        self.reset()
        try:
            for columns in self._records.header_columns():
                indexable = _indexable(self._offset, columns)
                if indexable:
                    self.index_batches(columns, range(indexable))
                if indexable < columns.batch_count:
                    _ensure_indexable(self._offset, columns.header(indexable))
        finally:
            if self._appendable:
                self.prepare_for_append()
            else:
                self.finish()

    def empty(self) -> None:
        """Empty all three indexes."""
        self.reset()
        self.transactions.reset()

    def reset(self) -> None:
        """Empty the offset and the time index."""
        for index in (self._offset, self._time):
            index.reset()
        self._bytes_since_last_entry = 0
        self.greatest = UNKNOWN_TIMESTAMP_OFFSET

    def truncate_to(self, offset: int) -> None:
        """Remove the entries for this offset and above."""
        for index in (self.offset, self.time):
            index.truncate_to(offset)
        self.transactions.truncate_to(offset)
        self._bytes_since_last_entry = 0
        self.greatest = None

    def unload_if_idle(self) -> None:
        """Release files and memory if the indexes were not used since the last call."""
        if not self._used and not self._appendable:
            self.release()
        self._used = False

    def prepare_for_append(self) -> None:
        """Accept new entries, now or when the indexes are opened."""
        self._appendable = True
        if self._offset.is_open and self._time.is_open:
            self._offset.resize_for_append()
            self._time.resize_for_append()

    def finish(self) -> None:
        """Append the final entry of the time index and trim both files."""
        self._appendable = False
        if not (self._offset.is_open and self._time.is_open):
            return
        greatest = self.max_timestamp_and_offset
        if greatest.timestamp >= 0:
            self._time.maybe_append(*greatest, closing=True)
        self._offset.trim()
        self._time.trim()

    def flush(self) -> None:
        """Flush all entries."""
        for index in (self._offset, self._time, self.transactions):
            index.flush()

    def release(self) -> None:
        """Close the files and leave them as they are. Idempotent."""
        self._offset.release()
        self._time.release()
        self.transactions.close()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename the files from one suffix to another."""
        for index in (self._offset, self._time, self.transactions):
            index.rename_to(log_file_utils.with_suffix_changed(index.path, old, new))

    def moved_to(self, directory: Path) -> None:
        """Update the paths after the directory was renamed."""
        for index in (self._offset, self._time, self.transactions):
            index.moved_to(directory)

    def paths(self) -> list[Path]:
        """Return the paths of all files, which need not exist."""
        return [self._offset.path, self._time.path, self.transactions.path]

    def _ensure_open(self) -> None:
        if self.needs_rebuild:
            self.rebuild()
            return
        self._used = True
        if self._offset.is_open and self._time.is_open:
            return
        try:
            for index in (self._offset, self._time):
                _open(index, self._files, self._records)
            if self._appendable:
                self.prepare_for_append()
            self._check_last_entries()
        except CorruptIndexError as problem:
            _log.warning("%s: rebuilding the indexes: %s", self._offset.path, problem)
            self.rebuild()

    def _check_last_entries(self) -> None:
        """Compare the last entries of the indexes with the batches."""
        if self._offset.entries:
            self._find(self._offset.last_offset)
        last = self._time.last_entry
        if last.timestamp < 0:
            return
        with suppress(CorruptRecordError):
            header = self._find(last.offset)
            if header is None or header.max_timestamp != last.timestamp:
                raise CorruptIndexError(f"{self._time.name}: {last} does not match the batches")

    def _find(self, offset: int) -> BatchHeader | None:
        """Search from the position of the index entry, which must match its batch."""
        entry = self.offset.lookup(offset)
        if not entry.position:
            return self._records.find(0, offset)[1]
        try:
            first, header = self._records.find(entry.position, offset)
        except CorruptRecordError:
            # The batches are damaged, unless the entry's position is wrong.
            if _matches(self._records, entry):
                raise
            first, header = -1, None
        if first != entry.offset:
            raise CorruptIndexError(f"index entry {entry} does not match its batch")
        return header

    def read_greatest(self) -> TimestampOffset:
        """Read the greatest timestamp from the time index and the batches after its last entry."""
        last = self.time.last_entry
        greatest = last if last.timestamp >= 0 else UNKNOWN_TIMESTAMP_OFFSET
        first = self.locate(last.offset)
        for header in self._records.headers(0 if first is None else first.position):
            _ensure_indexable(self._offset, header)
            if header.max_timestamp > greatest.timestamp:
                greatest = TimestampOffset(header.max_timestamp, header.last_offset)
        self.greatest = greatest
        return greatest


def _indexable(index: OffsetIndex, columns: BatchColumns) -> int:
    """Return the number of leading batches whose offsets the index can contain."""
    if columns.last_offsets[0] < index.base_offset:
        return 0
    return bisect_right(columns.last_offsets, index.base_offset + _MAX_RELATIVE_OFFSET)


def _ensure_indexable(index: OffsetIndex, header: BatchHeader) -> None:
    """Check that the index of this segment can contain the offsets of a batch."""
    if not 0 <= header.last_offset - index.base_offset <= _MAX_RELATIVE_OFFSET:
        raise CorruptRecordError(f"{index.path}: {header} does not belong to this segment")


def _matches(records: FileRecords, entry: OffsetPosition) -> bool:
    """Return whether the batch of an index entry starts at the entry's position."""
    try:
        header = records.header_at(entry.position)
    except CorruptRecordError:
        return False
    return header is not None and header.last_offset == entry.offset


def _open(index: OffsetIndex | TimeIndex, files: Files, records: FileRecords) -> None:
    existed = files.exists(index.path)
    index.open()
    if existed:
        index.sanity_check()
    elif records.size:
        raise CorruptIndexError(f"{index.name}: the file is missing")
