"""Recompression of batches with the codec of the topic (compression.type)."""

import struct

from kclient.broker.log.file_records import BATCH_HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from kclient.broker.log.log_config import LogConfig
from kclient.common.broker_errors import RecordTooLargeError
from kclient.record import CompressionType, RecordBatch, compress, crc32c

_CODECS = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}
_CODEC_MASK = 0x07
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_CRC = struct.Struct(">I")
_CRC_AT = 17
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21


def recompress(
    records: memoryview, headers: list[BatchHeader], config: LogConfig
) -> tuple[memoryview, list[BatchHeader]]:
    """Return the batches with the topic's codec; the arguments if all have it already.

    The records are not modified, only their compression.

    Args:
        records: Validated batches.
        headers: Their headers, with positions in `records`.
        config: Topic configuration.

    Raises:
        RecordTooLargeError: A recompressed batch is larger than max.message.bytes.
    """
    codec = _CODECS.get(config.compression_type)
    if codec is None or all(header.attributes & _CODEC_MASK == codec for header in headers):
        return records, headers
    packed = bytearray()
    moved = []
    for header in headers:
        batch = RecordBatch(records, header.position)
        same = header.attributes & _CODEC_MASK == codec
        data = batch.buffer if same else _recompressed(batch, codec, config)
        if len(data) > config.max_message_bytes:
            raise RecordTooLargeError(
                f"got a batch of {len(data)} bytes as {config.compression_type}, expected at most "
                f"{config.max_message_bytes} (max.message.bytes)"
            )
        moved.append(header._replace(position=len(packed), size_in_bytes=len(data)))
        packed += data
    return memoryview(packed), moved


def _recompressed(batch: RecordBatch, codec: CompressionType, config: LogConfig) -> bytearray:
    body = compress(codec, batch.payload(), _level(codec, config))
    packed = bytearray(batch.buffer[:BATCH_HEADER_SIZE])
    packed += body
    _LENGTH.pack_into(packed, _LENGTH_AT, len(packed) - LOG_OVERHEAD)
    _ATTRIBUTES.pack_into(packed, _ATTRIBUTES_AT, (batch.attributes & ~_CODEC_MASK) | codec)
    _CRC.pack_into(packed, _CRC_AT, crc32c(memoryview(packed)[_ATTRIBUTES_AT:]))
    return packed


def _level(codec: CompressionType, config: LogConfig) -> int | None:
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)
