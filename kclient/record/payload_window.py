"""Part of a batch's records that is held in memory while they are read."""

from io import BytesIO
from typing import Final, NamedTuple

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import CompressionError
from kclient.common.files import WireBytes
from kclient.record.batch_header import (
    COMPRESSION_MASK,
    MAX_INT32,
    MIN_RECORD_SIZE,
    BatchHeader,
)
from kclient.record.compression import Decompressor, decompress
from kclient.record.errors import DecompressedRecordSizeError
from kclient.record.varints import MalformedRecordError, read_varint, read_varlong

DEFAULT_MAX_RECORD_BYTES: Final = MAX_INT32
"""Default limit of the size of a record in a compressed batch, the largest that Kafka can write."""

FIRST_WINDOW: Final = 8 * 1024 * 1024
"""Size of the first window: a batch that decompresses to less is decompressed at once."""

NEXT_WINDOW: Final = 1024 * 1024
"""Size of the following windows, unless a record is larger."""

# Readers of a malformed record stop at most this far after its end, so that its error does not
# depend on the window.
_OVERRUN: Final = 64


class LargeRecord(NamedTuple):
    """Fields of a record whose key and value were skipped.

    Attributes:
        timestamp_delta: Timestamp delta.
        offset_delta: Offset delta.
        has_key: Whether its key is not null.
        headers_size: Size of its headers; the window starts with them.
    """

    timestamp_delta: int
    offset_delta: int
    has_key: bool
    headers_size: int


class PayloadWindow:
    """Window of the records of a batch, which moves along the compressed stream.

    Without compression, and if the records are small enough, it holds all of them. Otherwise its
    size depends on the largest record and not on that of the batch, so that a batch of any size can
    be read. The memory for a record grows as its data is decompressed.

    Args:
        batch: Header of the batch.
        payload: The batch's bytes after the header.
        max_record_bytes: Maximum size of a record.

    Attributes:
        data: The bytes of the window.
        is_last: Whether the window ends where the records end.

    Raises:
        CompressionError: The stream is corrupt.
        CorruptRecordError: The payload is too short for the number of records.
    """

    __slots__ = (
        "_ahead",
        "_base_offset",
        "_max_record_bytes",
        "_problem",
        "_stream",
        "data",
        "is_last",
    )

    def __init__(self, batch: BatchHeader, payload: WireBytes, max_record_bytes: int) -> None:
        self._base_offset = batch.base_offset
        self._max_record_bytes = max_record_bytes
        self._stream: Decompressor | None = None
        self._ahead = b""  # read from the stream, not yet in the window
        self._problem = ""  # error of the stream after the window
        self.data = payload
        if batch.attributes & COMPRESSION_MASK:
            most = min(FIRST_WINDOW, max_record_bytes)
            try:
                self.data, self._stream = decompress(batch.compression_type, payload, most)
            except CompressionError as error:
                raise CompressionError(self._located(error)) from error
        self.is_last = self._stream is None
        if self.is_last and batch.count > len(self.data) // MIN_RECORD_SIZE:
            raise CorruptRecordError(
                self._located(f"it states {batch.count} records in {len(self.data)} bytes")
            )

    def advance(self, position: int) -> bool:
        """Move the window to a record that could not be parsed, so that it is complete.

        Args:
            position: Start of the record in the window.

        Returns:
            Whether the window was moved, and the record is to be parsed again; False if the record
            is malformed.

        Raises:
            CompressionError: The record is larger than the limit, or the stream is corrupt.
        """
        end = self._end_of_record(position)
        if self.is_last or end is None or end + _OVERRUN <= len(self.data):
            return False
        if self._problem:
            raise CompressionError(self._problem)
        if end - position > self._max_record_bytes:
            raise DecompressedRecordSizeError(
                self._located(
                    f"got a record of {end - position} bytes, expected at most "
                    f"{self._max_record_bytes}; raise max.decompressed.record.bytes to read it"
                )
            )
        usual = min(NEXT_WINDOW, self._max_record_bytes)
        self._fill(position, max(end - position + _OVERRUN, usual))
        return True

    def skim(self, position: int) -> LargeRecord | None:
        """Skip key and value of a record that is larger than a window; None if it is not.

        Args:
            position: Start of the record in the window; it could not be parsed.

        Raises:
            CompressionError: The stream is corrupt.
            MalformedRecordError: The record is malformed.
        """
        end = self._end_of_record(position)
        if end is None or end <= max(len(self.data), position + NEXT_WINDOW):
            return None
        self._fill(position, max(NEXT_WINDOW, _OVERRUN))
        try:
            _, at = read_varint(self.data, 0)
            timestamp_delta, at = read_varlong(self.data, at + 1)
            offset_delta, at = read_varint(self.data, at)
            key_size, at = read_varint(self.data, at)
            left = self._skip(end - position, at, key_size)
            value_size, at = read_varint(self.data, 0)
            left = self._skip(left, at, value_size)
        except IndexError:
            raise self._truncated() from None
        self._fill(0, left + _OVERRUN)
        if left > len(self.data):
            raise self._truncated()
        return LargeRecord(timestamp_delta, offset_delta, key_size >= 0, left)

    def _skip(self, left: int, position: int, size: int) -> int:
        """Move the window after a field, and return how much is left of the record."""
        skipped = position + max(size, 0)
        if size < -1 or skipped > left:
            raise MalformedRecordError(f"a field states {size} bytes, {left - position} remain")
        left -= skipped
        while skipped > len(self.data):
            skipped -= len(self.data)
            self._fill(len(self.data), NEXT_WINDOW)
            if not self.data:
                raise self._truncated()
        self._fill(skipped, max(NEXT_WINDOW, _OVERRUN))
        return left

    def _truncated(self) -> Exception:
        if self._problem:
            return CompressionError(self._problem)
        return MalformedRecordError("the data is truncated")

    def ends_at(self, position: int) -> bool:
        """Return whether the records end at a position of the window.

        Raises:
            CompressionError: The stream is corrupt.
        """
        if position != len(self.data):
            return False
        if not (self.is_last or self._ahead or self._problem):
            try:
                self._ahead = self._read(1)
            except CompressionError as error:
                self._problem = self._located(error)
            self.is_last = not (self._ahead or self._problem)
        if self._problem:
            raise CompressionError(self._problem)
        return self.is_last

    def _end_of_record(self, position: int) -> int | None:
        """Return the end of a record, as far as its length is known; None if that is invalid."""
        try:
            length, start = read_varint(self.data, position)
        except IndexError:
            return len(self.data)
        except MalformedRecordError:
            return None
        return start + length if length >= MIN_RECORD_SIZE - 1 else None

    def _fill(self, position: int, size: int) -> None:
        """Move the window to a position; it gets `size` bytes, or fewer if the stream ends."""
        content = BytesIO()
        missing = size - content.write(memoryview(self.data)[position:])
        missing -= content.write(self._ahead)
        self.data = self._ahead = b""  # freed before the new window grows
        try:
            while missing > 0 and (piece := self._read(missing)):
                missing -= content.write(piece)
            self.is_last = missing > 0
        except CompressionError as error:
            self._problem = self._located(error)  # raised after the records before it
        self.data = content.getvalue()  # without a copy

    def _located(self, what: object) -> str:
        return f"record batch at offset {self._base_offset}: {what}"

    def _read(self, size: int) -> bytes:
        return b"" if self._stream is None else self._stream.read(size)
