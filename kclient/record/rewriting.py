"""Rewriting of a batch with the records that compaction retains (KIP-534)."""

from collections.abc import Sequence

from kclient.record.batch_format import (
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_FLAG,
)
from kclient.record.compression_type import CompressionType
from kclient.record.record import Record
from kclient.record.reference.record_batch import RecordBatch
from kclient.record.reference.record_encoder import encode_headers, encode_length
from kclient.record.reference.varints import encode_varint
from kclient.record.sealing import BatchHeader, seal_batch, write_header
from kclient.record.timestamp_type import TimestampType


def with_records(
    batch: RecordBatch, records: Sequence[Record], delete_horizon_ms: int | None = None
) -> memoryview:
    """Return the batch with only these records, which keep their offsets.

    Base and last offset, producer and sequences stay those of the whole batch, so that the
    producer's next batch is still in sequence.

    Args:
        batch: The batch.
        records: Some or all of its records, in order; at least one.
        delete_horizon_ms: Time from which tombstones may be removed; None keeps the batch's.
    """
    horizon = batch.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    base_timestamp = records[0].timestamp if horizon is None else horizon
    parts = [_encoded(batch, record, base_timestamp) for record in records]
    data = memoryview(bytearray(RECORD_BATCH_OVERHEAD) + b"".join(parts))
    stamped = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    latest = batch.max_timestamp if stamped else max(record.timestamp for record in records)
    header = _header(batch, batch.compression_type, base_timestamp, latest, len(records))
    return seal_batch(data, header._replace(delete_horizon=horizon is not None), None)


def without_records(batch: RecordBatch) -> memoryview:
    """Return the batch without records; its header retains the producer's last sequence.

    (Kafka: DefaultRecordBatch.writeEmptyHeader)
    """
    data = memoryview(bytearray(RECORD_BATCH_OVERHEAD))
    write_header(
        data, _header(batch, CompressionType.NONE, NO_TIMESTAMP, batch.max_timestamp, count=0)
    )
    return data


def _header(
    batch: RecordBatch,
    compression: CompressionType,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
) -> BatchHeader:
    return BatchHeader(
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        compression=compression,
        timestamp_type=batch.timestamp_type,
        transactional=bool(batch.attributes & TRANSACTIONAL_FLAG),
        control=batch.is_control,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=count,
    )


def _encoded(batch: RecordBatch, record: Record, base_timestamp: int) -> bytes:
    body = b"".join(
        (
            b"\x00",
            encode_varint(record.timestamp - base_timestamp),
            encode_varint(record.offset - batch.base_offset),
            encode_length(record.key),
            record.key or b"",
            encode_length(record.value),
            record.value or b"",
            encode_headers(record.headers),
        )
    )
    return encode_varint(len(body)) + body
