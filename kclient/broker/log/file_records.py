"""Record batches of one segment in a file (Kafka: FileRecords, FileLogInputStream)."""

import struct
from collections.abc import Iterator
from pathlib import Path

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import File, Files, FileSlice, WireBytes
from kclient.record import (
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    BatchColumns,
    BatchHeader,
    RecordBatch,
    ScanLimits,
    parse_header,
    read_batches,
    scan_batches,
    scan_headers,
)
from kclient.record.batch_header import MAGIC

MAX_BATCH_SIZE = 1024 * 1024 * 1024
"""Upper bound of a batch on disk, by which a damaged size is recognized (Kafka has none).

It is above what ``socket.request.max.bytes`` can reasonably be; ``max.message.bytes`` limits what
is appended.
"""

_SPAN = struct.Struct(">qi4xb6xi")
"""The header fields that determine the end of a batch: base offset, length, magic, offset delta."""

_SCAN_CHUNK = 8 * 1024
_READ_CHUNK = 1024 * 1024
_HEADERS_CHUNK = 64 * 1024
_MAX_OFFSET = 2**63 - 2
_MIN_LENGTH = RECORD_BATCH_OVERHEAD - LOG_OVERHEAD


def framing_error(header: BatchHeader) -> CorruptRecordError | None:
    """Return the error of a header with an invalid size or magic, or None."""
    where, size = f"batch at position {header.position}", header.size_in_bytes
    if not RECORD_BATCH_OVERHEAD <= size <= MAX_BATCH_SIZE:
        return CorruptRecordError(
            f"{where}: got a size of {size} bytes, expected {RECORD_BATCH_OVERHEAD} to "
            f"{MAX_BATCH_SIZE}"
        )
    if header.magic != MAGIC:
        return CorruptRecordError(f"{where}: got magic {header.magic}, expected {MAGIC}")
    return None


def _parse(buffer: WireBytes, at: int, position: int) -> BatchHeader:
    header = parse_header(buffer, at, position)
    error = framing_error(header)
    if error is not None:
        raise error
    return header


def _check_position(position: int) -> None:
    # A damaged index may contain one; the operating system would report an invalid argument.
    if position < 0:
        raise CorruptRecordError(f"got position {position}, expected >= 0")


class FileRecords:
    """Append-only file of record batches.

    The size is tracked here; bytes after it do not belong to the log.
    """

    def __init__(self, file: File, size: int) -> None:
        self.file = file
        self.size = size

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.file.path

    def append(self, records: WireBytes) -> None:
        """Write batches at the end.

        Raises:
            OSError: The write failed; a partial write was truncated if possible.
        """
        try:
            self.file.write_at(self.size, records)
        except OSError:
            self.file.truncate(self.size)
            raise
        self.size += len(records)

    def truncate_to(self, size: int) -> int:
        """Truncate the file at a position; return the number of bytes removed."""
        cut = self.size - size
        self.file.truncate(size)
        self.size = size
        return cut

    def write_back(self, position: int) -> None:
        """Rewrite the bytes from a position on, so that the next flush covers them."""
        while position < self.size:
            data = self.file.read_at(position, min(_READ_CHUNK, self.size - position))
            if not data:
                return
            self.file.write_at(position, data)
            position += len(data)

    def slice(self, position: int, length: int) -> FileSlice:
        """Return a slice of the file, for zero-copy transfer."""
        return FileSlice(self.file, position, min(length, self.size - position))

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
        """Iterate over batch headers; a batch that extends beyond `end` is not returned.

        Raises:
            CorruptRecordError: The bytes at a batch's position are not a valid batch.
        """
        _check_position(position)
        end = self.size if end is None else min(end, self.size)
        chunk, chunk_start, next_offset = b"", position, 0
        while position + RECORD_BATCH_OVERHEAD <= end:
            if position + RECORD_BATCH_OVERHEAD > chunk_start + len(chunk):
                chunk = self.file.read_at(position, min(_SCAN_CHUNK, end - position))
                chunk_start = position
                if len(chunk) < RECORD_BATCH_OVERHEAD:
                    return
            header = _parse(chunk, position - chunk_start, position)
            if header.end_position > end:
                return
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                # The checksum does not cover offsets; only their order reveals damage.
                raise CorruptRecordError(f"{header} is out of order")
            yield header
            position, next_offset = header.end_position, header.last_offset + 1

    def find(self, position: int, offset: int) -> tuple[int, BatchHeader | None]:
        """Find the first batch whose last offset is at least `offset`.

        Returns:
            The last offset of the batch at `position`, -1 if there is none; and the batch found.

        Raises:
            CorruptRecordError: The bytes at a batch's position are not a valid batch.
        """
        _check_position(position)
        chunk, chunk_start, first = b"", position, -1
        while position + RECORD_BATCH_OVERHEAD <= self.size:
            at = position - chunk_start
            if at + RECORD_BATCH_OVERHEAD > len(chunk):
                chunk = self.file.read_at(position, min(_SCAN_CHUNK, self.size - position))
                chunk_start, at = position, 0
                if len(chunk) < RECORD_BATCH_OVERHEAD:
                    break
            base_offset, length, magic, delta = _SPAN.unpack_from(chunk, at)
            first = base_offset + delta if first < 0 else first
            if base_offset + delta >= offset or magic != MAGIC or length < _MIN_LENGTH:
                header = _parse(chunk, at, position)
                return first, header if header.end_position <= self.size else None
            position += length + LOG_OVERHEAD
        return first, None

    def header_at(self, position: int) -> BatchHeader | None:
        """Return the header of the batch at a position, or None at the end."""
        return next(self.headers(position), None)

    def batch(self, header: BatchHeader) -> RecordBatch:
        """Read a whole batch."""
        data = self.file.read_at(header.position, header.size_in_bytes)
        for batch in read_batches(data):
            batch.position = header.position
            return batch
        raise CorruptRecordError(f"batch at position {header.position}: the file ends in it")

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[RecordBatch]:
        """Iterate over whole batches, reading the file in large chunks.

        Raises:
            CorruptRecordError: The bytes at a batch's position are not a valid batch. Checksums are
                not verified.
        """
        end = self.size if end is None else min(end, self.size)
        chunk, chunk_start = memoryview(b""), position
        for header in self.headers(position, end):
            if header.end_position > chunk_start + len(chunk):
                wanted = min(max(_READ_CHUNK, header.size_in_bytes), end - header.position)
                chunk = memoryview(self.file.read_at(header.position, wanted))
                chunk_start = header.position
            batch = RecordBatch(chunk, header.position - chunk_start)
            batch.position = header.position
            yield batch

    def valid_batch_columns(
        self, *, next_offset: int = 0, last_offset: int = _MAX_OFFSET
    ) -> Iterator[BatchColumns]:
        """Iterate over all batches as columns and verify their checksums.

        Args:
            next_offset: Lowest offset of the first batch.
            last_offset: Highest offset of any record.

        Raises:
            CorruptRecordError: The bytes after the batches returned so far are not a valid batch.
        """
        limits = ScanLimits(next_offset, min(last_offset, _MAX_OFFSET), MAX_BATCH_SIZE)
        position, wanted = 0, _READ_CHUNK
        while self.size - position >= RECORD_BATCH_OVERHEAD:
            data = self.file.read_at(position, min(wanted, self.size - position))
            columns = scan_batches(data, position, limits)
            yield from _checked(columns)
            if columns.end == position and columns.wanted <= wanted:
                return  # the file is shorter than it was
            position, wanted = columns.end, max(columns.wanted, _READ_CHUNK)
            if columns.wanted > self.size - position:
                return
            limits = _limits_after(limits, columns)

    def header_columns(self, position: int = 0, end: int | None = None) -> Iterator[BatchColumns]:
        """Iterate over the headers of all batches from a position on, as columns.

        Args:
            position: Start position of a batch.
            end: Batches that extend beyond it are excluded; None for the end of the file.

        Raises:
            CorruptRecordError: The bytes after the batches returned so far are not a valid batch.
        """
        _check_position(position)
        end = self.size if end is None else min(end, self.size)
        limits = ScanLimits(0, _MAX_OFFSET, MAX_BATCH_SIZE)
        while position + RECORD_BATCH_OVERHEAD <= end:
            data = self.file.read_at(position, min(_HEADERS_CHUNK, end - position))
            columns = scan_headers(data, position, end, limits)
            yield from _checked(columns)
            if columns.end == position:
                return
            position = columns.end
            limits = _limits_after(limits, columns)

    def flush(self) -> None:
        """Flush the file."""
        self.file.flush()

    def rename_to(self, files: Files, path: Path) -> None:
        """Rename the file."""
        files.rename(self.file.path, path)
        self.file.path = path

    def moved_to(self, directory: Path) -> None:
        """Update the path after the directory was renamed."""
        self.file.path = directory / self.path.name

    def close(self) -> None:
        """Close the file. Idempotent."""
        self.file.close()


def _checked(columns: BatchColumns) -> Iterator[BatchColumns]:
    if columns.batch_count:
        yield columns
    if columns.problem is not None:
        raise CorruptRecordError(f"position {columns.end}: {columns.problem}")


def _limits_after(limits: ScanLimits, columns: BatchColumns) -> ScanLimits:
    if not columns.batch_count:
        return limits
    return limits._replace(next_offset=columns.last_offsets[-1] + 1)
