"""Decoding of many records of equal layout at a time, as those of equal size are.

It means the same as the decoding of single records in ``record_batch.py``, which is the
specification, and takes a fifth of the time: a byte of all records is one slice of the data with
the size of a record as its step. Whatever it does not recognize is left to the decoding of single
records, every error included.
"""

from collections.abc import Iterator
from functools import cache
from itertools import repeat
from typing import NamedTuple

from kclient.record.batch_header import TIMESTAMP_TYPE_FLAG
from kclient.record.record import Header
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.varints import (
    MalformedRecordError,
    encode_varint,
    read_varint,
    read_varlong,
)

ParsedRecord = tuple[int, int, int, int, bytes | None, bytes | None, list[Header] | tuple[()]]
"""Index, position after the record, timestamp, offset delta, key, value, headers."""

_LEAST = 8  # fewer records are decoded faster one by one
_MOST = 4096  # bounds the memory of the decoded columns
_MAX_TIMESTAMP_WIDTH = 4  # bytes of a timestamp delta, so that no sum with it can overflow
_MAX_BASE_TIMESTAMP = 1 << 62
_FIRST_DELTAS = (0, 1 << 6, 1 << 13)  # of each width in bytes, and the end of the widest
_CONTINUED, _LAST = bytes(range(0x80, 0x100)), bytes(range(0x80))  # bytes of a varint


class _Layout(NamedTuple):
    """Positions of the fields of a record.

    Attributes:
        size: Size of the record in bytes, its length field included.
        timestamp: Position of the timestamp delta.
        offset: Position of the offset delta.
        key: Position of the key's length.
        key_data: Position of the key, None for null.
        key_end: Position after the key.
        value_data: Position of the value, None for null.
        value_end: Position after the value, of the header count.
        constant: Positions of the bytes that are equal in records of equal layout.
    """

    size: int
    timestamp: int
    offset: int
    key: int
    key_data: int | None
    key_end: int
    value_data: int | None
    value_end: int
    constant: tuple[int, ...]


def equal_records(
    batch: AbstractRecordBatch, data: bytes, position: int, index: int, previous: int, most: int
) -> tuple[int, int, Iterator[ParsedRecord]] | None:
    """Decode the records at a position that have the layout of the first of them.

    They have no headers and consecutive offsets. The last record of a batch is never among them:
    what follows it has to be checked.

    Args:
        batch: The batch.
        data: The batch's payload.
        position: Start position of the first record.
        index: Index of the first record.
        previous: Offset delta of the preceding record, -1 for the first.
        most: Maximum number of records.

    Returns:
        Number of records, position after them, and the records; None if they are few or none.
    """
    most = min(most, _MOST, batch.count - 1 - index, batch.last_offset_delta - previous)
    if most < _LEAST or abs(batch.base_timestamp) > _MAX_BASE_TIMESTAMP:
        return None
    layout = _layout(data, position)
    if layout is None:
        return None
    count = _equal_count(data, position, layout, previous + 1, most)
    if count < _LEAST:
        return None
    size = layout.size
    starts = range(position, position + count * size, size)
    records = zip(
        range(index, index + count),
        range(position + size, position + (count + 1) * size, size),
        _timestamps(batch, data, layout, starts),
        range(previous + 1, previous + 1 + count),
        _fields(data, starts, layout.key_data, layout.key_end),
        _fields(data, starts, layout.value_data, layout.value_end),
        repeat(()),
    )
    return count, starts.stop, records


def _layout(data: bytes, position: int) -> _Layout | None:
    """Return the layout of a record; None if it has headers, is malformed or is unusual."""
    try:
        length, content = read_varint(data, position)
        end = content + length
        timestamp = content + 1  # after the attributes, which are unused
        _, offset = read_varlong(data, timestamp)
        _, key = read_varint(data, offset)
        key_size, key_data = read_varint(data, key)
        key_end = key_data + max(key_size, 0)
        value_size, value_data = read_varint(data, key_end)
        value_end = value_data + max(value_size, 0)
        if value_end + 1 != end or data[value_end] != 0:
            return None
    except (IndexError, MalformedRecordError):
        return None
    if key_size < -1 or value_size < -1 or offset - timestamp > _MAX_TIMESTAMP_WIDTH:
        return None
    return _Layout(
        size=end - position,
        timestamp=timestamp,
        offset=offset,
        key=key,
        key_data=None if key_size < 0 else key_data,
        key_end=key_end,
        value_data=None if value_size < 0 else value_data,
        value_end=value_end,
        constant=(
            *range(position, content),
            *range(key, key_data),
            *range(key_end, value_data),
            value_end,
        ),
    )


def _equal_count(data: bytes, position: int, layout: _Layout, first_delta: int, most: int) -> int:
    """Return how many records from a position have the layout and consecutive offsets."""
    size = layout.size
    count = min(most, (len(data) - position) // size)

    def column(at: int) -> bytes:
        return data[at : at + count * size : size]

    for at in layout.constant:
        count = _leading(column(at), data[at : at + 1])
    for at in range(layout.timestamp, layout.offset):
        count = _leading(column(at), _LAST if at == layout.offset - 1 else _CONTINUED)
    width = layout.key - layout.offset
    if width >= len(_FIRST_DELTAS):
        return 0
    first = first_delta - _FIRST_DELTAS[width - 1]
    if first < 0:  # not in the shortest form
        return 0
    for number, encoded in enumerate(_encoded_deltas(width)):
        count = _common(column(layout.offset + number), encoded[first : first + count])
    return count


def _leading(column: bytes, allowed: bytes) -> int:
    """Return the number of leading bytes that are among those allowed."""
    return len(column) - len(column.lstrip(allowed))


def _common(column: bytes, expected: bytes) -> int:
    """Return the number of leading bytes that are equal."""
    if column == expected:
        return len(column)
    pairs = enumerate(zip(column, expected, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(column), len(expected)))


@cache
def _encoded_deltas(width: int) -> tuple[bytes, ...]:
    """Return the bytes of all offset deltas of a width: all first bytes, and so on."""
    deltas = range(*_FIRST_DELTAS[width - 1 : width + 1])
    encoded = b"".join(map(encode_varint, deltas))
    return tuple(encoded[number::width] for number in range(width))


def _timestamps(
    batch: AbstractRecordBatch, data: bytes, layout: _Layout, starts: range
) -> Iterator[int]:
    if batch.attributes & TIMESTAMP_TYPE_FLAG:
        return repeat(batch.max_timestamp)
    end = starts.stop
    values: bytes | list[int] = data[layout.timestamp : end : layout.size]
    base = batch.base_timestamp
    continued = 0  # the bits that mark bytes as not the last ones
    for number in range(1, layout.offset - layout.timestamp):
        more = data[layout.timestamp + number : end : layout.size]
        continued |= 1 << 7 * number
        values = [low + (high << 7 * number) for low, high in zip(values, more, strict=True)]
    return iter([base + ((raw - continued) >> 1 ^ -(raw & 1)) for raw in values])


def _fields(data: bytes, starts: range, field: int | None, end: int) -> Iterator[bytes | None]:
    """Return a key or value of each record, given the position of the first."""
    if field is None:
        return repeat(None)
    shift, length = field - starts.start, end - field
    places = range(starts.start + shift, starts.stop + shift, starts.step)
    return iter([data[at : at + length] for at in places])
