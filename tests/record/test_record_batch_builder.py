"""Building batches."""

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import IllegalStateError, InvalidArgumentError, InvalidTypeError
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
)

Filled = Callable[..., RecordBatchBuilder]


def test_bytes_of_a_small_batch(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256), base_offset=7)
    assert builder.append(1000, b"k", b"val", [("h", None)]) == 0
    assert builder.append(998, None, b"", None) == 1
    wire = bytes(builder.seal(9, 2, 5, partition_leader_epoch=4))
    records = bytes.fromhex("1a 00 00 00 02 6b 06 76616c 02 02 68 010c 00 03 02 01 00 00")
    assert wire[61:] == records
    fields = struct.unpack(">qiibIhiqqqhii", wire[:61])
    assert fields[0] == 7
    assert fields[1] == len(wire) - 12
    assert fields[2:4] == (4, 2)
    assert fields[5:] == (0, 1, 1000, 1000, 9, 2, 5, 2)
    assert twin.RecordBatch(wire).is_valid()


def test_builder_counters(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    assert (builder.record_count, builder.size_in_bytes) == (0, RECORD_BATCH_OVERHEAD)
    assert (builder.first_timestamp, builder.max_timestamp, builder.next_offset) == (-1, -1, 0)
    builder.append(20, None, b"v")
    builder.append(10, None, b"v")
    assert (builder.record_count, builder.next_offset) == (2, 2)
    assert (builder.first_timestamp, builder.max_timestamp) == (20, 20)
    assert builder.size_in_bytes == len(builder.seal())


def test_largest_record_is_its_encoded_size(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(10_000))
    assert builder.largest_record == 0
    builder.append(0, b"key", b"v" * 100, [("h", b"x")])
    assert builder.largest_record == builder.size_in_bytes - RECORD_BATCH_OVERHEAD
    first = builder.largest_record
    builder.append(0, None, b"")
    assert builder.append(0, None, bytes(20_000)) == -1  # too large, and not in the batch
    assert builder.largest_record == first
    with pytest.raises(InvalidTypeError):  # which takes the first of the two back
        builder.append_many(0, None, [bytes(500), "text"])
    assert builder.largest_record == first
    before = builder.size_in_bytes
    assert builder.append_many(0, None, [bytes(500)]) == 1
    assert builder.largest_record == builder.size_in_bytes - before


def test_full_buffer_rejects_record_and_is_unchanged(twin: ModuleType) -> None:
    buffer = bytearray(61 + 2 * 9)
    builder = twin.RecordBatchBuilder(buffer)
    for expected in (0, 1, -1, -1):
        assert builder.append(0, None, b"xy") == expected
    assert builder.record_count == 2
    assert len(RecordBatch(builder.seal()).records()) == 2
    assert builder.buffer is buffer


@pytest.mark.parametrize("capacity", [0, 10, 61, 80])
def test_the_first_record_always_fits(twin: ModuleType, capacity: int) -> None:
    builder = twin.RecordBatchBuilder(bytearray(capacity))
    assert builder.append(0, b"k" * 50, b"v" * 500) == 0
    assert builder.append(0, None, b"") == -1
    assert len(builder.buffer) == builder.size_in_bytes
    assert RecordBatch(builder.seal()).records()[0].value == b"v" * 500


def test_builder_stays_within_a_slice_of_a_buffer(twin: ModuleType) -> None:
    whole = bytearray(b"\xaa" * 300)
    builder = twin.RecordBatchBuilder(memoryview(whole)[100:200])
    while builder.append(0, None, b"0123") >= 0:
        pass
    builder.seal()
    assert whole[:100] == b"\xaa" * 100
    assert whole[200:] == b"\xaa" * 100


def test_bytes_like_keys_and_values_are_copied(twin: ModuleType) -> None:
    key = bytearray(b"key")
    builder = twin.RecordBatchBuilder(bytearray(256))
    builder.append(0, key, memoryview(b"value"), [("h", bytearray(b"x"))])
    key[:] = b"KEY"
    record = RecordBatch(builder.seal()).records()[0]
    assert (record.key, record.value, record.headers) == (b"key", b"value", [("h", b"x")])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, "key", b""), "key: got str, expected bytes-like or None"),
        ((0, None, 5), "value: got int, expected bytes-like or None"),
        ((0, None, b"", {"a": b"b"}), "headers: got dict, expected a list"),
        ((0, None, b"", [("a", b"b", b"c")]), "headers\\[0\\]: got"),
        ((0, None, b"", [("a", b""), (b"a", b"b")]), "headers\\[1\\]: got"),
        ((0, None, b"", [("a", "text")]), "headers\\[0\\]: value: got str"),
        ((1.5, None, b""), "timestamp_ms: got float"),
        ((None, None, b""), "timestamp_ms: got NoneType"),
    ],
)
def test_wrong_types_are_reported(twin: ModuleType, arguments: tuple[Any, ...], text: str) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    with pytest.raises(InvalidTypeError, match=text):
        builder.append(*arguments)
    assert builder.record_count == 0


@pytest.mark.parametrize("timestamp", [-2, 2**63, -(2**70)])
def test_timestamps_out_of_builder_range_are_rejected(twin: ModuleType, timestamp: int) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    with pytest.raises(InvalidArgumentError, match="timestamp_ms: got"):
        builder.append(timestamp, None, b"")


def test_header_name_that_utf8_cannot_encode_is_rejected(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        builder.append(0, None, b"", [("\ud800", None)])


def test_timestamps_at_the_limits_of_their_range(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    for timestamp in (2**63 - 1, -1, 0):
        builder.append(timestamp, None, b"")
    records = twin.RecordBatch(builder.seal()).records()
    assert [record.timestamp for record in records] == [2**63 - 1, -1, 0]


def test_timestamp_whose_delta_exceeds_64_bits_does_not_fit(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    assert [builder.append(each, None, b"") for each in (-1, 2**63 - 2, 2**63 - 1)] == [0, 1, -1]
    records = twin.RecordBatch(builder.seal()).records()
    assert [record.timestamp for record in records] == [-1, 2**63 - 2]


def test_record_of_two_gib_is_rejected_before_it_is_copied(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(256))
    untouched = bytes(2**31)  # zero pages, allocated only when they are read
    with pytest.raises(RecordTooLargeError, match="2 GiB"):
        builder.append(0, None, untouched)
    assert builder.record_count == 0


def test_read_only_buffer_is_rejected(twin: ModuleType) -> None:
    with pytest.raises(InvalidArgumentError, match="buffer: got read-only memory"):
        twin.RecordBatchBuilder(b"x" * 100)


def test_negative_base_offset_is_rejected(twin: ModuleType) -> None:
    with pytest.raises(InvalidArgumentError, match="base_offset: got -1"):
        twin.RecordBatchBuilder(bytearray(100), base_offset=-1)


# ---- sealing


@pytest.mark.parametrize("compression", CompressionType)
def test_restamp_changes_only_the_producer_state(
    twin: ModuleType, compression: CompressionType
) -> None:
    builder = twin.RecordBatchBuilder(bytearray(4096))
    for index in range(50):
        builder.append(index, None, b"value %d" % index)
    before = bytes(builder.seal(1, 0, 10, transactional=True, compression=compression))
    after = builder.restamp(2, 1, 0)
    batch = RecordBatch(after)
    assert batch.is_valid()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2, 1, 0)
    assert (batch.is_transactional, batch.compression_type) == (True, compression)
    assert bytes(after[61:]) == before[61:]
    assert builder.size_in_bytes == len(before)


def test_sealed_batch_accepts_no_records(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(4096))
    builder.append(0, None, b"a")
    assert not builder.is_sealed
    builder.seal()
    assert builder.is_sealed
    assert builder.append(0, None, b"b") == -1
    assert builder.append_many(0, None, [b"b"]) == 0
    with pytest.raises(IllegalStateError, match="restamp"):
        builder.seal()


def test_seal_and_restamp_require_their_state(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(4096))
    with pytest.raises(IllegalStateError, match="no records"):
        builder.seal()
    with pytest.raises(IllegalStateError, match="not sealed"):
        builder.restamp(1, 1, 1)


def test_attributes(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(4096))
    builder.append(5, b"k", b"v")
    wire = builder.seal(
        transactional=True,
        control=True,
        compression=CompressionType.ZSTD,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    batch = twin.RecordBatch(wire)
    assert batch.attributes == 0b111100
    assert batch.is_control
    assert batch.is_transactional
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.compression_type is CompressionType.ZSTD
    assert batch.delete_horizon_ms is None


# ---- many at once


def test_append_many_stops_when_full_and_continues_in_another_batch(twin: ModuleType) -> None:
    values = [b"%04d" % index for index in range(100)]
    keys = [b"k%d" % index if index % 3 else None for index in range(100)]
    times = list(range(5000, 5100))
    start = 0
    seen = []
    while start < 100:
        builder = twin.RecordBatchBuilder(bytearray(300))
        appended = builder.append_many(times, keys, values, start)
        assert appended > 0
        start += appended
        seen += twin.RecordBatch(builder.seal()).records()
    assert [record.value for record in seen] == values
    assert [record.key for record in seen] == keys
    assert [record.timestamp for record in seen] == times


def test_append_many_with_one_timestamp_and_headers(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(300))
    assert builder.append_many(77, None, (b"a", None), headers=[("h", b"1")]) == 2
    records = twin.RecordBatch(builder.seal()).records()
    assert [record.value for record in records] == [b"a", None]
    assert {record.timestamp for record in records} == {77}
    assert all(record.headers == [("h", b"1")] for record in records)


def test_append_many_is_all_or_nothing_on_an_error(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(300))
    builder.append(5, None, b"before")
    size = builder.size_in_bytes
    with pytest.raises(InvalidTypeError, match="value: got str"):
        builder.append_many(9, None, [b"a", "b"])
    assert (builder.record_count, builder.size_in_bytes) == (1, size)
    assert (builder.max_timestamp, builder.next_offset) == (5, 1)
    assert [r.value for r in twin.RecordBatch(builder.seal()).records()] == [b"before"]


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((0, None, "ab"), InvalidTypeError, "values: got str"),
        ((0, [b"a"], [b"a", b"b"]), InvalidArgumentError, "keys: got 1 items, expected 2"),
        (([1, 2, 3], None, [b"a"]), InvalidArgumentError, "timestamps_ms: got 3 items"),
        ((None, None, [b"a"]), InvalidTypeError, "timestamps_ms: got NoneType"),
        ((0, None, [b"a"], 2), InvalidArgumentError, "start: got 2, expected 0 to 1"),
        ((0, None, [b"a"], -1), InvalidArgumentError, "start: got -1"),
        (([0, -5], None, [b"a", b"b"]), InvalidArgumentError, "timestamp_ms: got -5"),
    ],
)
def test_append_many_validates_its_rows(
    twin: ModuleType, arguments: tuple[Any, ...], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        twin.RecordBatchBuilder(bytearray(300)).append_many(*arguments)


# ---- offsets with holes


def test_append_with_offset_may_leave_gaps(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(1000), base_offset=100)
    assert builder.append_with_offset(103, 0, None, b"a") == 0
    assert builder.append(0, None, b"b") == 1
    assert builder.append_with_offset(110, 0, None, b"c") == 2
    batch = twin.RecordBatch(builder.seal())
    assert [record.offset for record in batch.records()] == [103, 104, 110]
    assert (batch.last_offset, batch.count) == (110, 3)


@pytest.mark.parametrize("offset", [99, 100, 2**31 + 100, 2**63])
def test_append_with_offset_validates_the_offset(twin: ModuleType, offset: int) -> None:
    builder = twin.RecordBatchBuilder(bytearray(1000), base_offset=100)
    builder.append(0, None, b"a")
    with pytest.raises(InvalidArgumentError, match=f"offset: got {offset}, expected 101"):
        builder.append_with_offset(offset, 0, None, b"b")


def test_last_possible_offset_closes_the_batch(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(1000))
    builder.append_with_offset(2**31 - 1, 0, None, b"a")
    assert builder.append(0, None, b"b") == -1
