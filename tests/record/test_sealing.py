"""Rewriting of batches with the records that compaction retains."""

import pytest

from kclient.record import (
    CompressionType,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
)
from kclient.record.sealing import with_records, without_records


def batch_of(compression: CompressionType = CompressionType.NONE) -> RecordBatch:
    builder = RecordBatchBuilder(bytearray(10_000), base_offset=10)
    for number in range(4):
        builder.append(1000 + number, b"k%d" % number, b"v" * 50, [("h", b"x")])
    return RecordBatch(
        builder.seal(
            7, 3, 20, transactional=True, compression=compression, partition_leader_epoch=5
        )
    )


@pytest.mark.parametrize("compression", CompressionType)
def test_retained_records_keep_offsets_and_producer_state(compression: CompressionType) -> None:
    batch = batch_of(compression)
    kept = [batch.records()[1], batch.records()[2]]
    rewritten = RecordBatch(with_records(batch, kept))
    assert rewritten.is_valid()
    assert rewritten.records() == kept
    assert (rewritten.base_offset, rewritten.last_offset, rewritten.count) == (10, 13, 2)
    assert (rewritten.producer_id, rewritten.producer_epoch) == (7, 3)
    assert (rewritten.base_sequence, rewritten.last_sequence) == (20, 23)
    assert rewritten.partition_leader_epoch == 5
    assert rewritten.is_transactional
    assert rewritten.compression_type is compression
    assert (rewritten.max_timestamp, rewritten.delete_horizon_ms) == (1002, None)


def test_delete_horizon_is_set_and_kept() -> None:
    batch = batch_of()
    first = RecordBatch(with_records(batch, batch.records(), 9_000))
    assert first.delete_horizon_ms == 9_000
    assert first.records() == batch.records()
    second = RecordBatch(with_records(first, first.records()[:1]))
    assert second.delete_horizon_ms == 9_000
    assert second.is_valid()


def test_log_append_time_is_kept() -> None:
    batch = batch_of()
    batch.set_max_timestamp(77, log_append_time=True)
    rewritten = RecordBatch(with_records(batch, batch.records()[:1]))
    assert rewritten.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in rewritten.records()] == [77]
    assert rewritten.max_timestamp == 77


def test_batch_without_records_keeps_sequences() -> None:
    batch = batch_of(CompressionType.GZIP)
    empty = RecordBatch(without_records(batch))
    assert empty.is_valid()
    assert (empty.count, empty.records()) == (0, [])
    assert (empty.base_offset, empty.last_offset, empty.last_sequence) == (10, 13, 23)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, batch.max_timestamp)
    assert empty.compression_type is CompressionType.NONE
    assert empty.is_transactional
