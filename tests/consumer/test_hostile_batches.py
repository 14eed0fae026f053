"""Corrupt and inconsistent batches: the error has partition and offset, and seek skips them."""

import gzip
import struct
import tracemalloc
from collections.abc import Callable

import pytest

from kclient.common.broker_errors import CorruptRecordError, UnsupportedForMessageFormatError
from kclient.common.errors import CompressionError, InvalidReceiveError, KafkaError
from kclient.consumer import Consumer
from kclient.consumer.errors import (
    CorruptBatchError,
    OffsetsOutOfRangeError,
    UndecompressableBatchError,
    UnreadableBatchError,
    UnsupportedBatchError,
)
from kclient.record import RECORD_BATCH_OVERHEAD, crc32c, encode_varint
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets
from tests.support.virtual.virtual_log_broker import (
    ATTRIBUTES_AT,
    COUNT_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
)

_MAGIC_AT = 16
_GZIP = 1
_SNAPPY = 2
_LZ4 = 3
_ZSTD = 4
_UNKNOWN_CODEC = 7
_MIB = 1 << 20
_XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"

Change = Callable[[bytearray], None]


def put(form: str, at: int, value: int) -> Change:
    return lambda batch: struct.pack_into(form, batch, at, value)


def payload(codec: int, data: bytes) -> Change:
    """Compress the records with a codec."""

    def change(batch: bytearray) -> None:
        batch[RECORD_BATCH_OVERHEAD:] = data
        struct.pack_into(">i", batch, LENGTH_AT, len(batch) - 12)
        struct.pack_into(">h", batch, ATTRIBUTES_AT, codec)

    return change


def plant(world: ConsumerWorld, change: Change, *, checksum: bool = True) -> None:
    """Replace the batch at offsets 4 to 6 by a corrupt one."""
    world.fill(4, 3, 2)
    base, end, batch = world.log().batches[1]
    changed = bytearray(batch)
    change(changed)
    if checksum:
        struct.pack_into(">I", changed, CRC_AT, crc32c(bytes(changed[ATTRIBUTES_AT:])))
    world.log().batches[1] = (base, end, bytes(changed))


def check_error_and_seek(
    world: ConsumerWorld, consumer: Consumer, error: type[UnreadableBatchError], at: int = 4
) -> UnreadableBatchError:
    """Records before the batch, then the error until seek, then records after it."""
    assert offsets(world.read(consumer, at)) == list(range(at))
    raised: list[UnreadableBatchError] = []
    for _ in range(3):
        raised.clear()  # the traceback keeps the decompressed data alive
        with pytest.raises(error, match=f"orders-0 at offset {at}: ") as caught:
            world.read(consumer, 1)
        assert (caught.value.topic_partition, caught.value.offset) == (ORDERS_0, at)
        assert isinstance(caught.value.__cause__, KafkaError)  # error of the decoder
        assert consumer.position(ORDERS_0) == at
        raised.append(caught.value)
    consumer.seek(ORDERS_0, 7)
    assert offsets(world.read(consumer, 2)) == [7, 8]
    return raised[-1]


@pytest.mark.fault("R1")
def test_wrong_checksum_error_has_partition_and_offset(world: ConsumerWorld) -> None:
    plant(world, put(">B", RECORD_BATCH_OVERHEAD + 3, 0x55), checksum=False)
    error = check_error_and_seek(world, world.assigned(), CorruptBatchError)
    assert isinstance(error, CorruptRecordError)
    assert error.next_offset == 7
    assert "seek to 7 to continue" in str(error)


@pytest.mark.fault("R1")
def test_error_offset_is_where_reading_stopped(world: ConsumerWorld) -> None:
    """A position inside a batch is not moved to the start of the batch."""
    plant(world, put(">B", RECORD_BATCH_OVERHEAD + 3, 0x55), checksum=False)
    consumer = world.assigned()
    consumer.seek(ORDERS_0, 5)
    with pytest.raises(CorruptBatchError, match="at offset 5: ") as caught:
        world.read(consumer, 1)
    assert (caught.value.offset, caught.value.next_offset) == (5, 7)
    assert consumer.position(ORDERS_0) == 5


@pytest.mark.fault("R1")
def test_data_corrupted_in_transit_is_read_later(world: ConsumerWorld) -> None:
    plant(world, put(">B", RECORD_BATCH_OVERHEAD + 3, 0x55), checksum=False)
    base, end, batch = world.log().batches[1]
    whole = bytearray(batch)
    consumer = world.assigned()
    world.read(consumer, 4)
    with pytest.raises(CorruptBatchError):
        world.read(consumer, 1)
    struct.pack_into(">I", whole, CRC_AT, crc32c(bytes(whole[ATTRIBUTES_AT:])))
    world.log().batches.clear()
    world.log().end_offset = 4
    world.fill(3)
    assert offsets(world.read(consumer, 3)) == [4, 5, 6]
    assert (base, end) == (4, 7)


@pytest.mark.fault("R1")
def test_columns_raise_the_same_errors(world: ConsumerWorld) -> None:
    plant(world, put(">B", RECORD_BATCH_OVERHEAD + 3, 0x55), checksum=False)
    consumer = world.assigned()
    assert consumer.poll_columns(1.0).num_rows == 4
    with pytest.raises(CorruptBatchError, match="orders-0 at offset 4: ") as caught:
        consumer.poll_columns(1.0)
    assert caught.value.next_offset == 7
    assert consumer.position(ORDERS_0) == 4


@pytest.mark.fault("R1")
@pytest.mark.parametrize("way", ["iterating", "polling"])
def test_error_loses_no_record_of_other_partitions(world: ConsumerWorld, way: str) -> None:
    plant(world, put(">B", RECORD_BATCH_OVERHEAD + 3, 0x55), checksum=False)
    world.fill(5, number=1)
    consumer = world.assigned(0, 1)
    taken: list[tuple[int, int]] = []
    errors = 0
    while len(taken) < 9 or not errors:
        try:
            records = [next(consumer)] if way == "iterating" else list(consumer.poll(0.5))
        except CorruptBatchError:
            errors += 1
            assert errors < 20
        else:
            taken += [(record.partition, record.offset) for record in records]
    assert sorted(taken) == [(0, n) for n in range(4)] + [(1, n) for n in range(5)]


_LIES = {
    "a negative length": put(">i", LENGTH_AT, -1),
    "a length less than a header": put(">i", LENGTH_AT, 20),
    "a negative count": put(">i", COUNT_AT, -1),
    "a huge count": put(">i", COUNT_AT, 2**31 - 1),
    "one record too many": put(">i", COUNT_AT, 4),
    "a negative last offset": put(">i", LAST_OFFSET_DELTA_AT, -1),
    "a last offset before its records": put(">i", LAST_OFFSET_DELTA_AT, 1),
    "an unknown magic": put(">b", _MAGIC_AT, 3),
    "a record of negative size": put(">b", RECORD_BATCH_OVERHEAD, 1),
    "a record larger than the batch": put(">b", RECORD_BATCH_OVERHEAD, 126),
}


@pytest.mark.fault("R3")
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("lie", list(_LIES.values()), ids=list(_LIES))
def test_inconsistent_batch_raises_without_large_allocation(
    world: ConsumerWorld, lie: Change, checked: bool
) -> None:
    plant(world, lie)
    tracemalloc.start()
    try:
        check_error_and_seek(world, world.assigned(check_crcs=checked), CorruptBatchError)
        assert tracemalloc.get_traced_memory()[1] < 4 * _MIB
    finally:
        tracemalloc.stop()


@pytest.mark.fault("R3")
def test_trailing_bytes_in_a_batch_raise(world: ConsumerWorld) -> None:
    """Records before the error are returned."""
    plant(world, put(">i", COUNT_AT, 2))
    error = check_error_and_seek(world, world.assigned(), CorruptBatchError, at=5)
    assert error.next_offset == 7


@pytest.mark.fault("R3")
def test_last_offset_beyond_the_log_end_is_detected(
    world: ConsumerWorld,
) -> None:
    """Compaction leaves such batches, so this alone is not an error."""
    plant(world, put(">i", LAST_OFFSET_DELTA_AT, 2**31 - 1))
    consumer = world.assigned(auto_offset_reset="none")
    consumer.seek(ORDERS_0, 0)
    assert offsets(world.read(consumer, 7)) == list(range(7))
    assert consumer.position(ORDERS_0) == 4 + 2**31
    with pytest.raises(OffsetsOutOfRangeError, match=f"orders-0 at {4 + 2**31}"):
        world.read(consumer, 1)


@pytest.mark.fault("R2", "R3")
def test_batch_length_beyond_the_response_is_an_incomplete_batch(world: ConsumerWorld) -> None:
    """It is fetched again; it raises if it is the first batch of the response."""
    plant(world, put(">i", LENGTH_AT, 2**31 - 13))
    consumer = world.assigned()
    assert offsets(world.read(consumer, 4)) == [0, 1, 2, 3]
    with pytest.raises(CorruptBatchError, match="expected at least one whole batch; raise max_"):
        world.read(consumer, 1)
    assert consumer.position(ORDERS_0) == 4


@pytest.mark.fault("R3")
def test_old_message_format_raises(world: ConsumerWorld) -> None:
    plant(world, put(">b", _MAGIC_AT, 1))
    error = check_error_and_seek(world, world.assigned(), UnsupportedBatchError)
    assert isinstance(error, UnsupportedForMessageFormatError)


_STREAMS = {
    "unknown codec": (_UNKNOWN_CODEC, b"whatever"),
    "broken gzip": (_GZIP, gzip.compress(b"x" * 100)[:-9]),
    "no gzip": (_GZIP, b"no gzip at all"),
    "broken snappy": (_SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20)),
    "xerial block beyond the end": (_SNAPPY, _XERIAL + (1 << 30).to_bytes(4) + bytes(20)),
    "xerial block of a size it cannot have": (
        _SNAPPY,
        _XERIAL + (8).to_bytes(4) + b"\xff\xff\xff\xff\x0f\x00\x00\x00",
    ),
    "broken lz4": (_LZ4, b"\x04\x22\x4d\x18" + bytes(30)),
    "zstd that claims 16 EiB": (_ZSTD, b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + bytes(10)),
}


@pytest.mark.fault("R5")
@pytest.mark.parametrize(("codec", "stream"), list(_STREAMS.values()), ids=list(_STREAMS))
def test_decompression_errors_raise_within_memory_bounds(
    world: ConsumerWorld, codec: int, stream: bytes
) -> None:
    plant(world, payload(codec, stream))
    tracemalloc.start()
    try:
        error = check_error_and_seek(world, world.assigned(), UndecompressableBatchError)
        assert tracemalloc.get_traced_memory()[1] < 32 * _MIB
    finally:
        tracemalloc.stop()
    assert isinstance(error, CompressionError)
    assert error.next_offset == 7


@pytest.mark.fault("R5")
def test_record_beyond_the_limit_raises_with_option_name(world: ConsumerWorld) -> None:
    length = encode_varint(2**31 - 1)
    plant(world, payload(_GZIP, gzip.compress(length + bytes(128 * _MIB), 1)))
    consumer = world.assigned(max_decompressed_record_bytes=_MIB)
    tracemalloc.start()
    try:
        error = check_error_and_seek(world, consumer, UndecompressableBatchError)
        assert tracemalloc.get_traced_memory()[1] < 32 * _MIB
    finally:
        tracemalloc.stop()
    assert str(error).endswith(
        f"got a record of {2**31 + 4} bytes, expected at most {_MIB}; "
        "raise max.decompressed.record.bytes to read it"
    )


@pytest.mark.fault("R5")
def test_announced_record_allocates_only_received_data(world: ConsumerWorld) -> None:
    length = encode_varint(2**31 - 6)
    plant(world, payload(_GZIP, gzip.compress(length + bytes(9 * _MIB), 1)))
    consumer = world.assigned()
    tracemalloc.start()
    try:
        check_error_and_seek(world, consumer, CorruptBatchError)
        assert tracemalloc.get_traced_memory()[1] < 48 * _MIB
    finally:
        tracemalloc.stop()


@pytest.mark.fault("R2")
@pytest.mark.parametrize("cut", [1, 12, 17, 60, 61, 62, 90])
def test_hostile_incomplete_batch_at_the_end_is_fetched_again(
    world: ConsumerWorld, cut: int
) -> None:
    world.fill(*[5] * 10)
    size = len(world.log().batches[0][2])
    consumer = world.assigned(max_partition_fetch_bytes=size * 2 + cut)
    assert offsets(world.read(consumer, 50)) == list(range(50))


@pytest.mark.fault("R4")
def test_batch_exceeding_fetch_limits_is_read(world: ConsumerWorld) -> None:
    for size in (5000, 10, 7000):
        world.log().append(bytes(size))
    world.broker.response_limit = 100
    consumer = world.assigned(max_partition_fetch_bytes=100, fetch_max_bytes=100)
    assert [len(record.value) for record in world.read(consumer, 3)] == [5000, 10, 7000]


@pytest.mark.fault("R4")
def test_batch_exceeding_receive_limit_raises_with_option_name(
    world: ConsumerWorld,
) -> None:
    world.fill(2)
    world.log().append(bytes(40_000))
    world.fill(2)
    limits = {"fetch_max_bytes": 1000, "max_partition_fetch_bytes": 200}
    consumer = world.assigned(receive_message_max_bytes=20_000, **limits)
    assert offsets(world.read(consumer, 2)) == [0, 1]
    for _ in range(2):
        with pytest.raises(InvalidReceiveError, match="raise it, or seek past") as caught:
            world.read(consumer, 1)
        assert "receive_message_max_bytes" in str(caught.value)
        assert consumer.position(ORDERS_0) == 2
    consumer.seek(ORDERS_0, 3)
    assert offsets(world.read(consumer, 2)) == [3, 4]
