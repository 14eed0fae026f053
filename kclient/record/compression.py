"""Compression of a batch's records: five codecs, their levels, and bounded decompression.

The packages of the codecs are imported at the first use of a codec: a program that does not use a
codec does not need its package.

Snappy has Kafka's framing, the block format of the snappy-java library ("xerial"): a header of 16
bytes, followed by blocks, each a length of 4 bytes, big-endian, and that many bytes of raw snappy.
A single raw block without framing, as some producers send it, is accepted.

A stream is decompressed in pieces of a size that the caller chooses, so that memory does not depend
on the size of the content. Sizes in the data are not trusted: memory grows as data is decompressed.
"""

import struct
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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


def compress_pieces(
    kind: CompressionType, pieces: Iterable[WireBytes], level: int | None = None
) -> Iterator[WireBytes]:
    """Yield the compressed stream of data that is given in pieces.

    Raises:
        InvalidArgumentError: The level is outside of the codec's range.
        UnsupportedCompressionTypeError: The codec's package is not installed.
    """
    yield from _PIECE_COMPRESSORS[kind](pieces, check_level(kind, level))


class Decompressor(ABC):
    """Content of one compressed stream, read in pieces.

    After an error, the stream must not be read again.
    """

    @abstractmethod
    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end of the stream.

        Raises:
            CompressionError: The stream is corrupt, truncated or, with snappy and zstd, followed by
                other data.
        """


def open_stream(kind: CompressionType, data: WireBytes) -> Decompressor:
    """Return a decompressor of a whole stream; the codec is not `CompressionType.NONE`.

    Raises:
        CompressionError: The stream is corrupt.
        UnsupportedCompressionTypeError: The codec's package is not installed.
    """
    return _DECOMPRESSORS[kind](memoryview(data))


def decompress(
    kind: CompressionType, data: WireBytes, most: int
) -> tuple[bytes, Decompressor | None]:
    """Return the first `most` bytes of a stream, and the rest of it, None if there is no more.

    A rest may turn out to be empty.

    Raises:
        CompressionError: As `Decompressor.read`.
        UnsupportedCompressionTypeError: As `open_stream`.
    """
    at_once = _AT_ONCE.get(kind)
    if at_once is not None and (whole := at_once(data, most)) is not None:
        return whole, None
    stream = open_stream(kind, data)
    content = read_fully(stream, most)
    return content, None if len(content) < most else stream


def read_fully(stream: Decompressor, size: int) -> bytes:
    """Read so many bytes, or fewer if the stream ends.

    Raises:
        CompressionError: As `Decompressor.read`.
    """
    pieces: list[bytes] = []
    while piece := stream.read(size):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


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

    def take(self) -> Codec:
        """Return an idle codec, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def put_back(self, codec: Codec) -> None:
        """Take back a codec that has completed its work; after an error its state is unknown."""
        self._idle.append(codec)

    @contextmanager
    def borrow(self) -> Iterator[Codec]:
        """Provide a codec; it is discarded after an error."""
        codec = self.take()
        yield codec
        self.put_back(codec)


_OUTPUT_STEP: Final = 256 * 1024


# A decompressor copies the rest of its input at every stop.
_INPUT_STEP: Final = 64 * 1024


_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS

_GZIP_MEMORY: Final = 8

_GZIP_MAGIC: Final = b"\x1f\x8b\x08"


def _compress_gzip(data: WireBytes, level: int) -> bytes:
    codec = zlib.compressobj(level, zlib.DEFLATED, _GZIP_FORMAT, _GZIP_MEMORY)
    return codec.compress(data) + codec.flush()


def _compress_gzip_pieces(pieces: Iterable[WireBytes], level: int) -> Iterator[bytes]:
    codec = zlib.compressobj(level, zlib.DEFLATED, _GZIP_FORMAT, _GZIP_MEMORY)
    for piece in pieces:
        yield codec.compress(piece)
    yield codec.flush()


class _GzipStream(Decompressor):
    """Members of a gzip stream (RFC 1952, 2.2)."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0
        self._codec = zlib.decompressobj(_GZIP_FORMAT)

    def read(self, size: int) -> bytes:
        content = b""
        while size > 0 and not content and self._has_more():
            piece = self._data[self._position : self._position + _INPUT_STEP]
            try:
                content = self._codec.decompress(piece, min(size, _OUTPUT_STEP))
            except zlib.error as error:
                raise CompressionError("gzip: the stream is corrupt") from error
            codec = self._codec
            rest = codec.unused_data if codec.eof else codec.unconsumed_tail
            self._position += len(piece) - len(rest)
            if not (content or piece or codec.eof):
                raise CompressionError("gzip: the stream is truncated")
        return content

    def _has_more(self) -> bool:
        """Return whether the member continues; at its end begin the next one, if there is one.

        Like Kafka's reader this ignores what follows a member and is not another one.
        """
        if not self._codec.eof:
            return True
        magic = self._data[self._position : self._position + len(_GZIP_MAGIC)]
        if bytes(magic) != _GZIP_MAGIC:
            return False
        self._codec = zlib.decompressobj(_GZIP_FORMAT)
        return True


_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"

_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)

_XERIAL_LENGTH: Final = struct.Struct(">i")

_XERIAL_BLOCK_SIZE: Final = 32 * 1024

# Maximum ratio of raw snappy: a copy element of three bytes yields 64.
_SNAPPY_EXPANSION: Final = 22


def compress_xerial(data: WireBytes) -> bytes:
    """Return `data` as a xerial stream, in blocks of 32 KiB as Kafka's producer writes them."""
    return b"".join(_compress_snappy_pieces((data,), 0))


def _compress_snappy_pieces(pieces: Iterable[WireBytes], _: int) -> Iterator[bytes]:
    snappy = codec_library(CompressionType.SNAPPY)
    yield _XERIAL_HEADER
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
            block: bytes = snappy.compress(view[start : start + _XERIAL_BLOCK_SIZE])
            yield _XERIAL_LENGTH.pack(len(block))
            yield block


def _compress_snappy(data: WireBytes, _: int) -> bytes:
    return compress_xerial(data)


class _SnappyStream(Decompressor):
    """Blocks of a xerial stream, or a raw block, which is decompressed as a whole."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0
        self._rest = memoryview(b"")
        if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
            self._position = len(data)
            self._rest = memoryview(_decompress_snappy_block(data))

    def read(self, size: int) -> bytes:
        if self._rest:
            part, self._rest = self._rest[:size], self._rest[size:]
            return bytes(part)
        content = b""
        while size > 0 and not content and self._position < len(self._data):
            content = self._next_block()
        if len(content) <= size:
            return content
        self._rest = memoryview(content)[size:]
        return content[:size]

    def _next_block(self) -> bytes:
        """Decompress the next block; none at the header of a stream.

        Kafka's reader appends another stream that follows.
        """
        data, position = self._data, self._position
        start = position + _XERIAL_LENGTH.size
        if start > len(data):
            raise CompressionError("snappy: a xerial block length is truncated")
        (length,) = _XERIAL_LENGTH.unpack_from(data, position)
        if length < 0 and bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            self._position += len(_XERIAL_HEADER)
            if self._position > len(data):
                raise CompressionError("snappy: the xerial header is truncated")
            return b""
        if not 0 <= length <= len(data) - start:
            raise CompressionError(
                f"snappy: got a xerial block of {length} bytes, {len(data) - start} remain"
            )
        self._position = start + length
        return _decompress_snappy_block(data[start : self._position])


def _decompress_single_block(data: WireBytes, most: int) -> bytes | None:
    """Decompress a xerial stream at once if it is one block, with at most `most` bytes of content.

    Raises:
        CompressionError: The stream is corrupt.
    """
    view = memoryview(data)
    start = len(_XERIAL_HEADER) + _XERIAL_LENGTH.size
    if len(view) < start or bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return None
    (length,) = _XERIAL_LENGTH.unpack_from(view, len(_XERIAL_HEADER))
    block = view[start:]
    if length != len(block) or _stated_snappy_size(block) > most:
        return None
    return _decompress_snappy_block(block)


def _decompress_snappy_block(block: memoryview) -> bytes:
    """Return the contents of a raw block; its stated size is checked first."""
    stated = _stated_snappy_size(block)
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
    output: bytes = codec_library(CompressionType.LZ4).compress(
        data, store_size=False, **_lz4_options(level)
    )
    return output


def _compress_lz4_pieces(pieces: Iterable[WireBytes], level: int) -> Iterator[bytes]:
    codec = codec_library(CompressionType.LZ4).LZ4FrameCompressor(**_lz4_options(level))
    yield codec.begin()
    for piece in pieces:
        yield codec.compress(piece)
    yield codec.flush()


def _lz4_options(level: int) -> dict[str, Any]:
    # As in Kafka, the default level selects the fast compressor, any other the high one.
    effort = _LZ4_FAST
    if level != LEVELS[CompressionType.LZ4].default:
        effort = min(max(level, _LZ4_HIGH_MIN), _LZ4_HIGH_MAX)
    return {
        "compression_level": effort,
        "block_size": codec_library(CompressionType.LZ4).BLOCKSIZE_MAX64KB,
        "block_linked": False,  # Kafka's reader accepts independent blocks only
    }


class _Lz4Stream(Decompressor):
    """First frame of an lz4 stream: Kafka's reader ignores what follows it."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0
        self._codec = codec_library(CompressionType.LZ4).LZ4FrameDecompressor()

    def read(self, size: int) -> bytes:
        codec, content = self._codec, b""
        while size > 0 and not (content or codec.eof):
            piece: WireBytes = b""
            if codec.needs_input:
                piece = self._data[self._position : self._position + _INPUT_STEP]
                self._position += len(piece)
                if not piece:
                    raise CompressionError("lz4: the stream is truncated")
            try:
                content = codec.decompress(piece, max_length=min(size, _OUTPUT_STEP))
            except RuntimeError as error:
                raise CompressionError("lz4: the stream is corrupt") from error
        return content


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


def _compress_zstd_pieces(pieces: Iterable[WireBytes], level: int) -> Iterator[bytes]:
    codec = _zstd().ZstdCompressor(level=level).compressobj()
    for piece in pieces:
        yield codec.compress(piece)
    yield codec.flush()


def _decompress_zstd_frame(data: WireBytes, most: int) -> bytes | None:
    """Decompress a stream at once if it is one frame that states its size, which is at most `most`.

    Raises:
        CompressionError: The stream is corrupt.
    """
    zstandard = _zstd()
    try:
        stated: int = zstandard.frame_content_size(data)
        # The output is allocated first, by the stated size.
        possible = -(-len(data) // _ZSTD_SMALLEST_BLOCK) * _ZSTD_BLOCK_CONTENT
        if not 0 < stated <= min(most, possible):
            return None
        with _ZSTD_DECOMPRESSORS.borrow() as codec:
            whole: bytes = codec.decompress(data, allow_extra_data=False)
            return whole
    except zstandard.ZstdError:
        return None  # several frames, or an error that the stream reports


class _ZstdStream(Decompressor):
    """Frames of a zstd stream."""

    def __init__(self, data: memoryview) -> None:
        with _zstd_errors():
            _check_zstd_frames(data)
            self._codec = _ZSTD_STREAM_DECOMPRESSORS.take()
            self._reader = self._codec.stream_reader(data, read_across_frames=True)

    def read(self, size: int) -> bytes:
        if size == 0 or self._reader is None:
            return b""
        with _zstd_errors():
            content: bytes = self._reader.read(min(size, _OUTPUT_STEP))
        if not content:
            self._reader = None
            _ZSTD_STREAM_DECOMPRESSORS.put_back(self._codec)
        return content


@contextmanager
def _zstd_errors() -> Iterator[None]:
    try:
        yield
    except _zstd().ZstdError as error:
        raise CompressionError(f"zstd: the stream is corrupt: {error}") from error


def _check_zstd_frames(view: memoryview) -> None:
    """Check that a stream consists of whole frames, which may be skippable ones (RFC 8878, 3.1).

    The streaming decompressor does not report that the last frame is truncated.

    Raises:
        CompressionError: The last frame is truncated.
        zstandard.ZstdError: Other data follows a frame.
    """
    position = 0
    while position < len(view):
        position = _end_of_zstd_frame(view, position)
    if position == 0 or position > len(view):
        raise CompressionError("zstd: the stream is truncated")


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


_COMPRESSORS: Final[dict[CompressionType, Callable[[WireBytes, int], WireBytes]]] = {
    CompressionType.NONE: _unchanged,
    CompressionType.GZIP: _compress_gzip,
    CompressionType.SNAPPY: _compress_snappy,
    CompressionType.LZ4: _compress_lz4,
    CompressionType.ZSTD: _compress_zstd,
}

_PIECE_COMPRESSORS: Final[
    dict[CompressionType, Callable[[Iterable[WireBytes], int], Iterable[WireBytes]]]
] = {
    CompressionType.NONE: lambda pieces, _: pieces,
    CompressionType.GZIP: _compress_gzip_pieces,
    CompressionType.SNAPPY: _compress_snappy_pieces,
    CompressionType.LZ4: _compress_lz4_pieces,
    CompressionType.ZSTD: _compress_zstd_pieces,
}

_AT_ONCE: Final[dict[CompressionType, Callable[[WireBytes, int], bytes | None]]] = {
    CompressionType.SNAPPY: _decompress_single_block,
    CompressionType.ZSTD: _decompress_zstd_frame,
}
"""Decompress streams of the usual form faster; None for others."""

_DECOMPRESSORS: Final[dict[CompressionType, Callable[[memoryview], Decompressor]]] = {
    CompressionType.GZIP: _GzipStream,
    CompressionType.SNAPPY: _SnappyStream,
    CompressionType.LZ4: _Lz4Stream,
    CompressionType.ZSTD: _ZstdStream,
}
