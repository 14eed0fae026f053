"""Compressed payloads: invalid streams, wrong sizes, decompression bombs.

The first byte of an input selects the codec.
"""

import gzip
from collections.abc import Iterator
from random import Random

import lz4.frame
import zstandard

from kclient.common.errors import CompressionError
from kclient.record import CompressionType, compress
from kclient.record.compression import compress_xerial
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import MEBIBYTE, Target
from tests.support.checks.decompression import decompressed

LIMIT = 256 * 1024
_CODECS = [codec for codec in CompressionType if codec is not CompressionType.NONE]
_XERIAL_HEADER = 16


def run(data: bytes) -> None:
    """Decompress, and compress the result again."""
    if not data:
        return
    codec, stream = _CODECS[data[0] % len(_CODECS)], data[1:]
    with refusals():
        unfolded = bytes(decompressed(codec, stream, LIMIT))
        assert len(unfolded) <= LIMIT
        assert bytes(decompressed(codec, bytes(compress(codec, unfolded)), LIMIT)) == unfolded
        try:
            bound_holds = len(decompressed(codec, stream, max(0, len(unfolded) - 1))) == 0
        except CompressionError:
            bound_holds = True
        assert bound_holds, "the output exceeds the limit"


def seeds() -> Iterator[bytes]:
    """Yield streams of each codec: short, dense, without sizes, in several frames."""
    texts = (b"", b"a", b"value" * 100, bytes(100_000), Random(1).randbytes(600))
    for index, codec in enumerate(_CODECS):
        for text in texts:
            yield bytes([index]) + bytes(compress(codec, text))
    number = {codec: bytes([index]) for index, codec in enumerate(_CODECS)}
    yield number[CompressionType.GZIP] + gzip.compress(b"a", mtime=0) + gzip.compress(b"b", mtime=0)
    yield number[CompressionType.GZIP] + gzip.compress(bytes(10 * LIMIT), mtime=0)
    yield number[CompressionType.SNAPPY] + compress_xerial(b"xy" * 50)[_XERIAL_HEADER + 4 :]
    yield number[CompressionType.SNAPPY] + compress_xerial(bytes(2 * LIMIT))
    yield number[CompressionType.LZ4] + lz4.frame.compress(bytes(10 * LIMIT), block_linked=True)
    yield number[CompressionType.LZ4] + lz4.frame.compress(b"ab" * 99, content_checksum=True)
    unsized = zstandard.ZstdCompressor(write_content_size=False)
    yield number[CompressionType.ZSTD] + unsized.compress(b"ab" * 99)
    yield number[CompressionType.ZSTD] + unsized.compress(bytes(10 * LIMIT))
    yield number[CompressionType.ZSTD] + unsized.compress(b"a") + unsized.compress(b"b")
    checked = zstandard.ZstdCompressor(write_checksum=True, level=19)
    yield number[CompressionType.ZSTD] + checked.compress(b"abc" * 99)


def mutate(data: bytes, random: Random) -> bytes:
    """Change the stream, or the text within, or its number of repetitions."""
    action = random.random()
    if not data or action < 0.7:
        return data[:1] + spoil(data[1:], random)
    codec = _CODECS[data[0] % len(_CODECS)]
    if action < 0.8:
        return data + data[1:]
    try:
        text = bytes(decompressed(codec, data[1:], LIMIT))
    except CompressionError:
        text = bytes(random.randrange(4 * LIMIT))
    return data[:1] + bytes(compress(codec, spoil(text, random)))


# The output grows by doubling, is copied once, and is held up to three times here.
TARGET = Target(run, seeds, mutate, lambda size: 12 * LIMIT + 4 * MEBIBYTE + 8 * size)
