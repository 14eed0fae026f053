"""Completion of batches: header, compression and checksum."""

from kclient.common.errors import IllegalStateError
from kclient.record.batch_header import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    CRC,
    CRC_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    PRODUCER_STATE,
    PRODUCER_STATE_AT,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
)
from kclient.record.checksum import crc32c
from kclient.record.compression import compress


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
