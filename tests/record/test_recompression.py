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


@pytest.mark.parametrize("target", CompressionType)
@pytest.mark.parametrize("source", CompressionType)
@pytest.mark.parametrize("window", [1000, 100_000])
def test_records_are_the_same_after_recompression(
    source: CompressionType, target: CompressionType, window: int
) -> None:
    builder = RecordBatchBuilder(bytearray(50_000))
    while builder.append(builder.record_count, b"key", b"value %d" % builder.record_count) >= 0:
        pass
    plain = bytes(builder.seal())[RECORD_BATCH_OVERHEAD:]
    batch = RecordBatch(builder.seal(compression=source))
    with (
        patch.object(recompression, "FIRST_WINDOW", window),
        patch.object(recompression, "NEXT_WINDOW", 700),
    ):
        packed = b"".join(recompression.recompress_records(batch, target, None))
    assert decompressed(target, packed) == plain
