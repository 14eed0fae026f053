"""Generation and mutation of record batches with valid sizes and checksums."""

import struct
from random import Random

from kclient.common.errors import KafkaError
from kclient.record import (
    CompressionType,
    ControlRecordType,
    EndTxnMarker,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
    build_end_txn_batch,
    compress,
    crc32c,
)
from tests.fuzz.mutation import interesting_integer, spoil
from tests.fuzz.target import CANARY

HEADER_SIZE = 61
LENGTH_AT = 8
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
_PREFIX = 12
_CODEC_MASK = 7
_MAX_UNFOLDED = 1 << 16

FIELDS = {
    0: ("q", 64), 8: ("i", 32), 12: ("i", 32), 16: ("b", 8), 21: ("h", 16), 23: ("i", 32),
    27: ("q", 64), 35: ("q", 64), 43: ("q", 64), 51: ("h", 16), 53: ("i", 32), 57: ("i", 32),
}  # fmt: skip
"""Struct format and width in bits of the header fields, by position."""


def plain_batch(count: int = 3, *, base_offset: int = 0, producer_id: int = -1) -> bytes:
    """Return a batch of a few records that contain the canary."""
    builder = RecordBatchBuilder(bytearray(4096), base_offset=base_offset)
    for index in range(count):
        builder.append(1_700_000_000_000 + index, CANARY[:index], CANARY, [("h", CANARY)])
    stamp = (producer_id, 0, 0) if producer_id >= 0 else ()
    return bytes(builder.seal(*stamp))


def made_batch(random: Random) -> bytes:
    """Return a random batch: data or control, any codec, with or without a producer."""
    if random.random() < 0.1:
        kind = random.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT))
        return bytes(build_end_txn_batch(EndTxnMarker(kind, 0), 7, 0, 0))
    builder = RecordBatchBuilder(bytearray(1 << 14), base_offset=random.choice((0, 0, 5)))
    for index in range(random.choice((1, 2, 5))):
        key = random.choice((None, b"", b"k%d" % index))
        value = random.choice((None, b"", b"v" * random.randrange(300), CANARY))
        headers = random.choice((None, [("h", None), ("", b"x")]))
        builder.append(random.choice((-1, 0, 1_700_000_000_000 + index)), key, value, headers)
    producer = random.choice(((-1, -1, -1), (7, 0, 0), (7, 0, 1)))
    return bytes(
        builder.seal(
            *producer,
            transactional=random.random() < 0.2,
            compression=random.choice(list(CompressionType)),
            timestamp_type=random.choice((TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME))
            if random.random() < 0.2
            else TimestampType.CREATE_TIME,
        )
    )


def spans(data: bytes | bytearray) -> list[tuple[int, int]]:
    """Return start and end of each batch by its length field; the last ends with the data."""
    found = []
    position = 0
    while position + HEADER_SIZE <= len(data):
        (length,) = struct.unpack_from(">i", data, position + LENGTH_AT)
        end = position + _PREFIX + length
        if length < HEADER_SIZE - _PREFIX or end > len(data):
            end = len(data)
        found.append((position, end))
        position = end
    return found


def fixed_up(data: bytes | bytearray) -> bytes:
    """Return the batches with corrected lengths and checksums."""
    fixed = bytearray(data)
    for start, end in spans(fixed):
        struct.pack_into(">i", fixed, start + LENGTH_AT, end - start - _PREFIX)
        struct.pack_into(">I", fixed, start + CRC_AT, crc32c(bytes(fixed[start + 21 : end])))
    return bytes(fixed)


def mutate_batches(data: bytes, random: Random) -> bytes:
    """Return mutated record batches."""
    action = random.random()
    found = spans(data)
    if not found or action < 0.05:
        return data + made_batch(random)
    start, end = random.choice(found)
    batch = bytearray(data[start:end])
    if action < 0.35:
        _change_header(batch, random)
    elif action < 0.8:
        batch = _changed_payload(batch, random)
    elif action < 0.85:
        batch = bytearray(made_batch(random))
    else:
        batch = bytearray(spoil(bytes(batch), random))
    if random.random() < 0.85:
        batch = bytearray(fixed_up(batch))
    return data[:start] + bytes(batch) + data[end:]


def _change_header(batch: bytearray, random: Random) -> None:
    position, (code, bits) = random.choice(list(FIELDS.items()))
    struct.pack_into(f">{code}", batch, position, interesting_integer(random, bits))


def _changed_payload(batch: bytearray, random: Random) -> bytearray:
    """Return the batch with mutated records, compressed with the codec of its header."""
    packed = bytes(batch[HEADER_SIZE:])
    codec = batch[ATTRIBUTES_AT + 1] & _CODEC_MASK
    if random.random() < 0.3 or codec not in set(CompressionType):
        payload = spoil(packed, random)
    else:
        payload = _repacked(batch, CompressionType(codec), random)
    if random.random() < 0.2:
        struct.pack_into(">i", batch, 57, random.randrange(0, 9))
        struct.pack_into(">i", batch, 23, random.randrange(0, 9))
    return batch[:HEADER_SIZE] + payload


def _repacked(batch: bytearray, codec: CompressionType, random: Random) -> bytes:
    try:
        records = bytes(RecordBatch(fixed_up(batch)).window(_MAX_UNFOLDED).data)
    except KafkaError:
        records = b"\x0c\x00\x00\x00\x01\x01\x00"
    return bytes(compress(codec, spoil(records, random)))
