"""Segments of a log on disk: append, read, roll, truncate (Kafka: LocalLog)."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from pathlib import Path

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_offset_metadata import FetchDataInfo, LogOffsetMetadata
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.common.broker_errors import OffsetOutOfRangeError, RecordBatchTooLargeError
from kclient.common.errors import IllegalStateError
from kclient.common.files import Files, WireBytes
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.common.uuids import RandomSource
from kclient.record import BatchHeader

_MAX_OFFSET = 2**63 - 1


class LogSegments:
    """Segments in the order of their base offsets. Guarded by the log's lock.

    Attributes:
        last: Active segment; a log always has one once it is loaded.
    """

    last: LogSegment

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._by_offset: dict[int, LogSegment] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_offset

    def add(self, segment: LogSegment) -> None:
        """Add a segment; one with the same base offset is replaced."""
        if segment.base_offset not in self._by_offset:
            insort(self._offsets, segment.base_offset)
        self._by_offset[segment.base_offset] = segment
        self.last = self._by_offset[self._offsets[-1]]

    def remove(self, base_offset: int) -> None:
        """Remove a segment; its files stay."""
        del self._by_offset[base_offset]
        self._offsets.remove(base_offset)
        if self._offsets:
            self.last = self._by_offset[self._offsets[-1]]

    def clear(self) -> None:
        """Remove all segments; their files stay."""
        self._offsets.clear()
        self._by_offset.clear()

    def values(self) -> list[LogSegment]:
        """Return all segments in order."""
        return [self._by_offset[offset] for offset in self._offsets]

    def base_offsets(self) -> list[int]:
        """Return the base offsets in order."""
        return list(self._offsets)

    @property
    def first_offset(self) -> int:
        """Base offset of the first segment; a log always has one."""
        return self._offsets[0]

    def floor(self, offset: int) -> LogSegment | None:
        """Return the segment with the greatest base offset that is at most `offset`."""
        index = bisect_right(self._offsets, offset) - 1
        return self._by_offset[self._offsets[index]] if index >= 0 else None

    def higher(self, offset: int) -> LogSegment | None:
        """Return the segment with the least base offset above `offset`."""
        index = bisect_right(self._offsets, offset)
        return self._by_offset[self._offsets[index]] if index < len(self._offsets) else None

    def between(self, start: int, end: int = _MAX_OFFSET) -> list[LogSegment]:
        """Return the segments that may contain offsets from `start` to before `end`."""
        low = max(bisect_right(self._offsets, start) - 1, 0)
        high = bisect_left(self._offsets, end)
        return [self._by_offset[offset] for offset in self._offsets[low:high]]

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        return sum(segment.size for segment in self._by_offset.values())


class LocalLog:
    """Segments of one directory; records are appended to the last one. Guarded by the log's lock.

    Attributes:
        partition: Partition of the log.
        directory: Directory of the files.
        config: Topic configuration; replaced when it changes.
        segments: All segments; loaded by `LogLoader`.
        log_end_offset: Offset of the next record.
        recovery_point: All records before this offset are flushed.
        last_flush_ms: Monotonic time of the last flush.
        is_closed: Whether the files were closed.
        truncations: Number of truncations since the log was loaded.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        rng: RandomSource,
    ) -> None:
        self._files = files
        self._clock = clock
        self._rng = rng
        self.directory = directory
        self.partition = partition
        self.config = config
        self.segments = LogSegments()
        self.log_end_offset = 0
        self.recovery_point = 0
        self.last_flush_ms = 0.0
        self.is_closed = False
        self.truncations = 0
        self._deleted: list[tuple[float, LogSegment]] = []

    @property
    def active(self) -> LogSegment:
        """Active segment."""
        return self.segments.last

    @property
    def first_offset(self) -> int:
        """Base offset of the first segment."""
        return self.segments.first_offset

    @property
    def unflushed_messages(self) -> int:
        """Number of records that may not be flushed."""
        return self.log_end_offset - self.recovery_point

    @property
    def flushes_appends(self) -> bool:
        """Whether each append is flushed, or may be."""
        return self.config.flushes_appends

    @property
    def must_flush(self) -> bool:
        """Whether flush.messages requires a flush."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def end_offset_metadata(self) -> LogOffsetMetadata:
        """Log end offset with its position."""
        return LogOffsetMetadata(self.log_end_offset, self.active.base_offset, self.active.size)

    def end_offset_of(self, segment: LogSegment) -> int:
        """Return the end offset of a segment: the base offset of the next one, or the log's end."""
        following = self.segments.higher(segment.base_offset)
        return self.log_end_offset if following is None else following.base_offset

    def all_segments(self) -> list[LogSegment]:
        """Return all segments in order."""
        return self.segments.values()

    def segments_between(self, start: int, end: int = _MAX_OFFSET) -> list[LogSegment]:
        """Return the segments that may contain offsets from `start` to before `end`."""
        return self.segments.between(start, end)

    def unflushed_segments(self, end: int) -> list[LogSegment]:
        """Return the segments that may contain unflushed records before an offset."""
        return self.segments.between(self.recovery_point, end)

    def has_rolled_segments(self) -> bool:
        """Return whether there is another segment than the active one."""
        return len(self.segments) > 1

    def has_deleted_segments(self) -> bool:
        """Return whether files of deleted segments are left."""
        return bool(self._deleted)

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        return self.segments.size_in_bytes()

    def is_torn(self) -> bool:
        """Return whether invalid bytes follow the last whole batch of the log."""
        return len(self.segments) > 0 and self.active.is_torn()

    def open_segment(self, base_offset: int) -> LogSegment:
        """Open or create a segment; it is not added to the log."""
        segment = LogSegment.open(
            self._files, self.directory, base_offset, self.config, self._clock.wall_ms()
        )
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment.roll_jitter_ms = int.from_bytes(self._rng.randbytes(8)) % jitter if jitter else 0
        return segment

    def append(self, records: WireBytes, headers: Sequence[BatchHeader]) -> None:
        """Write batches to the active segment."""
        segments = self.segments
        segments.last.append(records, headers)
        self.log_end_offset = headers[-1].next_offset

    def append_aborted_txn(self, txn: AbortedTxn) -> None:
        """Add an aborted transaction, whose marker is in the active segment, to its index."""
        self.active.append_aborted_txn(txn)

    def check_fits(self, size: int) -> None:
        """Check that batches of one append are not larger than a segment.

        Raises:
            RecordBatchTooLargeError: They are.
        """
        limit = self.config.segment_bytes
        if size > limit:
            raise RecordBatchTooLargeError(
                f"{self.partition}: got {size} bytes of batches, expected at most {limit} "
                "(segment.bytes)"
            )

    def roll(self, expected_next_offset: int) -> LogSegment:
        """Create a new active segment at an offset, or at the log end offset if that is higher."""
        base_offset = max(expected_next_offset, self.log_end_offset)
        if base_offset in self.segments:
            existing = self.segments.floor(base_offset)
            if existing is not self.active or existing.size:
                raise IllegalStateError(f"{self.partition}: segment {base_offset} exists already")
            existing.delete_files()
            existing.release()
            self.segments.remove(base_offset)
        else:
            self.active.finish()
        return self._begin_segment(base_offset)

    def read(
        self, start_offset: int, max_length: int, end: LogOffsetMetadata, *, min_one_message: bool
    ) -> FetchDataInfo:
        """Return batches, starting with the one that contains an offset.

        Args:
            start_offset: First offset to read.
            max_length: Maximum bytes; no data is returned if the first batch is larger.
            end: End of the readable range, exclusive.
            min_one_message: Return the first batch even if it is larger.

        Raises:
            OffsetOutOfRangeError: The offset is not in the log.
        """
        segment = self.segments.floor(start_offset)
        if segment is None or start_offset > self.log_end_offset:
            raise OffsetOutOfRangeError(
                f"{self.partition}: got offset {start_offset}, expected "
                f"{self.first_offset} to {self.log_end_offset}"
            )
        while segment is not None and start_offset < end.message_offset:
            in_same = segment.base_offset == end.segment_base_offset
            found = segment.read(
                start_offset,
                max_length,
                end.relative_position if in_same else segment.size,
                min_one_message=min_one_message,
            )
            if found is not None:
                position, records = found
                where = LogOffsetMetadata(start_offset, segment.base_offset, position)
                return FetchDataInfo(start_offset, records, where)
            segment = self.segments.higher(segment.base_offset)
        return FetchDataInfo(start_offset, b"", end)

    def collect_aborted_transactions(self, info: FetchDataInfo) -> list[AbortedTxn]:
        """Return the aborted transactions that overlap the result of a read."""
        segment = self.segments.floor(info.start_offset)
        if segment is None or not len(info.records):
            return []
        upper = self._end_offset_of(info)
        found = []
        for segment in self.segments.between(info.start_offset):
            for txn in segment.transactions.aborted_txns():
                if txn.last_offset >= info.start_offset and txn.first_offset < upper:
                    found.append(txn)
                if txn.last_stable_offset >= upper:
                    return found
        return found

    def _end_offset_of(self, info: FetchDataInfo) -> int:
        """Return the end offset of the result of a read."""
        base = info.position.segment_base_offset
        segment: LogSegment | None = self.segments.floor(base)
        end_position = info.position.relative_position + len(info.records)
        if segment is not None:
            for header in segment.records.headers(info.position.relative_position):
                if header.end_position >= end_position:
                    return header.last_offset + 1
        return self.log_end_offset

    def position_of(self, offset: int) -> LogOffsetMetadata:
        """Return the position of the batch that contains an offset, or of the next one.

        Raises:
            OffsetOutOfRangeError: The offset is not in the log.
        """
        if offset == self.log_end_offset:
            return self.end_offset_metadata
        found = self.read(offset, 0, self.end_offset_metadata, min_one_message=True)
        return found.position

    def truncate_to(self, offset: int) -> None:
        """Remove all batches whose last offset is at or above an offset.

        It is flushed, last segment first: batches that a crash restored could follow those that
        are appended next.
        """
        self.truncations += 1
        for segment in reversed(self.segments.values()):
            if segment.base_offset > offset:
                self._drop(segment)
                self._files.flush_directory(self.directory)
        self.active.truncate_to(offset)
        self.active.prepare_for_append()
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.active.flush_records()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Delete all segments and start the log at an offset; it is flushed."""
        self.truncations += 1
        for segment in reversed(self.segments.values()):
            self._drop(segment)
        self._begin_segment(offset)
        self._files.flush_directory(self.directory)
        self.recovery_point = min(self.recovery_point, offset)

    def remove_segments(self, segments: list[LogSegment], now_ms: float) -> None:
        """Remove segments from the log and delete their files after file.delete.delay.ms."""
        for segment in segments:
            self.segments.remove(segment.base_offset)
            self.delete_later(segment, now_ms)

    def delete_later(self, segment: LogSegment, now_ms: float) -> None:
        """Delete the files of a removed segment after file.delete.delay.ms."""
        self._deleted.append((now_ms + self.config.file_delete_delay_ms, segment))

    def replace(self, old: list[LogSegment], new: LogSegment) -> None:
        """Replace segments by one; the files of the old ones stay."""
        for segment in old:
            self.segments.remove(segment.base_offset)
        self.segments.add(new)

    def purge_deleted(self, now_ms: float) -> float | None:
        """Delete the files that are due; return when the next ones are."""
        due = [segment for when, segment in self._deleted if when <= now_ms]
        self._deleted = [(when, segment) for when, segment in self._deleted if when > now_ms]
        for segment in due:
            segment.delete_files()
        return min((when for when, _ in self._deleted), default=None)

    def rename_directory(self, target: Path) -> None:
        """Rename the directory; the caller flushes the parent directory."""
        if target != self.directory:
            self._files.rename(self.directory, target, flushed=False)
            self.directory = target
            for segment in self.segments.values():
                segment.moved_to(target)
            for _, segment in self._deleted:
                segment.moved_to(target)

    def delete_directory(self) -> None:
        """Delete the directory and its contents."""
        self.release()
        self._files.remove_tree(self.directory)

    def mark_flushed(self, offset: int, now_ms: float) -> None:
        """Advance the recovery point to a flushed offset."""
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        self.last_flush_ms = now_ms

    def finish(self) -> None:
        """Write the last index entries and trim the indexes before the log is closed."""
        self.active.finish()  # the others' were finished when they were rolled

    def release(self) -> None:
        """Close all files and leave them as they are. Idempotent."""
        self.is_closed = True
        for segment in self.segments.values():
            segment.release()
        for _, segment in self._deleted:
            segment.release()
        self._deleted.clear()

    def _begin_segment(self, base_offset: int) -> LogSegment:
        segment = self.open_segment(base_offset)
        try:
            segment.prepare_for_append()
        except OSError:
            segment.release()
            raise
        self.segments.add(segment)
        self.log_end_offset = base_offset
        return segment

    def _drop(self, segment: LogSegment) -> None:
        self.segments.remove(segment.base_offset)
        segment.delete_files()
