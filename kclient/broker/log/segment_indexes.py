"""The indexes of one segment, kept in line with its batches."""

import logging
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.file_records import BatchHeader, FileRecords, header_of
from kclient.broker.log.index_entries import Noted, add_entries
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_errors import CorruptIndexError
from kclient.broker.log.offset_index import OffsetIndex, OffsetPosition
from kclient.broker.log.time_index import UNKNOWN_TIMESTAMP_OFFSET, TimeIndex, TimestampOffset
from kclient.broker.log.transaction_index import TransactionIndex
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import Files
from kclient.record import BatchColumns

_log = logging.getLogger(__name__)
_MAX_RELATIVE_OFFSET = 2**31 - 1


class SegmentIndexes:
    """Offset, time and transaction index of a segment. Guarded by the log's lock.

    The first two are opened at their first use, and built anew from the batches where they are
    missing or damaged.

    Attributes:
        transactions: Aborted transactions whose marker lies in the segment.
        is_distrusted: Whether a change of the first two was left half done, so that they are built
            anew when they are next used.
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
        self._greatest: TimestampOffset | None = None
        self._appendable = False
        self.is_distrusted = False
        self._used = False

    @property
    def offset(self) -> OffsetIndex:
        """The offset index."""
        self._ensure_open()
        return self._offset

    @property
    def time(self) -> TimeIndex:
        """The time index."""
        self._ensure_open()
        return self._time

    @property
    def is_full(self) -> bool:
        """Whether either index has no room for another entry."""
        return self.offset.is_full or self.time.is_full

    @property
    def max_timestamp_and_offset(self) -> TimestampOffset:
        """The greatest timestamp, and the last offset of the batch that brought it."""
        if self._greatest is None:
            self._greatest = self._read_greatest()
        return self._greatest

    def locate(self, offset: int) -> BatchHeader | None:
        """Return the first batch that ends at or behind an offset, or None if there is none.

        An index entry that does not lead to its batch makes both indexes be built anew.

        Raises:
            CorruptRecordError: The batches themselves are damaged.
        """
        try:
            return self._find(offset)
        except CorruptIndexError as problem:
            _log.warning("%s: rebuilding the indexes: %s", self._offset.path, problem)
            self.rebuild()
            return self._find(offset)

    def last_headers(self) -> Iterator[BatchHeader]:
        """Go through the batches from the last entry of the offset index on.

        An empty segment's indexes are not opened, so that their files are made with the first
        append: a broker with thousands of new partitions would make two files more for each.
        """
        if not self._records.size:
            return iter(())
        entry = self.offset.lookup(2**63 - 1)
        first = self.locate(entry.offset)
        return self._records.headers(first.position) if first is not None else iter(())

    def note_appended(self, header: BatchHeader) -> None:
        """Take in a batch that was written; every index.interval.bytes one gets an entry."""
        greatest = self._greatest or UNKNOWN_TIMESTAMP_OFFSET
        if header.max_timestamp > greatest.timestamp:
            greatest = TimestampOffset(header.max_timestamp, header.last_offset)
        self._greatest = greatest
        if self._bytes_since_last_entry > self._interval_bytes and not self.is_full:
            self._offset.append(header.last_offset, header.position)
            self._time.maybe_append(*greatest)
            self._bytes_since_last_entry = 0
        self._bytes_since_last_entry += header.size_in_bytes

    def note_found(self, columns: BatchColumns, rows: range) -> None:
        """Take in batches that stand in the file, as `note_appended` each of them.

        Raises:
            OSError: A write failed; the indexes have to be built anew.
        """
        noted = Noted(self._greatest or UNKNOWN_TIMESTAMP_OFFSET, self._bytes_since_last_entry)
        self._greatest, self._bytes_since_last_entry = add_entries(
            (self.offset, self.time), self._interval_bytes, noted, columns, rows
        )

    def rebuild(self) -> None:
        """Build both indexes anew from the fixed fields of the batches.

        Raises:
            CorruptRecordError: The batches are damaged; the indexes lead up to there.
        """
        self.is_distrusted = False
        try:
            self._rebuild()
        except OSError:
            self.is_distrusted = True
            raise

    def _rebuild(self) -> None:
        for index in (self._offset, self._time):
            index.release()
            self._files.remove(index.path)
        self.reset()
        try:
            for columns in self._records.all_headers():
                belonging = _belonging(self._offset, columns)
                if belonging:
                    self.note_found(columns, range(belonging))
                if belonging < columns.batch_count:
                    _ensure_belongs(self._offset, header_of(columns, belonging))
        finally:
            if self._appendable:
                self.prepare_for_append()
            else:
                self.finish()

    def reset(self) -> None:
        """Empty the offset and the time index."""
        for index in (self._offset, self._time):
            index.reset()
        self._bytes_since_last_entry = 0
        self._greatest = UNKNOWN_TIMESTAMP_OFFSET

    def truncate_to(self, offset: int) -> None:
        """Remove the entries for an offset and all above it."""
        for index in (self.offset, self.time):
            index.truncate_to(offset)
        self.transactions.truncate_to(offset)
        self._bytes_since_last_entry = 0
        self._greatest = None

    def rest(self) -> None:
        """Let go of files and memory if nobody asked since this was last called."""
        if not self._used and not self._appendable:
            self.release()
        self._used = False

    def prepare_for_append(self) -> None:
        """Make room for new entries, now or when the indexes are opened."""
        self._appendable = True
        if self._offset.is_open and self._time.is_open:
            self._offset.take_entries()
            self._time.take_entries()

    def finish(self) -> None:
        """Write the last entry of the time index and trim both files to their entries."""
        self._appendable = False
        if not (self._offset.is_open and self._time.is_open):
            return
        greatest = self.max_timestamp_and_offset
        if greatest.timestamp >= 0:
            self._time.maybe_append(*greatest, closing=True)
        self._offset.trim()
        self._time.trim()

    def flush(self) -> None:
        """Force all entries to the disk."""
        for index in (self._offset, self._time, self.transactions):
            index.flush()

    def release(self) -> None:
        """Close the files and leave them as they are; idempotent."""
        self._offset.release()
        self._time.release()
        self.transactions.close()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename the files, from one suffix behind their names to another."""
        for index in (self._offset, self._time, self.transactions):
            index.rename_to(index.path.with_name(index.path.name.removesuffix(old) + new))

    def moved_to(self, directory: Path) -> None:
        """Note that the directory was renamed."""
        for index in (self._offset, self._time, self.transactions):
            index.moved_to(directory)

    def paths(self) -> list[Path]:
        """Return the paths of all files, whether they exist or not."""
        return [self._offset.path, self._time.path, self.transactions.path]

    def _ensure_open(self) -> None:
        if self.is_distrusted:
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
        """Hold the indexes against the batches where it is cheapest: at their last entries."""
        if self._offset.entries:
            self._find(self._offset.last_offset)
        last = self._time.last_entry
        if last.timestamp < 0:
            return
        with suppress(CorruptRecordError):
            header = self._find(last.offset)
            if header is None or header.max_timestamp != last.timestamp:
                raise CorruptIndexError(f"{self._time.path.name}: {last} does not fit the batches")

    def _find(self, offset: int) -> BatchHeader | None:
        """Search from where the index says, if a batch that fits the entry is there."""
        entry = self.offset.lookup(offset)
        if not entry.position:
            return self._records.find(0, offset)[1]
        try:
            first, header = self._records.find(entry.position, offset)
        except CorruptRecordError:
            # The batches are damaged, unless the entry led to a place where none begins.
            if _fits(self._records, entry):
                raise
            first, header = -1, None
        if first != entry.offset:
            raise CorruptIndexError(f"index entry {entry} does not lead to its batch")
        return header

    def _read_greatest(self) -> TimestampOffset:
        last = self.time.last_entry
        greatest = last if last.timestamp >= 0 else UNKNOWN_TIMESTAMP_OFFSET
        first = self.locate(last.offset)
        for header in self._records.headers(0 if first is None else first.position):
            _ensure_belongs(self._offset, header)
            if header.max_timestamp > greatest.timestamp:
                greatest = TimestampOffset(header.max_timestamp, header.last_offset)
        return greatest


def _belonging(index: OffsetIndex, columns: BatchColumns) -> int:
    """Return how many batches the index can hold before the first that it cannot."""
    if columns.last_offsets[0] < index.base_offset:
        return 0
    return bisect_right(columns.last_offsets, index.base_offset + _MAX_RELATIVE_OFFSET)


def _ensure_belongs(index: OffsetIndex, header: BatchHeader) -> None:
    """Refuse a batch whose offsets no index of this segment can hold."""
    if not 0 <= header.last_offset - index.base_offset <= _MAX_RELATIVE_OFFSET:
        raise CorruptRecordError(f"{index.path}: {header} does not belong into this segment")


def _fits(records: FileRecords, entry: OffsetPosition) -> bool:
    """Return whether the batch that an entry tells of begins where it says."""
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
        raise CorruptIndexError(f"{index.path.name}: the file is missing")
