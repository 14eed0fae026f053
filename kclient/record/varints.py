"""Integers of variable length: zigzag, then seven bits per byte, lowest first."""

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidArgumentError
from kclient.common.files import WireBytes

_MAX_VARINT_BYTES = 5
_MAX_VARLONG_BYTES = 10


class MalformedRecordError(Exception):
    """A record cannot be parsed; the batch converts this into `CorruptRecordError`."""


def _encode(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


# Of one and two bytes; `_encode` would take twice as long for the table.
SMALL_VARINTS = tuple(
    bytes((value << 1,)) if value < 64 else bytes((value << 1 & 0x7F | 0x80, value >> 6))
    for value in range(2048)
)
"""Encoded integers by their value, for callers to which a call costs too much."""


def encode_varint(value: int) -> bytes:
    """Return the bytes of an integer of up to 64 bits.

    Raises:
        InvalidArgumentError: The value has more than 64 bits.
    """
    if 0 <= value < 2048:
        return SMALL_VARINTS[value]
    if not -(2**63) <= value < 2**63:
        raise InvalidArgumentError(f"varint: got {value}, expected an integer of 64 bits")
    return _encode(value)


NULL_LENGTH = _encode(-1)


def encode_length(data: bytes | None) -> bytes:
    """Return the encoded length of the bytes; -1 for null."""
    return NULL_LENGTH if data is None else encode_varint(len(data))


def size_of_varint(value: int) -> int:
    """Return the encoded size of a value."""
    return len(encode_varint(value))


def read_varint(
    data: WireBytes, position: int, max_bytes: int = _MAX_VARINT_BYTES
) -> tuple[int, int]:
    """Return an integer and the position after it; IndexError at the end of `data`.

    Raises:
        MalformedRecordError: The integer is too long for a field of this width.
    """
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = byte & 0x7F
    byte = data[position + 1]
    if byte < 0x80:  # fast path for two bytes
        value |= byte << 7
        return (value >> 1) ^ -(value & 1), position + 2
    value |= (byte & 0x7F) << 7
    for index in range(2, max_bytes):
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> (64 if max_bytes == _MAX_VARLONG_BYTES else 32):
                break
            return (value >> 1) ^ -(value & 1), position + index + 1
    raise MalformedRecordError(f"an integer has more than {max_bytes} bytes or too many bits")


def read_varlong(data: WireBytes, position: int) -> tuple[int, int]:
    """Return an integer of up to 64 bits and the position after it, as `read_varint`."""
    return read_varint(data, position, _MAX_VARLONG_BYTES)


def decode_varint(data: WireBytes, position: int = 0) -> tuple[int, int]:
    """Return an integer of up to 32 bits and the position after it.

    Raises:
        CorruptRecordError: The data is truncated, or the integer has more than 32 bits.
    """
    return _decode(data, position, _MAX_VARINT_BYTES)


def decode_varlong(data: WireBytes, position: int = 0) -> tuple[int, int]:
    """Return an integer of up to 64 bits and the position after it.

    Raises:
        CorruptRecordError: The data is truncated, or the integer has more than 64 bits.
    """
    return _decode(data, position, _MAX_VARLONG_BYTES)


def _decode(data: WireBytes, position: int, max_bytes: int) -> tuple[int, int]:
    if position < 0:
        raise InvalidArgumentError(f"position: got {position}, expected >= 0")
    try:
        return read_varint(data, position, max_bytes)
    except IndexError:
        raise CorruptRecordError("varint: the data is truncated") from None
    except MalformedRecordError as error:
        raise CorruptRecordError(f"varint: {error}") from None
