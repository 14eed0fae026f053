"""Reading and validation of batches."""

import struct
from collections.abc import Callable
from types import ModuleType

import pytest

from kclient.common.broker_errors import CorruptRecordError, UnsupportedForMessageFormatError
from kclient.common.errors import CompressionError, InvalidArgumentError
from kclient.record import (
    CompressionType,
    Record,
    RecordBatch,
    RecordBatchBuilder,
    RecordsSummary,
    TimestampType,
    compress,
    crc32c,
    encode_varint,
)

Filled = Callable[..., RecordBatchBuilder]


def wire(payload: bytes, *, count: int = 1, last_delta: int = 0, **header: int) -> bytes:
    """Return a batch of any payload and header, with a correct checksum."""
    body = struct.pack(
        ">hiqqqhii",
        header.get("attributes", 0),
        last_delta,
        header.get("base_timestamp", 0),
        header.get("max_timestamp", 0),
        header.get("producer_id", -1),
        header.get("producer_epoch", -1),
        header.get("base_sequence", -1),
        count,
    )
    checked = body + payload
    return (
        struct.pack(">qii", header.get("base_offset", 0), 9 + len(checked), 0)
        + struct.pack(">bI", header.get("magic", 2), crc32c(checked))
        + checked
    )


def record(body: str) -> bytes:
    raw = bytes.fromhex(body)
    return encode_varint(len(raw)) + raw


GOOD = record("00 00 00 01 01 00")


def test_generated_batches_are_valid(twin: ModuleType) -> None:
    batch = twin.RecordBatch(wire(GOOD))
    batch.ensure_valid()
    assert batch.records() == [Record(0, 0, None, None, [])]


def test_header_fields(twin: ModuleType, filled: Filled) -> None:
    builder = filled(3, 10)
    sealed = builder.seal(5, 6, 7, partition_leader_epoch=8)
    batch = twin.RecordBatch(b"junk" + bytes(sealed), 4)
    assert batch.base_offset == 10
    assert (batch.last_offset, batch.next_offset, batch.last_offset_delta) == (12, 13, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1002)
    assert (batch.producer_id, batch.producer_epoch, batch.has_producer_id) == (5, 6, True)
    assert (batch.base_sequence, batch.last_sequence) == (7, 9)
    assert (batch.magic, batch.count, batch.partition_leader_epoch) == (2, 3, 8)
    assert (batch.attributes, batch.crc) == (0, crc32c(sealed[21:]))
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert batch.compression_type is CompressionType.NONE
    assert batch.buffer == sealed
    assert batch.size_in_bytes == len(sealed)


def test_batch_is_a_view(twin: ModuleType, filled: Filled) -> None:
    buffer = bytearray(filled().seal())
    batch = twin.RecordBatch(buffer)
    buffer[-1] ^= 1
    assert batch.buffer[-1] == buffer[-1]
    assert not batch.is_valid()


def test_records(twin: ModuleType, filled: Filled) -> None:
    assert twin.RecordBatch(filled(2, 10).seal()).records() == [
        Record(10, 1000, b"k0", b"v0", []),
        Record(11, 1001, b"k1", b"v1", []),
    ]


def test_last_sequence_wraps(twin: ModuleType, filled: Filled) -> None:
    batch = twin.RecordBatch(filled(3).seal(1, 0, 2**31 - 2))
    assert batch.last_sequence == 0
    assert twin.RecordBatch(filled(3).seal(1, 0)).last_sequence == -1


def test_wrong_checksum_is_corrupt(twin: ModuleType, filled: Filled) -> None:
    buffer = bytearray(filled(3, 10).seal())
    buffer[70] ^= 4
    batch = twin.RecordBatch(buffer)
    assert not batch.is_valid()
    with pytest.raises(CorruptRecordError, match="offset 10: got checksum"):
        batch.ensure_valid()


def test_checksum_excludes_fields_assigned_by_the_broker(twin: ModuleType, filled: Filled) -> None:
    buffer = bytearray(filled().seal())
    buffer[:8] = struct.pack(">q", 99)
    buffer[12:16] = struct.pack(">i", 7)
    assert twin.RecordBatch(buffer).is_valid()


def test_log_append_time_applies_to_all_records(twin: ModuleType, filled: Filled) -> None:
    sealed = filled(2).seal(timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert [r.timestamp for r in twin.RecordBatch(sealed).records()] == [1001, 1001]


def test_delete_horizon_is_stored_in_base_timestamp(twin: ModuleType) -> None:
    payload = record("00 02 00 01 01 00")
    batch = twin.RecordBatch(wire(payload, attributes=0x40, base_timestamp=5000))
    assert batch.delete_horizon_ms == 5000
    assert batch.records()[0].timestamp == 5001


def test_empty_batch_keeps_its_offsets(twin: ModuleType) -> None:
    batch = twin.RecordBatch(wire(b"", count=0, last_delta=9, base_offset=20))
    assert batch.records() == []
    assert (batch.last_offset, batch.next_offset) == (29, 30)
    assert batch.summary() == RecordsSummary(0, -1, -1, -1, 0, consecutive=True)


def test_compacted_batch_has_offset_gaps(twin: ModuleType) -> None:
    payload = record("00 00 04 01 01 00") + record("00 00 0a 01 01 00")
    batch = twin.RecordBatch(wire(payload, count=2, last_delta=9, base_offset=20))
    assert [r.offset for r in batch.records()] == [22, 25]
    assert not batch.summary().consecutive


def test_summary(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(500), base_offset=100)
    for timestamp, key in ((50, b"a"), (90, None), (20, b"c"), (90, None)):
        builder.append(timestamp, key, b"v")
    batch = twin.RecordBatch(builder.seal(compression=CompressionType.GZIP))
    assert batch.summary() == RecordsSummary(4, 20, 90, 101, 2, consecutive=True)


def test_header_name_that_is_not_utf8_is_replaced(twin: ModuleType) -> None:
    payload = record("00 00 00 01 01 02 04 68ff 02 78")
    assert twin.RecordBatch(wire(payload)).records()[0].headers == [("h\ufffd", b"x")]


# ---- lies


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        GOOD[:-1],
        GOOD + b"\x00",
        GOOD + GOOD,
        b"\xff" * 20,
        b"\x00" * 20,
        record("00 00 00 01 01"),  # no header count
        record("00 00 00 01 01 00 00"),  # longer than its fields
        b"\x0a" + GOOD[1:],  # shorter than its fields
        b"\xfe\xff\xff\xff\x0f" + GOOD[1:],  # 2 GiB
        b"\x0b" + GOOD[1:],  # negative length
        record("00 00 00 03 01 00"),  # key length -2
        record("00 00 00 01 03 00"),  # value length -2
        record("00 00 00 08 01 00"),  # key longer than the record
        record("00 00 00 01 7e 00"),  # value longer than the record
        record("00 00 00 fe ff ff ff 0f 01 00"),
        record("00 00 00 01 01 01"),  # header count -1
        record("00 00 00 01 01 02"),  # a header that is not there
        record("00 00 00 01 01 fe ff ff ff 0f"),  # 2**31 - 1 headers
        record("00 00 00 01 01 02 01 01"),  # a header without a name
        record("00 00 00 01 01 02 02 78 03"),  # header value length -2
        record("00 00 00 01 01 02 10 78 01"),  # name longer than the record
        record("00 00 01 01 01 00"),  # offset delta -1
        record("00 00 02 01 01 00"),  # offset delta over the last one
        record("00 00 ff ff ff ff ff 01 01 01 00"),  # offset delta of too many bytes
        record("00 ff ff ff ff ff ff ff ff ff 7f 00 01 01 00"),  # timestamp of too many bits
    ],
)
@pytest.mark.parametrize("attributes", [0, 1])
def test_malformed_payload_is_corrupt(twin: ModuleType, payload: bytes, attributes: int) -> None:
    packed = bytes(compress(CompressionType(attributes), payload))
    batch = twin.RecordBatch(wire(packed, base_offset=33, attributes=attributes))
    batch.ensure_valid()
    for read in (batch.records, batch.summary):
        with pytest.raises(CorruptRecordError, match="offset 33"):
            read()


def test_descending_offset_deltas_are_corrupt(twin: ModuleType) -> None:
    payload = record("00 00 02 01 01 00") + record("00 00 02 01 01 00")
    with pytest.raises(CorruptRecordError, match="record 1"):
        twin.RecordBatch(wire(payload, count=2, last_delta=5)).records()


@pytest.mark.parametrize(
    ("base", "delta"), [(2**63 - 1, 1), (-(2**63) + 1, -1), (-(2**63), 0), (-1, -(2**63))]
)
def test_timestamps_beyond_64_bits_are_corrupt(twin: ModuleType, base: int, delta: int) -> None:
    payload = record("00" + encode_varint(delta).hex() + "00 01 01 00")
    batch = twin.RecordBatch(wire(payload, base_timestamp=base))
    with pytest.raises(CorruptRecordError, match="64 bits"):
        batch.records()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"count": -1}, "states -1 records"),
        ({"count": 2}, "states 2 records in 1 offsets"),
        ({"count": 2**31 - 1, "last_delta": 2**31 - 2}, "states 2147483647 records in 7 bytes"),
        ({"last_delta": -1}, "last offset delta is -1"),
        ({"last_delta": -(2**31)}, "last offset delta"),
        ({"base_offset": 2**63 - 1}, "last offset delta is 0"),
        ({"base_offset": -1}, "base offset is negative"),
        ({"magic": 3}, "got magic 3"),
        ({"magic": -1}, "got magic -1"),
        ({"count": 0}, "data follows the last"),
    ],
)
def test_inconsistent_header_is_corrupt(
    twin: ModuleType, fields: dict[str, int], text: str
) -> None:
    with pytest.raises(CorruptRecordError, match=text):
        twin.RecordBatch(wire(GOOD, **fields)).records()


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_is_reported(twin: ModuleType, magic: int) -> None:
    with pytest.raises(UnsupportedForMessageFormatError, match=f"got magic {magic}"):
        twin.RecordBatch(wire(GOOD, magic=magic))
    with pytest.raises(UnsupportedForMessageFormatError, match=f"got magic {magic}"):
        list(twin.read_batches(wire(GOOD, magic=magic)))


def test_unknown_codec_is_reported(twin: ModuleType) -> None:
    batch = twin.RecordBatch(wire(GOOD, attributes=6, base_offset=4))
    with pytest.raises(CompressionError, match="offset 4: compression type: got id 6"):
        batch.records()


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_corrupt_stream_is_reported(twin: ModuleType, codec: int) -> None:
    batch = twin.RecordBatch(wire(b"\xff" * 30, attributes=codec, base_offset=4))
    with pytest.raises(CompressionError, match="record batch at offset 4"):
        batch.records()


def test_decompression_limit_is_enforced(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(100_000))
    builder.append(0, None, bytes(90_000))
    batch = twin.RecordBatch(builder.seal(compression=CompressionType.LZ4))
    assert len(batch.records(90_100)) == 1
    with pytest.raises(CompressionError, match="at most 80000"):
        batch.records(80_000)


@pytest.mark.parametrize("length", [-1, 0, 13, 48])
def test_invalid_length_is_corrupt(twin: ModuleType, length: int) -> None:
    buffer = bytearray(wire(GOOD))
    buffer[8:12] = struct.pack(">i", length)
    with pytest.raises(CorruptRecordError, match=f"its length is {length}"):
        twin.RecordBatch(buffer)
    with pytest.raises(CorruptRecordError, match=f"its length is {length}"):
        list(twin.read_batches(buffer))


@pytest.mark.parametrize("size", [0, 11, 16, 17, 60, 67])
def test_single_incomplete_batch_is_corrupt(twin: ModuleType, size: int) -> None:
    with pytest.raises(CorruptRecordError, match="not a whole batch"):
        twin.RecordBatch(wire(GOOD)[:size])


@pytest.mark.parametrize("position", [-1, 69])
def test_position_outside_of_the_buffer_is_rejected(twin: ModuleType, position: int) -> None:
    with pytest.raises(InvalidArgumentError, match="position: got"):
        twin.RecordBatch(wire(GOOD), position)


# ---- many batches


def test_read_batches(twin: ModuleType, filled: Filled) -> None:
    data = b"".join(bytes(filled(2, base).seal()) for base in (0, 2, 4))
    batches = list(twin.read_batches(memoryview(data)))
    assert [batch.base_offset for batch in batches] == [0, 2, 4]
    assert all(type(batch) is twin.RecordBatch for batch in batches)


def test_incomplete_batch_ends_the_iteration(twin: ModuleType, filled: Filled) -> None:
    one = bytes(filled(2, 0).seal())
    data = one + bytes(filled(2, 2).seal())
    for size in range(len(data)):
        assert len(list(twin.read_batches(data[:size]))) == size // len(one)


def test_valid_batch_before_invalid_one_is_returned(twin: ModuleType) -> None:
    batches = twin.read_batches(wire(GOOD) + wire(GOOD, magic=9))
    assert next(batches).base_offset == 0
    with pytest.raises(CorruptRecordError, match="magic 9"):
        next(batches)


def test_batch_above_max_batch_size_is_corrupt(twin: ModuleType) -> None:
    size = len(wire(GOOD))
    assert len(list(twin.read_batches(wire(GOOD), max_batch_size=size))) == 1
    with pytest.raises(CorruptRecordError, match=f"got {size} bytes, expected at most {size - 1}"):
        list(twin.read_batches(wire(GOOD)[:-1], max_batch_size=size - 1))


# ---- what the leader writes


def test_assign_writes_offset_and_leader_epoch(filled: Filled) -> None:
    buffer = bytearray(filled(3).seal(1, 2, 3))
    before = bytes(buffer)
    assigned = RecordBatch(buffer)
    assigned.assign(500, 9)
    batch = RecordBatch(buffer)
    for each in (assigned, batch):
        assert (each.base_offset, each.partition_leader_epoch, each.last_offset) == (500, 9, 502)
        assert each.is_valid()
    assert buffer[16:] == before[16:]
    assert buffer[8:12] == before[8:12]


def test_set_max_timestamp_with_log_append_time(filled: Filled) -> None:
    buffer = bytearray(filled(3).seal(1, 2, 3, compression=CompressionType.SNAPPY))
    stamped = RecordBatch(memoryview(buffer))
    stamped.set_max_timestamp(123456, log_append_time=True)
    stamped.assign(500, 9)
    batch = RecordBatch(buffer)
    assert batch.is_valid()
    assert (batch.crc, batch.attributes) == (stamped.crc, stamped.attributes)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.compression_type is CompressionType.SNAPPY
    assert [(r.offset, r.timestamp) for r in batch.records()] == [
        (500, 123456),
        (501, 123456),
        (502, 123456),
    ]


def test_assign_and_set_max_timestamp_change_only_their_batch(filled: Filled) -> None:
    one = bytes(filled(3).seal())
    buffer = bytearray(one + b"behind")
    batch = RecordBatch(buffer)
    batch.assign(1, 1)
    batch.set_max_timestamp(5)
    assert buffer[len(one) :] == b"behind"
    assert RecordBatch(buffer).is_valid()
    assert RecordBatch(buffer).written_max_timestamp() == 5


LONGS = (-(2**63), -(2**63) + 1, -(2**63) + 2, -1, 0, 1, 2**63 - 2, 2**63 - 1)


@pytest.mark.parametrize("base", LONGS)
@pytest.mark.parametrize("delta", LONGS)
def test_timestamps_at_the_limits_of_64_bits(twin: ModuleType, base: int, delta: int) -> None:
    payload = record("00" + encode_varint(delta).hex() + "00 01 01 00")
    batch = twin.RecordBatch(wire(payload, base_timestamp=base))
    if abs(base + delta) < 2**63:
        assert batch.records() == [Record(0, base + delta, None, None, [])]
    else:
        with pytest.raises(CorruptRecordError, match="more than 64 bits"):
            batch.records()
