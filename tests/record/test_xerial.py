"""Snappy in Kafka's framing."""

import pytest
import snappy

from kclient.common.errors import CompressionError
from kclient.record import CompressionType, compress, decompress

GZIP, SNAPPY, LZ4, ZSTD = (
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
    CompressionType.ZSTD,
)


TEXT = b"".join(b"flight %d from %d;" % (i, i * 7919 % 1000) for i in range(20_000))


def xerial(*blocks: bytes) -> bytes:
    framed = b"".join(len(block).to_bytes(4) + block for block in blocks)
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + framed


def test_snappy_uses_xerial_blocks_of_32_kib() -> None:
    packed = bytes(compress(SNAPPY, TEXT))
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    length = int.from_bytes(packed[16:20])
    assert snappy.decompress(packed[20 : 20 + length]) == TEXT[: 32 * 1024]


@pytest.mark.parametrize(
    "stream",
    [
        b"\x82SNAPPY\x00\x00\x00",
        xerial(snappy.compress(b"abc"))[:-1],
        xerial() + b"\x00\x00",
        xerial() + b"\xff\xff\xff\xff" + b"abc",
        xerial() + b"\x7f\xff\xff\xff" + b"abc",
        xerial(b""),
        xerial(b"\xff\xff\xff\xff\x0f"),
        b"\xff\xff\xff\xff\xff\x0f",
        b"\xe8\x07" + b"x" * 10,  # 1000 bytes claimed by ten
        b"",
    ],
)
def test_invalid_snappy_sizes_are_rejected(stream: bytes) -> None:
    with pytest.raises(CompressionError, match="snappy"):
        decompress(SNAPPY, stream)
