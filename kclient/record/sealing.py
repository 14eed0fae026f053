"""Completion of batches (header, compression and checksum), and their rewriting by compaction."""

from collections.abc import Sequence

from kclient.common.errors import IllegalStateError
from kclient.record.batch_header import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC,
    CRC_AT,
    DELETE_HORIZON_FLAG,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    PRODUCER_STATE,
    PRODUCER_STATE_AT,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    TimestampType,
    parse_header,
)
from kclient.record.checksum import crc32c
from kclient.record.compression import compress
from kclient.record.record import Record
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.record_encoder import encode_record


def seal_batch(batch: memoryview, header: BatchHeader, level: int | None) -> memoryview:
    """Complete a batch whose records follow 61 bytes reserved for the header.

    Args:
        batch: Writable memory of the batch.
        header: The header to write; position, size and checksum are ignored.
        level: Compression level, None for the codec's default.

    Returns:
        `batch` itself, or with a codec a new one with compressed records.

    Raises:
        IllegalStateError: There are no records.
        InvalidArgumentError: The compression level is out of range.
    """
    if header.count == 0:
        raise IllegalStateError("seal: the batch has no records")
    if header.attributes & COMPRESSION_MASK:
        packed = compress(header.compression_type, batch[RECORD_BATCH_OVERHEAD:], level)
        batch = memoryview(bytearray(RECORD_BATCH_OVERHEAD + len(packed)))
        batch[RECORD_BATCH_OVERHEAD:] = packed
    write_header(batch, header)
    return batch


def write_header(batch: memoryview, header: BatchHeader) -> None:
    """Write header and checksum of a batch whose records are complete."""
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LOG_OVERHEAD,
        header.partition_leader_epoch,
        MAGIC,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )
    _write_checksum(batch)


def restamp_batch(
    batch: memoryview, producer_id: int, producer_epoch: int, base_sequence: int
) -> None:
    """Write producer id, epoch and sequence into a complete batch."""
    PRODUCER_STATE.pack_into(batch, PRODUCER_STATE_AT, producer_id, producer_epoch, base_sequence)
    _write_checksum(batch)


def _write_checksum(batch: memoryview) -> None:
    CRC.pack_into(batch, CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))


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
    parts = [
        encode_record(
            record.timestamp - base_timestamp,
            record.offset - batch.base_offset,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    ]
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
