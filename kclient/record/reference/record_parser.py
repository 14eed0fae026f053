"""Parser of one record of an uncompressed payload."""

from kclient.record.batch_header import MAX_INT64, MIN_RECORD_SIZE, TIMESTAMP_TYPE_FLAG
from kclient.record.record import Header
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.varints import MalformedRecordError, read_varint, read_varlong

_NULL = 1  # the length -1

ParsedRecord = tuple[int, int, int, bytes | None, bytes | None, list[Header]]
"""Position after the record, timestamp delta, offset delta, key, value, headers."""


def parse_record(data: bytes, position: int) -> ParsedRecord:
    """Return the fields of the record at a position.

    Raises:
        MalformedRecordError: The record is inconsistent or exceeds `data`.
    """
    try:
        return _parse(data, position)
    except IndexError:
        raise MalformedRecordError("the data is truncated") from None


def _parse(data: bytes, position: int) -> ParsedRecord:
    length, position = read_varint(data, position)
    end = position + length
    if length < MIN_RECORD_SIZE - 1 or end > len(data):
        raise MalformedRecordError(f"it states {length} bytes, {len(data) - position} remain")
    position += 1  # attributes, unused
    byte = data[position]  # fields of one byte are decoded inline: a call costs more
    if byte < 0x80:
        timestamp_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        timestamp_delta, position = read_varlong(data, position)
    offset_delta, position = read_varint(data, position)
    key, value = None, None
    if data[position] == _NULL:
        position += 1
    else:
        key, position = _read_bytes(data, position, end)
    if data[position] == _NULL:
        position += 1
    else:
        value, position = _read_bytes(data, position, end)
    headers: list[Header] = []
    if data[position] == 0:
        position += 1
    else:
        position = _read_headers(data, position, end, headers)
    if position != end:
        raise MalformedRecordError(f"its fields end {position - end:+d} bytes off its length")
    return end, timestamp_delta, offset_delta, key, value, headers


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise MalformedRecordError(f"a field states {length} bytes, {end - position} remain")
    return data[position : position + length], position + length


def _read_headers(data: bytes, position: int, end: int, headers: list[Header]) -> int:
    count, position = read_varint(data, position)
    if not 0 <= count <= (end - position) // 2:  # a header has two bytes at least
        raise MalformedRecordError(f"it states {count} headers in {end - position} bytes")
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise MalformedRecordError("a header has no name")
        value, position = _read_bytes(data, position, end)
        # As in Kafka: a name that is not UTF-8 must not make the partition unreadable.
        headers.append((name.decode(errors="replace"), value))
    return position


def parse_record_of(
    batch: AbstractRecordBatch, data: bytes, position: int, index: int, previous: int
) -> ParsedRecord:
    """Parse one record of a batch, with the timestamp instead of its delta.

    Args:
        batch: The batch.
        data: The batch's payload.
        position: Start position of the record.
        index: Index of the record, for the error message.
        previous: Offset delta of the preceding record, -1 for the first.

    Raises:
        CorruptRecordError: The record is malformed or inconsistent with the batch.
    """
    try:
        end, delta, offset_delta, key, value, headers = parse_record(data, position)
    except MalformedRecordError as error:
        raise batch.corrupt(f"record {index}: {error}") from None
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
    return end, timestamp, offset_delta, key, value, headers


def check_end(batch: AbstractRecordBatch, data: bytes, position: int) -> None:
    """Check that no data follows the last record.

    Raises:
        CorruptRecordError: Data follows.
    """
    if position != len(data):
        raise batch.corrupt(
            f"{len(data) - position} bytes follow the last of its {batch.count} records"
        )
