"""A segment: a file of batches with its indexes (Kafka: LogSegment)."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.file_records import BatchHeader, FileRecords, runs
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.segment_indexes import SegmentIndexes
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidOffsetError
from kclient.common.files import Files, FileSlice, WireBytes
from kclient.common.types import OffsetAndTimestamp
from kclient.record import BatchColumns, iter_records

_log = logging.getLogger(__name__)
_MAX_RELATIVE_OFFSET = 2**31 - 1

BatchVisitor = Callable[[BatchColumns, range], None]
"""Is shown which rows recovery keeps; a control batch comes alone."""


class LogSegment:
    """Batches from a base offset on. Guarded by the lock of the log it belongs to.

    Attributes:
        base_offset: Lowest offset the segment may hold.
        records: The batches.
        indexes: Where to find them by offset and time.
        is_open: Whether the files are open.
        created_ms: Wall time when it was made or opened.
        roll_jitter_ms: How much sooner than segment.ms it is rolled (segment.jitter.ms).
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
        self._files = files
        self.base_offset = base_offset
        self.records = records
        self.indexes = SegmentIndexes(files, directory, base_offset, config, records, suffix)
        self.is_open = True
        self.created_ms = 0
        self.roll_jitter_ms = 0
        self._named_on_disk = False
        self._rolling_based_timestamp: int | None = None

    @classmethod
    def open(
        cls,
        files: Files,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        suffix: str = "",
    ) -> "LogSegment":
        """Open a segment's file, or make it.

        Args:
            files: The file system.
            directory: The log's directory.
            base_offset: Lowest offset the segment may hold.
            config: The topic's configuration.
            now_ms: Wall time.
            suffix: What stands behind the names of a segment that is not part of the log yet.
        """
        path = log_file_utils.segment_file(
            directory, base_offset, log_file_utils.LOG_FILE_SUFFIX + suffix
        )
        file = files.open(path, create=True)
        records = FileRecords(file, file.size())
        segment = cls(files, directory, base_offset, config, records, suffix)
        segment.created_ms = now_ms
        return segment

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size})"

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self.records.size

    def largest_timestamp(self) -> int:
        """Return the greatest timestamp; when the file was last written if no record has one."""
        timestamp = self.indexes.max_timestamp_and_offset.timestamp
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.records.file.path)

    def greatest_timestamp_from(self, offset: int) -> int:
        """Return the greatest timestamp of the records from an offset on, -1 if there is none."""
        if offset <= self.base_offset:
            return self.indexes.max_timestamp_and_offset.timestamp
        greatest = -1
        first = self.locate(offset)
        for header in () if first is None else self.records.headers(first.position):
            if header.base_offset >= offset:
                greatest = max(greatest, header.max_timestamp)
            else:
                # Some of the batch's records were deleted, perhaps the latest.
                for record in iter_records(self.records.batch(header)):
                    if record.offset >= offset:
                        greatest = max(greatest, record.timestamp_ms)
        return greatest

    def can_hold(self, offset: int) -> bool:
        """Return whether an offset fits into the index entries' 31 bits."""
        return 0 <= offset - self.base_offset <= _MAX_RELATIVE_OFFSET

    def should_roll(
        self, size: int, last_offset: int, max_timestamp: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Return whether batches of this size, end and timestamp belong into a new segment."""
        if self.size > config.segment_bytes - size:
            return True
        if self.indexes.is_full or not self.can_hold(last_offset):
            return True
        waited_ms = self._waited_for_roll(now_ms, max_timestamp)
        return self.size > 0 and waited_ms > config.roll_ms - self.roll_jitter_ms

    def append(self, records: WireBytes, headers: list[BatchHeader]) -> None:
        """Write batches at the end and note them in the indexes.

        Args:
            records: The batches, with their final offsets.
            headers: Their fixed fields, with positions in this file.

        Raises:
            InvalidOffsetError: An offset is too far from the base offset.
            OSError: A write failed; the segment is as before, if cutting back succeeded.
        """
        if not self.can_hold(headers[-1].last_offset):
            raise InvalidOffsetError(
                f"{self}: offset {headers[-1].last_offset} is too far from the base offset"
            )
        before = self.size
        self.indexes.max_timestamp_and_offset  # noqa: B018 (read before the file changes)
        self.records.append(records)
        try:
            for header in headers:
                self.indexes.note_appended(header)
        except OSError:
            self._cut(before, headers[0].base_offset)
            raise
        if self._rolling_based_timestamp is None and headers[0].max_timestamp >= 0 and not before:
            self._rolling_based_timestamp = headers[0].max_timestamp

    def locate(self, offset: int) -> BatchHeader | None:
        """Return the first batch that ends at or behind an offset, or None if there is none.

        Raises:
            CorruptRecordError: The batches are damaged.
        """
        return self.indexes.locate(offset)

    def read(
        self, offset: int, max_size: int, max_position: int, *, min_one_message: bool
    ) -> tuple[BatchHeader, FileSlice] | None:
        """Return the batches from the one that holds an offset on, as a slice of the file.

        The slice is empty where its first batch would be incomplete: consumers of Fetch version 3
        and above take a fragment alone for a record that can never be read (Kafka:
        FetchDataInfo.firstEntryIncomplete). The last of several batches may be incomplete.

        Args:
            offset: First offset wanted; the slice starts with the batch it lies in.
            max_size: Most bytes to return.
            max_position: Position behind the last byte to return.
            min_one_message: Return the first batch whole even if it is larger (KIP-74).
        """
        first = self.locate(offset)
        if first is None:
            return None
        size = max(max_size, first.size_in_bytes) if min_one_message else max_size
        size = min(size, max_position - first.position)
        if size < first.size_in_bytes:
            size = 0
        return first, self.records.slice(first.position, size)

    def find_offset_by_timestamp(
        self, timestamp: int, starting_offset: int
    ) -> OffsetAndTimestamp | None:
        """Return the first record with a timestamp at or after this one, or None."""
        entry = self.indexes.time.lookup(timestamp)
        first = self.locate(max(entry.offset, starting_offset))
        if first is None:
            return None
        for header in self.records.headers(first.position):
            if header.max_timestamp >= timestamp:
                found = self._search_batch(header, timestamp, starting_offset)
                if found is not None:
                    return found
        return None

    def read_next_offset(self) -> int:
        """Return the offset behind the last record; the base offset of an empty segment."""
        next_offset = self.base_offset
        for header in self.indexes.last_headers():
            next_offset = header.last_offset + 1
        return next_offset

    def recover(self, visit: BatchVisitor) -> int:
        """Check every batch, cut at the first bad one and rebuild the indexes.

        Args:
            visit: Is called with all good batches, in order.

        Returns:
            How many bytes were cut off.
        """
        self.indexes.reset()
        self.indexes.transactions.reset()
        valid_bytes = 0
        try:
            for columns in self._sound_batches():
                for rows in runs(columns):
                    visit(columns, rows)
                    self.indexes.note_found(columns, rows)
                    valid_bytes = columns.positions[rows[-1]] + columns.sizes[rows[-1]]
        except CorruptRecordError as problem:
            _log.warning("%s: found a bad batch at position %d: %s", self, valid_bytes, problem)
        cut = self.size - valid_bytes
        if cut:
            self.records.truncate_to(valid_bytes)
        self.indexes.finish()
        return cut

    def truncate_to(self, offset: int) -> None:
        """Cut all batches that end at or behind an offset."""
        first = self.locate(offset)
        self._cut(self.size if first is None else first.position, offset)

    def flush_records(self) -> None:
        """Force the batches to the disk, and the files' names with the first time."""
        self.records.file.flush()
        if not self._named_on_disk:
            self._files.flush_directory(self.records.file.path.parent)
            self._named_on_disk = True

    def flush_indexes(self) -> None:
        """Force the indexes to the disk."""
        if self.is_open:
            self.indexes.flush()

    def release(self) -> None:
        """Close the files and leave them as they are; idempotent."""
        self.is_open = False
        self.indexes.release()
        self.records.close()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files of the segment, from one suffix behind their names to another."""
        path = self.records.file.path
        renamed = path.with_name(path.name.removesuffix(old) + new)
        self._files.rename(path, renamed)
        self.records.file.path = renamed
        self.indexes.change_suffix(old, new)

    def moved_to(self, directory: Path) -> None:
        """Note that the directory was renamed."""
        self.records.file.path = directory / self.records.file.path.name
        self.indexes.moved_to(directory)

    def delete_files(self) -> None:
        """Delete all files. A slice of them that is still being sent stays readable."""
        self.is_open = False
        self.indexes.release()
        for path in (self.records.file.path, *self.indexes.paths()):
            self._files.remove(path)

    def _sound_batches(self) -> Iterator[BatchColumns]:
        return self.records.sound_batches(
            next_offset=self.base_offset, last_offset=self.base_offset + _MAX_RELATIVE_OFFSET
        )

    def _search_batch(
        self, header: BatchHeader, timestamp: int, starting_offset: int
    ) -> OffsetAndTimestamp | None:
        batch = self.records.batch(header)
        batch.ensure_valid()
        for record in iter_records(batch):
            if record.timestamp_ms >= timestamp and record.offset >= starting_offset:
                return OffsetAndTimestamp(
                    record.offset, record.timestamp_ms, header.partition_leader_epoch
                )
        return None

    def _cut(self, position: int, offset: int) -> None:
        """Cut the file at a batch's start, and the indexes at that batch's offset."""
        if position < self.size:
            self.records.truncate_to(position)
        if not self.size:
            self._rolling_based_timestamp = None
        try:
            self.indexes.truncate_to(offset)
            self.indexes.prepare_for_append()
        except OSError:
            self.indexes.is_distrusted = True
            raise

    def _waited_for_roll(self, now_ms: int, max_timestamp: int) -> int:
        if self._rolling_based_timestamp is None:
            first = self.records.header_at(0)
            if first is not None and first.max_timestamp >= 0:
                self._rolling_based_timestamp = first.max_timestamp
        if self._rolling_based_timestamp is not None and max_timestamp >= 0:
            return max_timestamp - self._rolling_based_timestamp
        return now_ms - self.created_ms
