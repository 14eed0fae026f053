"""Record batch with parsing of its records."""

from collections.abc import Iterator

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import WireBytes
from kclient.record.batch_header import (
    MAX_INT32,
    MAX_INT64,
    MIN_RECORD_SIZE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
)
from kclient.record.payload_window import DEFAULT_MAX_RECORD_BYTES, PayloadWindow
from kclient.record.record import Header, Record, RecordsSummary
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.record_batch import read_batches as read_batches_of_kind
from kclient.record.reference.equal_records import ParsedRecord, equal_records
from kclient.record.varints import MalformedRecordError, read_varint, read_varlong

_NULL = 1  # the length -1
_FIRST_PAUSE, _LONGEST_PAUSE = 16, 1024  # records decoded singly before the next equal ones

_Fields = tuple[int, int, int, bytes | None, bytes | None, list[Header] | tuple[()]]
"""Position after the record, timestamp delta, offset delta, key, value, headers."""


def _parse(data: bytes, position: int) -> _Fields:
    # Integers of one byte are decoded inline, here and below: a call costs more.
    length, position = read_varint(data, position)
    end = position + length
    if length < MIN_RECORD_SIZE - 1:
        raise MalformedRecordError(f"it states {length} bytes")
    if end > len(data):
        raise MalformedRecordError(f"it states {length} bytes, {len(data) - position} remain")
    position += 1  # attributes, unused
    byte = data[position]
    if byte < 0x80:
        timestamp_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        timestamp_delta, position = read_varlong(data, position)
    byte = data[position]
    if byte < 0x80:
        offset_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        offset_delta, position = read_varint(data, position)
    is_null = data[position] == _NULL
    key, position = (None, position + 1) if is_null else _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    is_last = data[position] == 0
    headers, position = ((), position + 1) if is_last else _read_headers(data, position, end)
    if position != end:
        raise MalformedRecordError(f"its fields end {position - end:+d} bytes off its length")
    return end, timestamp_delta, offset_delta, key, value, headers


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    byte = data[position]
    if byte < 0x80:
        length, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        length, position = read_varint(data, position)
    after = position + length
    if length >= 0 and after <= end:
        return data[position:after], after
    if length == -1:
        return None, position
    raise MalformedRecordError(f"a field states {length} bytes, {end - position} remain")


def _read_headers(data: bytes, position: int, end: int) -> tuple[list[Header], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= (end - position) // 2:  # a header has two bytes at least
        raise MalformedRecordError(f"it states {count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise MalformedRecordError("a header has no name")
        value, position = _read_bytes(data, position, end)
        # As in Kafka: a name that is not UTF-8 must not make the partition unreadable.
        headers.append((name.decode(errors="replace"), value))
    return headers, position


def parsed_records(
    batch: AbstractRecordBatch,
    window: PayloadWindow,
    position: int = 0,
    index: int = 0,
    previous: int = -1,
    *,
    ahead: int = MAX_INT32,
) -> Iterator[ParsedRecord]:
    """Yield the records of a window, with timestamps instead of their deltas.

    The record after the last one of the window raises `CorruptRecordError`: it is incomplete.

    Args:
        batch: The batch.
        window: Window of the batch's records; its data are bytes.
        position: Start position of the first record.
        index: Index of the first record.
        previous: Offset delta of the preceding record, -1 for the first.
        ahead: Maximum number of records to decode before they are asked for.

    Raises:
        CorruptRecordError: A record is malformed or inconsistent with the batch, or data follows
            the last record.
    """
    count, data = batch.count, bytes(window.data)  # which are bytes already: no copy
    if count == 0:
        check_end(batch, window, position)
    pause, again = _FIRST_PAUSE, index
    while index < count:
        equal = None
        if index >= again:
            equal = equal_records(batch, data, position, index, previous, ahead)
            pause = _FIRST_PAUSE if equal else min(2 * pause, _LONGEST_PAUSE)
            again = index + pause
        if equal is not None:
            number, position, records = equal
            yield from records
            index, previous, again = index + number, previous + number, index
            continue
        record = _parse_record_of(batch, data, position, index, previous)
        if index == count - 1:
            check_end(batch, window, record[1])
        yield record
        _, position, _, previous, _, _, _ = record
        index += 1


def _parse_record_of(
    batch: AbstractRecordBatch, data: bytes, position: int, index: int, previous: int
) -> ParsedRecord:
    try:
        end, delta, offset_delta, key, value, headers = _parse(data, position)
    except MalformedRecordError as error:
        raise batch.corrupt(f"record {index}: {error}") from None
    except IndexError:
        raise batch.corrupt(f"record {index}: the data is truncated") from None
    timestamp = _checked_timestamp(batch, index, previous, delta, offset_delta)
    return index, end, timestamp, offset_delta, key, value, headers


def _checked_timestamp(
    batch: AbstractRecordBatch, index: int, previous: int, delta: int, offset_delta: int
) -> int:
    """Return the timestamp of a record.

    Raises:
        CorruptRecordError: Timestamp or offset are inconsistent with the batch.
    """
    if not previous < offset_delta <= batch.last_offset_delta:
        raise batch.corrupt(
            f"record {index}: its offset delta {offset_delta} is not between the one before, "
            f"{previous}, and the last one, {batch.last_offset_delta}"
        )
    timestamp = batch.base_timestamp + delta
    if not -MAX_INT64 <= timestamp <= MAX_INT64:
        raise batch.corrupt(f"record {index}: its timestamp has more than 64 bits")
    if batch.attributes & TIMESTAMP_TYPE_FLAG:
        timestamp = batch.max_timestamp
    return timestamp


def _skimmed(
    batch: AbstractRecordBatch, window: PayloadWindow, position: int, index: int, previous: int
) -> ParsedRecord | None:
    """Parse a record that is larger than a window without its key and value."""
    try:
        large = window.skim(position)
        if large is None:
            return None
        _, end = _read_headers(bytes(window.data), 0, large.headers_size)
        if end != large.headers_size:
            raise MalformedRecordError("its fields do not fill its length")
    except MalformedRecordError as error:
        raise batch.corrupt(f"record {index}: {error}") from None
    except IndexError:
        raise batch.corrupt(f"record {index}: the data is truncated") from None
    deltas = (large.timestamp_delta, large.offset_delta)
    timestamp = _checked_timestamp(batch, index, previous, *deltas)
    if index == batch.count - 1:
        check_end(batch, window, end)
    return index, end, timestamp, large.offset_delta, b"" if large.has_key else None, None, ()


def check_end(batch: AbstractRecordBatch, window: PayloadWindow, position: int) -> None:
    """Check that no data follows the last record.

    Raises:
        CorruptRecordError: Data follows.
        CompressionError: The compressed stream is corrupt.
    """
    if not window.ends_at(position):
        raise batch.corrupt(f"data follows the last of its {batch.count} records")


class RecordBatch(AbstractRecordBatch):
    """Batch whose records are parsed by Python code."""

    __slots__ = ()

    def records(self, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> list[Record]:
        """Return all records.

        Raises:
            CompressionError: As `AbstractRecordBatch.records`.
            CorruptRecordError: A record is malformed, or the number of records is wrong.
        """
        return [
            Record(self.base_offset + delta, timestamp, key, value, headers or [])
            for _, _, timestamp, delta, key, value, headers in self._parsed(max_record_bytes)
        ]

    def summary(self) -> RecordsSummary:
        """Read all records and return their summary; the memory does not depend on their size.

        Raises:
            CompressionError: As `AbstractRecordBatch.records`.
            CorruptRecordError: As `records`.
        """
        low = high = NO_TIMESTAMP
        top_delta = last_delta = -1
        count = null_keys = 0
        for _, _, timestamp, delta, key, _value, _headers in self._parsed(skims=True):
            low = min(low, timestamp) if count else timestamp
            if not count or timestamp > high:
                high, top_delta = timestamp, delta
            null_keys += key is None
            last_delta = delta
            count += 1
        return RecordsSummary(
            record_count=count,
            min_timestamp=low,
            max_timestamp=high,
            offset_of_max_timestamp=self.base_offset + top_delta if count else -1,
            null_keys=null_keys,
            consecutive=last_delta == count - 1,
        )

    def _parsed(
        self, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES, *, skims: bool = False
    ) -> Iterator[ParsedRecord]:
        """Yield all records; with `skims` large ones without key and value."""
        window = self.window(max_record_bytes)
        position, index, previous = 0, 0, -1
        while True:
            window.data = bytes(window.data)
            try:
                for record in parsed_records(self, window, position, index, previous):
                    yield record
                    index, position, previous = record[0] + 1, record[1], record[3]
                return
            except CorruptRecordError:
                large = _skimmed(self, window, position, index, previous) if skims else None
                if large is None and not window.advance(position):
                    raise
                position = 0
            if large is not None:
                yield large
                index, position, previous = large[0] + 1, large[1], large[3]
                if index == self.count:
                    return


def read_batches(buffer: WireBytes, *, max_batch_size: int | None = None) -> Iterator[RecordBatch]:
    """Yield the consecutive batches of `buffer`, as `record_batch.read_batches`."""
    return read_batches_of_kind(RecordBatch, buffer, max_batch_size=max_batch_size)
