"""Primitives with variable length, for generated codecs and headers.

Fixed-size values are big-endian and read by `struct` directly. This module has the variable-length
integers of KIP-482, and the errors of malformed input. Readers take a buffer and a position and
return the value with the position after it; they never read past the end and never allocate before
the length was compared with the remaining bytes.
"""

from collections.abc import Sequence
from struct import Struct as Layout

from kclient.common.errors import InvalidArgumentError, ProtocolError
from kclient.common.files import FileSlice, WirePart

ZERO_UUID = bytes(16)
"""Uuid for "none"."""

INT32_MAX = 0x7FFFFFFF
INT32_MIN = -0x80000000
INT64_MAX = 0x7FFFFFFFFFFFFFFF
MAX_STRING = 0x7FFF
"""Longest string in bytes, also with a compact length."""

OWN_PART_SIZE = 4096
"""Record sets of at least this size are sent as a part of their own, without a copy."""

_UVARINT_MAX_BYTES = 5
_UVARINT_MAX_BITS = 32
_NOTHING_LEFT = "ends where at least 1 more byte is needed"

SMALL_UVARINTS = tuple(bytes((value,)) for value in range(128))
"""Encoded form of every value that takes one byte."""

_INT16 = Layout(">h")


def encode_uvarint(value: int) -> bytes:
    """Encode a non-negative integer, seven bits a byte, lowest first (KIP-482)."""
    if 0 <= value < 128:
        return SMALL_UVARINTS[value]
    if 0 < value < 1 << 14:  # as the size of a small batch
        return bytes((value & 127 | 128, value >> 7))
    if value < 0:
        raise ValueError(f"unsigned varint: got {value}, expected a value >= 0")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes and 32 bits.

    Raises:
        ProtocolError: It is longer, larger, or truncated.
    """
    value = 0
    for index in range(_UVARINT_MAX_BYTES):
        if position >= len(buffer):
            raise ProtocolError(_NOTHING_LEFT)
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            if value >> _UVARINT_MAX_BITS:
                raise ProtocolError(f"varint {value} does not fit in {_UVARINT_MAX_BITS} bits")
            return value, position
    raise ProtocolError(f"varint is longer than {_UVARINT_MAX_BYTES} bytes")


def read_nullable_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    """Read a string with a 16-bit length; -1 is null.

    Raises:
        ProtocolError: The length is less than -1 or past the end, or the text is not UTF-8.
    """
    start = position + _INT16.size
    if start > len(buffer):
        raise ProtocolError(_NOTHING_LEFT)
    (length,) = _INT16.unpack_from(buffer, position)
    if length == -1:
        return None, start
    if length < 0:
        raise bad_length(length)
    end = start + length
    if end > len(buffer):
        raise too_short(length, len(buffer) - start)
    try:
        return str(buffer[start:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise ProtocolError(f"is not UTF-8: {error.reason}") from None


def encode_nullable_string(value: str | None) -> bytes:
    """Encode a string with a 16-bit length, -1 for null.

    Raises:
        InvalidArgumentError: The string is too long, or has surrogates.
    """
    if value is None:
        return b"\xff\xff"
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"string: got {value!r:.80} ({error.reason}), expected text"
        ) from None
    if len(data) > MAX_STRING:
        raise InvalidArgumentError(f"string: got {len(data)} bytes, expected at most {MAX_STRING}")
    return _INT16.pack(len(data)) + data


def read_tag(buffer: memoryview, position: int, previous: int) -> tuple[int, int, int]:
    """Read tag and size of a tagged field.

    Args:
        buffer: Message.
        position: First byte of the tag.
        previous: Previous tag; -1 for the first.

    Returns:
        The tag, the position after the field, and the position of the field's first byte.

    Raises:
        ProtocolError: Tags do not ascend (KIP-482), or the field extends past the end.
    """
    tag, position = read_uvarint(buffer, position)
    if tag <= previous:
        raise ProtocolError(f"tag {tag} follows tag {previous}; tags must ascend")
    size, position = read_uvarint(buffer, position)
    if size > len(buffer) - position:
        raise too_short(size, len(buffer) - position)
    return tag, position + size, position


def skip_tags(buffer: memoryview, position: int) -> int:
    """Skip a section of unknown tagged fields; return the position after it.

    Raises:
        ProtocolError: The section is malformed.
    """
    count, position = read_uvarint(buffer, position)
    tag = -1
    for _ in range(count):
        tag, position, _start = read_tag(buffer, position, tag)
    return position


def put_records(
    records: WirePart | None, small: list[bytes | bytearray | memoryview], parts: list[WirePart]
) -> None:
    """Add a record set to an outgoing message, without a copy if it is large or in a file.

    Args:
        records: Record set, or None.
        small: Small parts to be joined; joined into `parts` before a record set that is not copied.
        parts: Complete parts of the message.
    """
    if records is None or not len(records):
        return
    if not isinstance(records, FileSlice) and len(records) < OWN_PART_SIZE:
        small.append(records)
        return
    parts.append(b"".join(small))
    small.clear()
    parts.append(records)


def too_short(needed: int, remaining: int) -> ProtocolError:
    """Return the error of a length that extends past the end."""
    return ProtocolError(f"needs {needed} bytes, only {remaining} remain")


def too_long(length: int) -> ProtocolError:
    """Return the error of a string that is too long, as in Kafka's decoder."""
    return ProtocolError(f"has length {length}, expected at most {MAX_STRING}")


def bad_length(length: int) -> ProtocolError:
    """Return the error of a length less than -1, or of -1 if null is not allowed."""
    if length == -1:
        return ProtocolError("is null, which this field does not allow")
    return ProtocolError(f"has length {length}, expected >= -1")


def bad_marker(marker: int) -> ProtocolError:
    """Return the error of a nullable struct whose first byte is neither 1 nor -1."""
    return ProtocolError(f"has marker {marker}, expected 1 (present) or -1 (null)")


def too_many(count: int, smallest: int, remaining: int) -> ProtocolError:
    """Return the error of an array with more elements than the remaining bytes can hold."""
    return ProtocolError(
        f"claims {count} elements of at least {smallest} bytes, only {remaining} bytes remain"
    )


def too_expensive(count: int, size: int) -> ProtocolError:
    """Return the error of an array that exceeds the message's allowance of memory."""
    return ProtocolError(
        f"claims {count} elements, more than a message of {size} bytes may expand to"
    )


def wrong_tag_size(tag: int, difference: int) -> ProtocolError:
    """Return the error of a tagged field whose size differs from its content."""
    sign = "fewer" if difference > 0 else "more"
    return ProtocolError(f"tag {tag} holds {abs(difference)} bytes {sign} than it claims")
