"""Encoding of keys, values and headers of a record."""

from collections.abc import Sequence

from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.record.batch_header import MAX_INT64, MAX_RECORD_OVERHEAD, NO_TIMESTAMP
from kclient.record.record import Header
from kclient.record.varints import encode_length, encode_varint

NO_HEADERS = encode_varint(0)


def as_bytes(data: object, what: str) -> bytes | None:
    """Return bytes-like data as bytes, and None as None.

    Raises:
        InvalidTypeError: Another type.
    """
    if data is None or isinstance(data, bytes):
        return data
    try:
        return bytes(memoryview(data))  # type: ignore[arg-type]  # what this checks
    except (TypeError, BufferError):
        raise InvalidTypeError(
            f"{what}: got {type(data).__name__}, expected bytes-like or None"
        ) from None


def check_timestamp(timestamp_ms: object) -> int:
    """Return the timestamp if it is valid for a record.

    Raises:
        InvalidTypeError: The timestamp is not an integer.
        InvalidArgumentError: It is negative (except for -1, no timestamp) or above 63 bits.
    """
    if not isinstance(timestamp_ms, int):
        raise InvalidTypeError(
            f"timestamp_ms: got {type(timestamp_ms).__name__}, expected milliseconds as int"
        )
    if not NO_TIMESTAMP <= timestamp_ms <= MAX_INT64:
        raise InvalidArgumentError(
            f"timestamp_ms: got {timestamp_ms}, expected milliseconds since the epoch, or -1"
        )
    return timestamp_ms


def check_rows(
    timestamps_ms: int | Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    start: int,
) -> None:
    """Check that the rows of ``append_many`` are lists or tuples of one length.

    Raises:
        InvalidTypeError: An argument is not a list or tuple.
        InvalidArgumentError: Their lengths differ, or `start` is out of range.
    """
    named: list[tuple[str, object]] = [("values", values)]
    if keys is not None:
        named.append(("keys", keys))
    if not isinstance(timestamps_ms, int):
        named.append(("timestamps_ms", timestamps_ms))
    for name, rows in named:
        if not isinstance(rows, list | tuple):
            raise InvalidTypeError(f"{name}: got {type(rows).__name__}, expected a list or tuple")
        if len(rows) != len(values):
            raise InvalidArgumentError(
                f"{name}: got {len(rows)} items, expected {len(values)}, one for each value"
            )
    _check_start(start, len(values))


def _check_start(start: int, length: int) -> None:
    if not 0 <= start <= length:
        raise InvalidArgumentError(f"start: got {start}, expected 0 to {length}")


def encode_headers(headers: Sequence[Header] | None) -> bytes:
    """Return the encoded header count and headers.

    Raises:
        InvalidTypeError: A header is not a pair of str and bytes-like or None.
    """
    if not headers:
        return NO_HEADERS
    if not isinstance(headers, list | tuple):
        raise InvalidTypeError(
            f"headers: got {type(headers).__name__}, expected a list of (str, bytes or None)"
        )
    parts = [encode_varint(len(headers))]
    for index, header in enumerate(headers):
        if not isinstance(header, tuple) or len(header) != 2 or not isinstance(header[0], str):
            raise InvalidTypeError(
                f"headers[{index}]: got {header!r:.80}, expected a tuple (str, bytes or None)"
            )
        for part in (
            _encode_name(header[0], index),
            as_bytes(header[1], f"headers[{index}]: value"),
        ):
            parts.append(encode_length(part))
            parts.append(part or b"")
    return b"".join(parts)


def _encode_name(name: str, index: int) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"headers[{index}]: got {name!r:.80}, expected text that UTF-8 can encode"
        ) from error


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] | None = None,
) -> bytes:
    """Return an encoded record with its length."""
    body = b"".join(
        (
            b"\x00",
            encode_varint(timestamp_delta),
            encode_varint(offset_delta),
            encode_length(key),
            key or b"",
            encode_length(value),
            value or b"",
            encode_headers(headers),
        )
    )
    return encode_varint(len(body)) + body


def record_size_upper_bound(
    key: bytes | None, value: bytes | None, headers: Sequence[Header] | None = None
) -> int:
    """Return an upper bound of the size of a record, without the batch header of 61 bytes.

    (Kafka: DefaultRecord.recordSizeUpperBound)
    """
    size = MAX_RECORD_OVERHEAD + len(encode_headers(headers)) + 10
    for part in (as_bytes(key, "key"), as_bytes(value, "value")):
        size += 0 if part is None else len(part)
    return size


def int64_error(value: object, what: str, least: int) -> InvalidArgumentError | InvalidTypeError:
    """Return the error of an argument that is no integer of 64 bits, or below `least`."""
    if not isinstance(value, int):
        return InvalidTypeError(f"{what}: got {type(value).__name__}, expected int")
    return InvalidArgumentError(f"{what}: got {value}, expected {least} to 2**63 - 1")
