"""Log segment: a file of batches with its indexes (Kafka: LogSegment)."""

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.segment_indexes import SegmentIndexes
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidOffsetError
from kclient.common.files import Files, FileSlice, WireBytes
from kclient.common.types import OffsetAndTimestamp
from kclient.record import BatchColumns, BatchHeader, iter_records

_log = logging.getLogger(__name__)
_MAX_RELATIVE_OFFSET = 2**31 - 1
_FIRST_BYTES = 256 * 1024
_MOST_RECENT = 32  # about 170 bytes each, for each partition

BatchVisitor = Callable[[BatchColumns, range], None]
"""Called with the rows that recovery keeps; each control batch is a range of its own."""


class RecentBatches:
    """Positions of the batches that were appended last, which most fetches read.

    They are found without a read of the file and a search in the offset index.
    """

    def __init__(self) -> None:
        self._base_offset = 0
        self._last_offsets: list[int] = []
        self._places: list[tuple[int, int]] = []

    def add(self, headers: Iterable[BatchHeader]) -> None:
        """Add appended batches, with their positions in the file."""
        last_offsets = self._last_offsets
        for header in headers:
            if not last_offsets:
                self._base_offset = header.base_offset
            last_offsets.append(header.base_offset + header.last_offset_delta)
            self._places.append((header.position, header.size_in_bytes))
        if len(last_offsets) >= _MOST_RECENT:
            half = _MOST_RECENT // 2
            self._base_offset = last_offsets[half - 1] + 1
            del last_offsets[:half], self._places[:half]

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Return position and size of the first batch that ends at an offset or after it.

        None if that batch was not appended lately.
        """
        if offset < self._base_offset:
            return None
        index = bisect_left(self._last_offsets, offset)
        return self._places[index] if index < len(self._places) else None

    def clear(self) -> None:
        """Remove all."""
        self._last_offsets.clear()
        self._places.clear()


class LogSegment:
    """Batches from a base offset on. Guarded by the log's lock.

    Attributes:
        base_offset: Lower bound of the segment's offsets.
        records: The batches.
        transactions: Index of the aborted transactions whose marker is in the segment.
        is_open: Whether the files are open.
        created_ms: Wall time of its creation or opening.
        roll_jitter_ms: Jitter subtracted from segment.ms (segment.jitter.ms).
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
        self._indexes = SegmentIndexes(files, directory, base_offset, config, records, suffix)
        self.transactions = self._indexes.transactions
        self.is_open = True
        self.created_ms = 0
        self.roll_jitter_ms = 0
        self._name_flushed = False
        self._rolling_based_timestamp: int | None = None
        self._recent = RecentBatches()

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
        """Open or create a segment.

        Args:
            files: The file system.
            directory: The log's directory.
            base_offset: Lower bound of the segment's offsets.
            config: Topic configuration.
            now_ms: Wall time.
            suffix: Suffix of the file names of a segment that is not part of the log yet.
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
    def path(self) -> Path:
        """Path of the file with the batches."""
        return self.records.path

    @property
    def size(self) -> int:
        """Size of all batches."""
        return self.records.size

    @property
    def index_size(self) -> int:
        """Size of the offset index."""
        return self._indexes.size_in_bytes

    @property
    def greatest_timestamp(self) -> int:
        """Greatest timestamp of the records, or -1."""
        return self._indexes.greatest_timestamp

    def prepare_for_append(self) -> None:
        """Accept new index entries: this is the active segment."""
        self._indexes.prepare_for_append()

    def finish(self) -> None:
        """Append the final entry of the time index and trim the index files.

        (Kafka: onBecomeInactiveSegment)
        """
        self._recent.clear()
        self._indexes.finish()

    def largest_timestamp(self) -> int:
        """Return the greatest timestamp, or the file's modification time if no record has one."""
        timestamp = self.greatest_timestamp
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.path)

    def greatest_timestamp_from(self, offset: int) -> int:
        """Return the greatest timestamp of the records from an offset on, or -1."""
        if offset <= self.base_offset:
            return self.greatest_timestamp
        greatest = -1
        first = self.locate(offset)
        for header in () if first is None else self.records.headers(first.position):
            if header.base_offset >= offset:
                greatest = max(greatest, header.max_timestamp)
            else:
                # Some records of the batch are before the offset, perhaps the latest.
                for record in iter_records(self.records.batch(header)):
                    if record.offset >= offset:
                        greatest = max(greatest, record.timestamp_ms)
        return greatest

    def can_hold(self, offset: int) -> bool:
        """Return whether the relative offset fits into 31 bits, as index entries require."""
        return 0 <= offset - self.base_offset <= _MAX_RELATIVE_OFFSET

    def should_roll(
        self, size: int, last_offset: int, max_timestamp: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Return whether a new segment must be rolled before these batches are appended."""
        present_size = self.records.size
        if present_size > config.segment_bytes - size:
            return True
        if self._indexes.is_full or not self.can_hold(last_offset):
            return True
        if not present_size:
            return False
        first = self._rolling_based_timestamp
        if first is None or max_timestamp < 0:
            waited_ms = self._waited_for_roll(now_ms, max_timestamp)
        else:  # as for almost every append
            waited_ms = max_timestamp - first
        return waited_ms > config.roll_ms - self.roll_jitter_ms

    def append(self, records: WireBytes, headers: Sequence[BatchHeader]) -> None:
        """Append batches and index them.

        Args:
            records: The batches, with their assigned offsets.
            headers: Their headers; positions in `records` become positions in this file.

        Raises:
            InvalidOffsetError: An offset is too far from the base offset.
            OSError: A write failed; the segment is unchanged if the truncation succeeded.
        """
        last_offset, indexes = headers[-1].last_offset, self._indexes
        if not 0 <= last_offset - self.base_offset <= _MAX_RELATIVE_OFFSET:
            raise InvalidOffsetError(
                f"{self}: offset {last_offset} is too far from the base offset"
            )
        before = self.records.size
        if indexes.greatest is None:
            indexes.read_greatest()  # before the file changes
        self.records.append(records)
        try:
            for header in headers:
                header.position += before
                indexes.index_batch(header)
        except OSError:
            self._truncate_at(before, headers[0].base_offset)
            raise
        self._recent.add(headers)
        if self._rolling_based_timestamp is None and headers[0].max_timestamp >= 0 and not before:
            self._rolling_based_timestamp = headers[0].max_timestamp

    def append_aborted_txn(self, txn: AbortedTxn) -> None:
        """Add an aborted transaction whose marker is in this segment to the index."""
        self.transactions.append(txn)

    def locate(self, offset: int) -> BatchHeader | None:
        """Return the first batch whose last offset is at least `offset`, or None.

        Raises:
            CorruptRecordError: The batches are damaged.
        """
        return self._indexes.locate(offset)

    def read(
        self, offset: int, max_size: int, max_position: int, *, min_one_message: bool
    ) -> tuple[int, FileSlice] | None:
        """Return batches as a slice of the file, starting with the one that contains an offset.

        The slice is empty if its first batch would be incomplete: to consumers of Fetch version 3
        and above, a single incomplete batch is a record that can never be read (Kafka:
        FetchDataInfo.firstEntryIncomplete). The last of several batches may be incomplete.

        Args:
            offset: First offset to read.
            max_size: Maximum bytes.
            max_position: End of the readable bytes, exclusive.
            min_one_message: Return the first batch even if it is larger (KIP-74).

        Returns:
            Position and slice; None if all batches are before the offset.
        """
        found = self._recent.locate(offset)
        if found is None:
            first = self.locate(offset)
            if first is None:
                return None
            found = first.position, first.size_in_bytes
        position, first_size = found
        size = max(max_size, first_size) if min_one_message else max_size
        size = min(size, max_position - position)
        if size < first_size:
            size = 0
        return position, self.records.slice(position, size)

    def find_offset_by_timestamp(
        self, timestamp: int, starting_offset: int
    ) -> OffsetAndTimestamp | None:
        """Return the first record with a timestamp at or after this one, or None."""
        entry = self._indexes.lookup_timestamp(timestamp)
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
        """Return the offset after the last record, or the base offset of an empty segment."""
        next_offset = self.base_offset
        for header in self._indexes.last_headers():
            next_offset = header.last_offset + 1
        return next_offset

    def is_torn(self) -> bool:
        """Return whether invalid bytes follow the last whole batch.

        Batches appended after them could not be read.
        """
        end = 0
        for header in self._indexes.last_headers():
            end = header.end_position
        return end != self.size

    def columns_backwards(self, most_bytes: int) -> Iterator[BatchColumns]:
        """Iterate over the headers of the last batches, in pieces from the end of the file on.

        The first piece is small, since it mostly suffices.

        Args:
            most_bytes: Number of bytes from the end on that are read, rounded up to an index entry.
        """
        end, size = self.size, _FIRST_BYTES
        lowest = max(0, end - most_bytes)
        while end > lowest:
            start = self._indexes.batch_start(max(lowest, end - size))
            yield from reversed(list(self.records.header_columns(start, end)))
            end, size = start, most_bytes

    def recover(self, visit: BatchVisitor) -> int:
        """Verify every batch, truncate at the first invalid one and rebuild the indexes.

        Args:
            visit: Called with all valid batches, in order.

        Returns:
            Number of bytes truncated.
        """
        self._indexes.empty()
        valid_bytes = 0
        try:
            for columns in self._valid_batch_columns():
                for rows in columns.runs():
                    visit(columns, rows)
                    self._indexes.index_batches(columns, rows)
                    valid_bytes = columns.positions[rows[-1]] + columns.sizes[rows[-1]]
        except CorruptRecordError as problem:
            _log.warning(
                "%s: found an invalid batch at position %d: %s", self, valid_bytes, problem
            )
        cut = self.size - valid_bytes
        if cut:
            self.records.truncate_to(valid_bytes)
        self._indexes.finish()
        return cut

    def truncate_to(self, offset: int) -> None:
        """Remove all batches whose last offset is at or above an offset."""
        first = self.locate(offset)
        self._truncate_at(self.size if first is None else first.position, offset)

    def flush_records(self) -> None:
        """Flush the batches; the first call also flushes the directory."""
        self.records.flush()
        if not self._name_flushed:
            self._files.flush_directory(self.path.parent)
            self._name_flushed = True

    def unload_idle_indexes(self) -> None:
        """Release files and memory of indexes that were not used since the last call."""
        self._indexes.unload_if_idle()

    def rebuild_indexes(self) -> None:
        """Rebuild offset and time index from the batches."""
        self._indexes.rebuild()

    def flush_indexes(self) -> None:
        """Flush the indexes."""
        if self.is_open:
            self._indexes.flush()

    def release(self) -> None:
        """Close the files and leave them as they are. Idempotent."""
        self.is_open = False
        self._indexes.release()
        self.records.close()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files of the segment from one suffix to another."""
        self.change_log_suffix(old, new)
        self._indexes.change_suffix(old, new)

    def change_log_suffix(self, old: str, new: str) -> None:
        """Rename the file with the batches."""
        path = log_file_utils.with_suffix_changed(self.path, old, new)
        self.records.rename_to(self._files, path)

    def change_index_suffixes(self, old: str, new: str) -> None:
        """Rename the files of the indexes."""
        self._indexes.change_suffix(old, new)

    def moved_to(self, directory: Path) -> None:
        """Update the paths after the directory was renamed."""
        self.records.moved_to(directory)
        self._indexes.moved_to(directory)

    def delete_files(self) -> None:
        """Delete all files. Slices that are being sent remain readable."""
        self.is_open = False
        self._indexes.release()
        for path in (self.path, *self._indexes.paths()):
            self._files.remove(path)

    def _valid_batch_columns(self) -> Iterator[BatchColumns]:
        return self.records.valid_batch_columns(
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

    def _truncate_at(self, position: int, offset: int) -> None:
        """Truncate the file at a batch's position, and the indexes at its offset."""
        self._recent.clear()
        if position < self.size:
            self.records.truncate_to(position)
        if not self.size:
            self._rolling_based_timestamp = None
        try:
            self._indexes.truncate_to(offset)
            self._indexes.prepare_for_append()
        except OSError:
            self._indexes.needs_rebuild = True
            raise

    def _waited_for_roll(self, now_ms: int, max_timestamp: int) -> int:
        if self._rolling_based_timestamp is None:
            first = self.records.header_at(0)
            if first is not None and first.max_timestamp >= 0:
                self._rolling_based_timestamp = first.max_timestamp
        if self._rolling_based_timestamp is not None and max_timestamp >= 0:
            return max_timestamp - self._rolling_based_timestamp
        return now_ms - self.created_ms
