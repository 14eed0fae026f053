"""Rewriting of a batch with the records that compaction retains (KIP-534)."""

from collections.abc import Sequence

from kclient.record.batch_header import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    parse_header,
)
from kclient.record.record import Record
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.record_encoder import encode_headers, encode_length
from kclient.record.sealing import seal_batch, write_header
from kclient.record.timestamp_type import TimestampType
from kclient.record.varints import encode_varint

_KEPT_FLAGS = TIMESTAMP_TYPE_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


def with_records(
    batch: AbstractRecordBatch, records: Sequence[Record], delete_horizon_ms: int | None = None
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
    header = parse_header(batch.buffer, 0, 0)
    header.attributes &= _KEPT_FLAGS | COMPRESSION_MASK
    if horizon is not None:
        header.attributes |= DELETE_HORIZON_FLAG
    header.base_timestamp = base_timestamp
    header.max_timestamp = latest
    header.count = len(records)
    return seal_batch(data, header, None)


def without_records(batch: AbstractRecordBatch) -> memoryview:
    """Return the batch without records; its header retains the producer's last sequence.

    (Kafka: DefaultRecordBatch.writeEmptyHeader)
    """
    data = memoryview(bytearray(RECORD_BATCH_OVERHEAD))
    header = parse_header(batch.buffer, 0, 0)
    header.attributes &= _KEPT_FLAGS
    header.base_timestamp = NO_TIMESTAMP
    header.count = 0
    write_header(data, header)
    return data


def _encoded(batch: AbstractRecordBatch, record: Record, base_timestamp: int) -> bytes:
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
