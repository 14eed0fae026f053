"""Compression of a batch's records: five codecs, their levels, and bounded decompression.

The packages of the codecs are imported at the first use of a codec: a program that does not use a
codec does not need its package.

Snappy has Kafka's framing, the block format of the snappy-java library ("xerial"): a header of 16
bytes, followed by blocks, each a length of 4 bytes, big-endian, and that many bytes of raw snappy.
A single raw block without framing, as some producers send it, is accepted.

Decompression does not trust sizes in the data: the output grows as data is decompressed, and stops
at the caller's limit, so that a small batch cannot allocate excessive memory.
"""

import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kclient.common.broker_errors import UnsupportedCompressionTypeError
from kclient.common.errors import CompressionError, InvalidArgumentError
from kclient.common.files import WireBytes


class CompressionType(IntEnum):
    """Codec by its id in the batch's attributes (Kafka: CompressionType)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """Name of the codec in configurations."""
        return self.name.lower()

    @classmethod
    def for_id(cls, number: int) -> "CompressionType":
        """Return the codec of an id.

        Raises:
            CompressionError: No codec has that id.
        """
        try:
            return cls(number)
        except ValueError:
            raise CompressionError(
                f"compression type: got id {number}, expected 0 to {max(cls)}"
            ) from None


DEFAULT_MAX_DECOMPRESSED: Final = 64 * 1024 * 1024
"""Default limit of the decompressed size of a batch."""


class LevelRange(NamedTuple):
    """Levels of a codec.

    Attributes:
        minimum: Lowest level.
        maximum: Highest level.
        default: Level if none is configured.
    """

    minimum: int
    maximum: int
    default: int


LEVELS: Final = {
    CompressionType.GZIP: LevelRange(1, 9, -1),
    CompressionType.LZ4: LevelRange(1, 17, 9),
    CompressionType.ZSTD: LevelRange(-131072, 22, 3),
}
"""Ranges and defaults of ``compression.<codec>.level`` (KIP-390); -1 is zlib's default."""

_LIBRARIES: Final = {
    CompressionType.SNAPPY: ("snappy", "python-snappy"),
    CompressionType.LZ4: ("lz4.frame", "lz4"),
    CompressionType.ZSTD: ("zstandard", "zstandard"),
}


@cache
def codec_library(kind: CompressionType) -> Any:
    """Return the module that implements a codec, None if the standard library does.

    Raises:
        UnsupportedCompressionTypeError: The package cannot be imported; the message names it.
    """
    if kind not in _LIBRARIES:
        return None
    module, package = _LIBRARIES[kind]
    try:
        return import_module(module)
    except ImportError as error:
        raise UnsupportedCompressionTypeError(
            f"compression type {kind.label!r}: the package {package!r} cannot be imported: "
            f"{error}; install it with pip install {package}"
        ) from error


def check_level(kind: CompressionType, level: int | None) -> int:
    """Return the level, or the codec's default for None; 0 for a codec without levels.

    Raises:
        InvalidArgumentError: The level is outside of the codec's range.
    """
    allowed = LEVELS.get(kind)
    if allowed is None:
        return 0
    if level is None or level == allowed.default:
        return allowed.default
    if not allowed.minimum <= level <= allowed.maximum:
        raise InvalidArgumentError(
            f"compression level: got {level}, expected {allowed.minimum} to {allowed.maximum} "
            f"for {kind.label}; the default is {allowed.default}"
        )
    return level


def compress(kind: CompressionType, data: WireBytes, level: int | None = None) -> WireBytes:
    """Return `data` compressed; without a codec, `data` itself.

    Raises:
        InvalidArgumentError: The level is outside of the codec's range.
        UnsupportedCompressionTypeError: The codec's package is not installed.
    """
    return _COMPRESSORS[kind](data, check_level(kind, level))


def decompress(
    kind: CompressionType, data: WireBytes, limit: int = DEFAULT_MAX_DECOMPRESSED
) -> WireBytes:
    """Return `data` decompressed; without a codec, `data` itself.

    Args:
        kind: Codec.
        data: The whole compressed stream.
        limit: Maximum decompressed size in bytes.

    Raises:
        CompressionError: The stream is corrupt, truncated or, with snappy and zstd, followed by
            other data, or contains more than `limit` bytes.
        UnsupportedCompressionTypeError: The codec's package is not installed.
    """
    return _DECOMPRESSORS[kind](data, limit)


def _unchanged(data: WireBytes, _: int) -> WireBytes:
    return data


_MAX_IDLE = 4

Codec = TypeVar("Codec")


class IdleCodecs(Generic[Codec]):
    """Pool of a few codecs of one kind: creating one costs as much as a small batch.

    A codec is used by one caller at a time; the deque makes this thread-safe.

    Args:
        make: Creates a codec when none is idle.
    """

    def __init__(self, make: Callable[[], Codec]) -> None:
        self._make = make
        self._idle: deque[Codec] = deque(maxlen=_MAX_IDLE)

    @contextmanager
    def borrow(self) -> Iterator[Codec]:
        """Provide a codec; it is discarded after an error, since its state is unknown."""
        try:
            codec = self._idle.pop()
        except IndexError:
            codec = self._make()
        yield codec
        self._idle.append(codec)


_OUTPUT_STEP: Final = 256 * 1024


class _Output:
    """Decompressed data, bounded by the limit."""

    __slots__ = ("_codec", "_limit", "data")

    def __init__(self, codec: str, limit: int) -> None:
        self._codec = codec
        self._limit = limit
        self.data = bytearray()

    def request_size(self) -> int:
        """Return the next number of bytes to request; one above the limit detects an excess."""
        return min(_OUTPUT_STEP, self._limit - len(self.data) + 1)

    def add(self, piece: bytes) -> None:
        """Append a chunk.

        Raises:
            CompressionError: The limit is exceeded.
        """
        self.data += piece
        if len(self.data) > self._limit:
            raise CompressionError(f"{self._codec}: got more than the limit of {self._limit} bytes")


_INPUT_STEP: Final = 64 * 1024


def _pieces(data: WireBytes) -> list[memoryview]:
    """Split the input, since a decompressor copies the unused rest at every stop."""
    view = memoryview(data)
    return [view[start : start + _INPUT_STEP] for start in range(0, len(view), _INPUT_STEP)]


_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS

_GZIP_MEMORY: Final = 8

_GZIP_MAGIC: Final = b"\x1f\x8b\x08"


def _compress_gzip(data: WireBytes, level: int) -> bytes:
    codec = zlib.compressobj(level, zlib.DEFLATED, _GZIP_FORMAT, _GZIP_MEMORY)
    return codec.compress(data) + codec.flush()


def _decompress_gzip(data: WireBytes, limit: int) -> bytearray:
    output = _Output("gzip", limit)
    codec = zlib.decompressobj(_GZIP_FORMAT)
    view = memoryview(data)
    position = 0
    while position < len(view):
        if codec.eof:
            if bytes(view[position : position + len(_GZIP_MAGIC)]) != _GZIP_MAGIC:
                break  # Kafka's reader ignores what follows a member and is not another one
            codec = zlib.decompressobj(_GZIP_FORMAT)
        piece = view[position : position + _INPUT_STEP]
        try:
            output.add(codec.decompress(piece, output.request_size()))
        except zlib.error as error:
            raise CompressionError("gzip: the stream is corrupt") from error
        rest = codec.unused_data if codec.eof else codec.unconsumed_tail
        position += len(piece) - len(rest)
    # Output that is still buffered after the end of the input.
    while not codec.eof:
        last = codec.decompress(b"", output.request_size())
        if not last:
            raise CompressionError("gzip: the stream is truncated")
        output.add(last)
    return output.data


_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"

_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)

_XERIAL_LENGTH: Final = struct.Struct(">i")

_XERIAL_BLOCK_SIZE: Final = 32 * 1024

# Maximum ratio of raw snappy: a copy element of three bytes yields 64.
_SNAPPY_EXPANSION: Final = 22


def compress_xerial(data: WireBytes) -> bytes:
    """Return `data` as a xerial stream, in blocks of 32 KiB as Kafka's producer writes them."""
    snappy = codec_library(CompressionType.SNAPPY)
    view = memoryview(data)
    parts: list[bytes] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block: bytes = snappy.compress(view[start : start + _XERIAL_BLOCK_SIZE])
        parts.append(_XERIAL_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _compress_snappy(data: WireBytes, _: int) -> bytes:
    return compress_xerial(data)


def decompress_snappy(data: WireBytes, limit: int) -> bytes | bytearray:
    """Return the contents of a xerial stream or of a raw block.

    Raises:
        CompressionError: The stream is corrupt or contains more than `limit` bytes.
    """
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, limit)
    if len(view) < len(_XERIAL_HEADER):
        raise CompressionError("snappy: the xerial header is truncated")
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if len(view) - position < _XERIAL_LENGTH.size:
            raise CompressionError("snappy: a xerial block length is truncated")
        (length,) = _XERIAL_LENGTH.unpack_from(view, position)
        if bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # of another stream, which Kafka's reader appends
            continue
        position += _XERIAL_LENGTH.size
        if not 0 <= length <= len(view) - position:
            raise CompressionError(
                f"snappy: got a xerial block of {length} bytes, {len(view) - position} remain"
            )
        output += _decompress_snappy_block(view[position : position + length], limit - len(output))
        position += length
    return output


def _decompress_snappy_block(block: memoryview, limit: int) -> bytes:
    """Return the contents of a raw block; its stated size is checked first."""
    stated = _stated_snappy_size(block)
    if stated > limit:
        raise CompressionError(f"snappy: got more than {limit} bytes left of the limit")
    if stated > len(block) * _SNAPPY_EXPANSION:
        raise CompressionError(f"snappy: {len(block)} bytes cannot contain the stated {stated}")
    snappy = codec_library(CompressionType.SNAPPY)
    try:
        output: bytes = snappy.uncompress(block)
    except snappy.UncompressError as error:
        raise CompressionError("snappy: the stream is corrupt") from error
    return output


def _stated_snappy_size(block: memoryview) -> int:
    """Parse the size at the start of a raw block: a little-endian varint of at most 32 bits."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise CompressionError("snappy: the block does not start with its size")


_LZ4_FAST: Final = 0

_LZ4_HIGH_MIN: Final = 3

_LZ4_HIGH_MAX: Final = 12


def _compress_lz4(data: WireBytes, level: int) -> bytes:
    # As in Kafka, the default level selects the fast compressor, any other the high one.
    effort = _LZ4_FAST
    if level != LEVELS[CompressionType.LZ4].default:
        effort = min(max(level, _LZ4_HIGH_MIN), _LZ4_HIGH_MAX)
    frames = codec_library(CompressionType.LZ4)
    # Kafka's reader accepts independent blocks only.
    output: bytes = frames.compress(
        data,
        compression_level=effort,
        block_size=frames.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return output


def _decompress_lz4(data: WireBytes, limit: int) -> bytearray:
    output = _Output("lz4", limit)
    codec = codec_library(CompressionType.LZ4).LZ4FrameDecompressor()
    for piece in _pieces(data):
        rest: WireBytes = piece
        while len(rest) > 0 or not (codec.needs_input or codec.eof):
            if codec.eof:
                return output.data  # Kafka's reader ignores what follows the first frame
            try:
                output.add(codec.decompress(rest, max_length=output.request_size()))
            except RuntimeError as error:
                raise CompressionError("lz4: the stream is corrupt") from error
            rest = codec.unused_data or b""
    if not codec.eof:
        raise CompressionError("lz4: the stream is truncated")
    return output.data


# A single frame with a larger window is decompressed at once: a streaming decompressor would hold
# the window in addition to the output.
_ZSTD_STREAM_WINDOW: Final = 8 * 1024 * 1024

# Largest window that a streaming decompressor, that of Kafka included, accepts.
_ZSTD_MAX_WINDOW: Final = 128 * 1024 * 1024

# Minimum size and maximum content of a zstd block (RFC 8878, 3.1.1.2).
_ZSTD_SMALLEST_BLOCK: Final = 4

_ZSTD_BLOCK_CONTENT: Final = 128 * 1024

# Magic number and length of a skippable frame; the low four bits of the number are free.
_ZSTD_SKIPPABLE: Final = struct.Struct("<II")

_ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A50

_ZSTD_MAX_HEADER: Final = 18

_ZSTD_BLOCK_HEADER: Final = 3

_ZSTD_RLE_BLOCK: Final = 1

_ZSTD_CHECKSUM: Final = 4


def _zstd() -> Any:
    return codec_library(CompressionType.ZSTD)


_ZSTD_COMPRESSORS: Final = IdleCodecs(lambda: _zstd().ZstdCompressor())

_ZSTD_DECOMPRESSORS: Final = IdleCodecs(lambda: _zstd().ZstdDecompressor())

_ZSTD_STREAM_DECOMPRESSORS: Final = IdleCodecs(
    lambda: _zstd().ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
)


def _compress_zstd(data: WireBytes, level: int) -> bytes:
    if level != LEVELS[CompressionType.ZSTD].default:
        high: bytes = _zstd().ZstdCompressor(level=level).compress(data)
        return high  # not pooled: the compressor may be large
    with _ZSTD_COMPRESSORS.borrow() as codec:
        usual: bytes = codec.compress(data)
        return usual


def _decompress_zstd(data: WireBytes, limit: int) -> WireBytes:
    zstandard = _zstd()
    try:
        frame = zstandard.get_frame_parameters(data)
        stated: int = zstandard.frame_content_size(data)
        if stated > limit:
            raise CompressionError(f"zstd: got {stated} bytes, more than the limit of {limit}")
        # Decompressing at once allocates the output first, by the stated size or the limit.
        most = min(limit, -(-len(data) // _ZSTD_SMALLEST_BLOCK) * _ZSTD_BLOCK_CONTENT)
        if stated > most:
            raise CompressionError(f"zstd: {len(data)} bytes cannot contain the stated {stated}")
        is_single = stated <= 0 and _count_zstd_frames(data) == 1
        if stated > 0 or (is_single and frame.window_size > _ZSTD_STREAM_WINDOW):
            try:
                with _ZSTD_DECOMPRESSORS.borrow() as codec:
                    whole: bytes = codec.decompress(
                        data, max_output_size=most, allow_extra_data=False
                    )
                    return whole
            except zstandard.ZstdError:
                if is_single or _count_zstd_frames(data) == 1:
                    raise
        return _stream_zstd(data, limit)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: the stream is corrupt: {error}") from error


def _count_zstd_frames(data: WireBytes) -> int:
    """Count the frames of a stream, which may be skippable ones (RFC 8878, 3.1).

    The streaming decompressor does not report that the last frame is truncated.

    Raises:
        CompressionError: The last frame is truncated.
        zstandard.ZstdError: Other data follows a frame.
    """
    view = memoryview(data)
    position = count = 0
    while position < len(view):
        position = _end_of_zstd_frame(view, position)
        count += 1
    if position > len(view):
        raise CompressionError("zstd: the stream is truncated")
    return count


def _end_of_zstd_frame(view: memoryview, position: int) -> int:
    """Return the position after a frame, found by the headers of its blocks."""
    if len(view) - position >= _ZSTD_SKIPPABLE.size:
        magic, length = _ZSTD_SKIPPABLE.unpack_from(view, position)
        if magic & ~0xF == _ZSTD_SKIPPABLE_MAGIC:
            return position + _ZSTD_SKIPPABLE.size + int(length)
    zstandard = _zstd()
    start = view[position : position + _ZSTD_MAX_HEADER]
    has_checksum: bool = zstandard.get_frame_parameters(start).has_checksum
    position += zstandard.frame_header_size(start)
    is_last = False
    while not is_last and position < len(view):
        header = int.from_bytes(view[position : position + _ZSTD_BLOCK_HEADER], "little")
        is_last = bool(header & 1)
        size = 1 if header >> 1 & 3 == _ZSTD_RLE_BLOCK else header >> 3
        position += _ZSTD_BLOCK_HEADER + size
    if not is_last:
        return len(view) + 1
    return position + _ZSTD_CHECKSUM * has_checksum


def _stream_zstd(data: WireBytes, limit: int) -> bytearray:
    """Decompress frames that do not state their content size, or several frames."""
    output = _Output("zstd", limit)
    with (
        _ZSTD_STREAM_DECOMPRESSORS.borrow() as codec,
        codec.stream_reader(data, read_across_frames=True) as reader,
    ):
        while piece := reader.read(output.request_size()):
            output.add(piece)
    return output.data


_Codec = Callable[[WireBytes, int], WireBytes]

_COMPRESSORS: Final[dict[CompressionType, _Codec]] = {
    CompressionType.NONE: _unchanged,
    CompressionType.GZIP: _compress_gzip,
    CompressionType.SNAPPY: _compress_snappy,
    CompressionType.LZ4: _compress_lz4,
    CompressionType.ZSTD: _compress_zstd,
}

_DECOMPRESSORS: Final[dict[CompressionType, _Codec]] = {
    CompressionType.NONE: _unchanged,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: decompress_snappy,
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
}
