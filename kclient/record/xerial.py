"""Snappy in Kafka's framing: the block format of the snappy-java library ("xerial").

A stream is a header of 16 bytes, followed by blocks: a length of 4 bytes, big-endian, and that many
bytes of raw snappy. A single raw block without framing, as some producers send it, is accepted.
"""

import struct
from typing import Final

from kclient.common.errors import CompressionError
from kclient.common.files import WireBytes
from kclient.record.codec_libraries import codec_library
from kclient.record.compression_type import CompressionType

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)
_LENGTH: Final = struct.Struct(">i")
_BLOCK_SIZE: Final = 32 * 1024

# Maximum ratio of raw snappy: a copy element of three bytes yields 64.
_MAX_EXPANSION: Final = 22


def compress_xerial(data: WireBytes) -> bytes:
    """Return `data` as a xerial stream, in blocks of 32 KiB as Kafka's producer writes them."""
    snappy = codec_library(CompressionType.SNAPPY)
    view = memoryview(data)
    parts: list[bytes] = [_HEADER]
    for start in range(0, len(view), _BLOCK_SIZE):
        block: bytes = snappy.compress(view[start : start + _BLOCK_SIZE])
        parts.append(_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def decompress_snappy(data: WireBytes, limit: int) -> bytes | bytearray:
    """Return the contents of a xerial stream or of a raw block.

    Raises:
        CompressionError: The stream is corrupt or contains more than `limit` bytes.
    """
    view = memoryview(data)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        return _decompress_block(view, limit)
    if len(view) < len(_HEADER):
        raise CompressionError("snappy: the xerial header is truncated")
    output = bytearray()
    position = len(_HEADER)
    while position < len(view):
        if len(view) - position < _LENGTH.size:
            raise CompressionError("snappy: a xerial block length is truncated")
        (length,) = _LENGTH.unpack_from(view, position)
        position += _LENGTH.size
        if not 0 <= length <= len(view) - position:
            raise CompressionError(
                f"snappy: got a xerial block of {length} bytes, {len(view) - position} remain"
            )
        output += _decompress_block(view[position : position + length], limit - len(output))
        position += length
    return output


def _decompress_block(block: memoryview, limit: int) -> bytes:
    """Return the contents of a raw block; its stated size is checked first."""
    stated = _stated_size(block)
    if stated > limit:
        raise CompressionError(f"snappy: got more than {limit} bytes left of the limit")
    if stated > len(block) * _MAX_EXPANSION:
        raise CompressionError(f"snappy: {len(block)} bytes cannot contain the stated {stated}")
    snappy = codec_library(CompressionType.SNAPPY)
    try:
        output: bytes = snappy.uncompress(block)
    except snappy.UncompressError as error:
        raise CompressionError("snappy: the stream is corrupt") from error
    return output


def _stated_size(block: memoryview) -> int:
    """Parse the size at the start of a raw block: a little-endian varint of at most 32 bits."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise CompressionError("snappy: the block does not start with its size")
