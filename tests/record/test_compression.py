"""Codecs: levels, streams of other libraries, corrupt streams, limits."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress

import lz4.frame
import pytest
import snappy
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import CompressionError, InvalidArgumentError
from kclient.record import CompressionType, check_level, compress
from kclient.record.compression import IdleCodecs
from tests.record.foreign_streams import FOREIGN, unsized_zstd, xerial
from tests.support.checks.decompression import decompressed

GZIP, SNAPPY, LZ4, ZSTD = (
    CompressionType.GZIP,
    CompressionType.SNAPPY,
    CompressionType.LZ4,
    CompressionType.ZSTD,
)


CODECS = (GZIP, SNAPPY, LZ4, ZSTD)


TEXT = b"".join(b"flight %d from %d;" % (i, i * 7919 % 1000) for i in range(20_000))


@given(st.sampled_from(CODECS), st.binary(max_size=2000), st.integers(1, 200))
def test_compression_round_trip(kind: CompressionType, data: bytes, times: int) -> None:
    whole = data * times
    assert bytes(decompressed(kind, compress(kind, memoryview(whole)))) == whole


@pytest.mark.parametrize("kind", CODECS)
def test_text_is_compressed(kind: CompressionType) -> None:
    packed = compress(kind, TEXT)
    assert len(packed) < len(TEXT) * 0.6
    assert decompressed(kind, memoryview(packed)) == TEXT


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("excess", [0, 1, 1000])
def test_decompression_limit_is_exact(kind: CompressionType, excess: int) -> None:
    packed = compress(kind, TEXT)
    limit = len(TEXT) - excess
    if excess == 0:
        assert decompressed(kind, packed, limit) == TEXT
    else:
        with pytest.raises(CompressionError, match="limit"):
            decompressed(kind, packed, limit)


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("size", [0, 1, 3, 10, 20, 1000, -20, -5, -4, -1])
def test_truncated_stream_is_rejected(kind: CompressionType, size: int) -> None:
    packed = bytes(compress(kind, TEXT))
    with pytest.raises(CompressionError):
        decompressed(kind, packed[:size])


@pytest.mark.parametrize("kind", [SNAPPY, ZSTD])
@pytest.mark.parametrize("surplus", [b"\x00", b"surplus", bytes(100)])
def test_stream_with_trailing_data_is_rejected(kind: CompressionType, surplus: bytes) -> None:
    with pytest.raises(CompressionError):
        decompressed(kind, bytes(compress(kind, b"data" * 50)) + surplus)


@pytest.mark.parametrize("kind", [GZIP, LZ4])
@pytest.mark.parametrize("surplus", [b"\x00", b"surplus", bytes(100), bytes(70_000)])
def test_data_after_gzip_and_lz4_is_ignored_as_in_kafka(
    kind: CompressionType, surplus: bytes
) -> None:
    assert decompressed(kind, bytes(compress(kind, TEXT)) + surplus) == TEXT


def test_second_lz4_frame_is_ignored_as_in_kafka() -> None:
    packed = lz4.frame.compress(b"first") + lz4.frame.compress(b"second")
    assert decompressed(LZ4, packed) == b"first"


@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_random_bytes_are_rejected_or_small(kind: CompressionType, noise: bytes) -> None:
    with suppress(CompressionError):
        assert len(decompressed(kind, noise, 10_000)) <= 10_000


@given(st.sampled_from(CODECS), st.data())
def test_damaged_stream_never_exceeds_the_limit(kind: CompressionType, data: st.DataObject) -> None:
    packed = bytearray(compress(kind, TEXT[:3000]))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(CompressionError):
        assert len(decompressed(kind, packed, 5000)) <= 5000


@pytest.mark.parametrize(
    ("kind", "level", "expected"),
    [
        (GZIP, None, -1),
        (GZIP, -1, -1),
        (GZIP, 9, 9),
        (LZ4, None, 9),
        (LZ4, 17, 17),
        (ZSTD, None, 3),
        (ZSTD, -131072, -131072),
        (ZSTD, 22, 22),
        (SNAPPY, 5, 0),
        (CompressionType.NONE, None, 0),
    ],
)
def test_default_levels(kind: CompressionType, level: int | None, expected: int) -> None:
    assert check_level(kind, level) == expected


@pytest.mark.parametrize(
    ("kind", "level", "text"),
    [
        (GZIP, 0, "got 0, expected 1 to 9 for gzip; the default is -1"),
        (GZIP, 10, "got 10, expected 1 to 9"),
        (LZ4, 0, "got 0, expected 1 to 17 for lz4; the default is 9"),
        (LZ4, 18, "got 18"),
        (ZSTD, 23, "got 23, expected -131072 to 22 for zstd; the default is 3"),
    ],
)
def test_levels_out_of_range_are_rejected(kind: CompressionType, level: int, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        compress(kind, b"data", level)


@pytest.mark.parametrize(("kind", "low", "high"), [(GZIP, 1, 9), (LZ4, None, 12), (ZSTD, -50, 19)])
def test_higher_level_compresses_better(
    kind: CompressionType, low: int | None, high: int | None
) -> None:
    loose, tight = compress(kind, TEXT, low), compress(kind, TEXT, high)
    assert len(tight) < len(loose)
    assert decompressed(kind, tight) == TEXT == decompressed(kind, loose)


@pytest.mark.parametrize(
    ("kind", "pack"), [(kind, pack) for kind, _, pack in FOREIGN], ids=[each[1] for each in FOREIGN]
)
@pytest.mark.parametrize("data", [b"x" * 200, TEXT[:200], TEXT], ids=len)
def test_streams_of_other_libraries_are_decompressed(
    kind: CompressionType, pack: Callable[[bytes], bytes], data: bytes
) -> None:
    packed = pack(data)
    assert decompressed(kind, packed, len(data)) == data
    with pytest.raises(CompressionError):
        decompressed(kind, packed, len(data) - 1)


def test_gzip_is_readable_by_the_standard_library() -> None:
    assert gzip.decompress(bytes(compress(GZIP, TEXT))) == TEXT
    assert zlib.decompress(bytes(compress(GZIP, TEXT, 1)), 31) == TEXT


def test_lz4_uses_independent_blocks_of_64_kib() -> None:
    info = lz4.frame.get_frame_info(bytes(compress(LZ4, TEXT)))
    assert info["block_linked"] is False
    assert info["block_size"] == 64 * 1024
    assert info["content_size"] == 0
    assert lz4.frame.decompress(bytes(compress(LZ4, TEXT, 4))) == TEXT


def test_no_codec_returns_the_data_itself() -> None:
    data = bytearray(b"data")
    assert compress(CompressionType.NONE, data) is data


@pytest.mark.parametrize("number", [-1, 5, 7])
def test_unknown_codec_is_reported(number: int) -> None:
    with pytest.raises(CompressionError, match=f"got id {number}, expected 0 to 4"):
        CompressionType.for_id(number)


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
        decompressed(SNAPPY, stream)


def test_idle_codec_is_reused() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    codecs = IdleCodecs(make)
    with codecs.borrow() as first:
        pass
    with codecs.borrow() as second, codecs.borrow() as third:
        assert second is first
        assert third is not first
    assert len(made) == 2


def test_codec_is_discarded_after_an_error() -> None:
    codecs = IdleCodecs(object)
    with pytest.raises(ValueError, match="broken"), codecs.borrow() as first:
        raise ValueError("broken")
    with codecs.borrow() as second:
        assert second is not first


def test_pool_size_is_bounded() -> None:
    codecs = IdleCodecs(object)
    lent = [codecs.borrow() for _ in range(20)]
    objects = {context.__enter__() for context in lent}
    for context in lent:
        context.__exit__(None, None, None)
    kept = set()
    lent = [codecs.borrow() for _ in range(20)]
    kept = {context.__enter__() for context in lent} & objects
    assert len(kept) == 4


def test_corrupt_stream_does_not_affect_the_next() -> None:
    good = bytes(compress(CompressionType.ZSTD, b"good" * 1000))
    for damaged in (
        good[:-3],
        good + good[:-3],
        unsized_zstd(good)[:-3],
        good[:20] + b"\x00" + good[21:],
        good + b"x",
    ):
        with pytest.raises(CompressionError):
            decompressed(CompressionType.ZSTD, damaged)
        assert decompressed(CompressionType.ZSTD, good) == b"good" * 1000
