"""Pool of idle codecs."""

import pytest

from kclient.common.errors import CompressionError
from kclient.record import CompressionType, compress, decompress
from kclient.record.idle_codecs import IdleCodecs


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
    for damaged in (good[:-3], good[:20] + b"\x00" + good[21:], good + b"x"):
        with pytest.raises(CompressionError):
            decompress(CompressionType.ZSTD, damaged)
        assert decompress(CompressionType.ZSTD, good) == b"good" * 1000
