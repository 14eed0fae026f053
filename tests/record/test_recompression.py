"""Compression of batches with another codec, at once and in pieces."""

from unittest.mock import patch

import pytest

from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    RecordBatch,
    RecordBatchBuilder,
    recompression,
)
from tests.support.checks.decompression import decompressed


def sealed(kind: CompressionType) -> memoryview:
    builder = RecordBatchBuilder(bytearray(50_000))
    while builder.append(builder.record_count, b"key", b"value %d" % builder.record_count) >= 0:
        pass
    return builder.seal(compression=kind)


@pytest.mark.parametrize("target", CompressionType)
@pytest.mark.parametrize("source", CompressionType)
@pytest.mark.parametrize("window", [1000, 100_000])
def test_records_are_the_same_after_recompression(
    source: CompressionType, target: CompressionType, window: int
) -> None:
    with (
        patch.object(recompression, "FIRST_WINDOW", window),
        patch.object(recompression, "NEXT_WINDOW", 700),
    ):
        batch = RecordBatch(sealed(source))
        packed = b"".join(recompression.recompress_records(batch, target, None))
    plain = bytes(sealed(CompressionType.NONE))[RECORD_BATCH_OVERHEAD:]
    assert decompressed(target, packed) == plain
