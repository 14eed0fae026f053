"""Cursor that reads batches in slices."""

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.converters import DataOnly
from kclient.common.errors import CompressionError, InvalidArgumentError, SerializationError
from kclient.common.types import TopicPartition
from kclient.record import (
    CompressionType,
    Header,
    RecordBatchBuilder,
    RecordDeserializationError,
    TimestampType,
    crc32c,
)

Make = Callable[..., Any]


@pytest.fixture
def cursor(twin: ModuleType) -> Make:
    def make(
        count: int = 10,
        start_offset: int = 0,
        compression: CompressionType = CompressionType.NONE,
        damage: int | None = None,
        **options: Any,
    ) -> Any:
        builder = RecordBatchBuilder(bytearray(8192), base_offset=100)
        for index in range(count):
            headers = [("n", b"%d" % index)] if index % 2 else None
            builder.append(1000 + index, b"k%d" % index if index else None, b"v%d" % index, headers)
        sealed = bytearray(builder.seal(compression=compression, partition_leader_epoch=6))
        if damage is not None:
            sealed[damage] ^= 0xFF
            sealed[17:21] = crc32c(sealed[21:]).to_bytes(4)
        batch = twin.RecordBatch(sealed)
        return twin.BatchCursor(batch, "flights", 3, start_offset, **options)

    return make


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


@pytest.mark.parametrize("compression", CompressionType)
def test_cursor_returns_slices(cursor: Make, compression: CompressionType) -> None:
    reader = cursor(compression=compression)
    assert (reader.position, reader.exhausted) == (100, False)
    assert offsets(reader.take(4)) == [100, 101, 102, 103]
    assert (reader.position, reader.exhausted) == (104, False)
    assert reader.take(0) == []
    assert offsets(reader.take(100)) == [104, 105, 106, 107, 108, 109]
    assert (reader.position, reader.exhausted) == (110, True)
    assert reader.take() == []


def test_consumer_record_fields(twin: ModuleType, cursor: Make) -> None:
    records = cursor().take(2)
    assert records[0] == twin.ConsumerRecord(
        topic="flights",
        partition=3,
        offset=100,
        timestamp_ms=1000,
        timestamp_type=TimestampType.CREATE_TIME,
        key=None,
        value=b"v0",
        headers=[],
        leader_epoch=6,
        serialized_key_size=-1,
        serialized_value_size=2,
    )
    assert (records[1].key, records[1].headers) == (b"k1", [("n", b"1")])
    assert records[1].topic_partition == TopicPartition("flights", 3)
    assert records[1].timestamp_type is TimestampType.CREATE_TIME


def test_consumer_record_equality_repr_and_pickling(twin: ModuleType, cursor: Make) -> None:
    first, second = cursor().take(2)
    assert first == cursor().take(1)[0]
    assert first != second
    assert first != "text"
    assert repr(second) == (
        "ConsumerRecord(topic='flights', partition=3, offset=101, timestamp_ms=1001, "
        "timestamp_type=<TimestampType.CREATE_TIME: 0>, key=b'k1', value=b'v1', "
        "headers=[('n', b'1')], leader_epoch=6, serialized_key_size=2, serialized_value_size=2)"
    )
    assert pickle.loads(pickle.dumps(second)) == second  # noqa: S301 (our own bytes)
    assert hash(first) == hash(cursor().take(1)[0]) != hash(second)
    with pytest.raises(AttributeError):
        first.value = b"other"
    bare = twin.ConsumerRecord("t", 0, 5)
    assert (bare.timestamp_ms, bare.key, bare.value, bare.headers) == (-1, None, None, [])
    assert bare.timestamp == bare.timestamp_ms
    assert first.timestamp == 1000
    assert twin.ConsumerRecord[str, dict].__args__ == (str, dict)
    assert twin.ConsumerRecord[str, dict]("t", 0, 5) == bare
    assert bare.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert (bare.leader_epoch, bare.serialized_key_size, bare.serialized_value_size) == (-1, -1, -1)


def test_headers_attribute_is_the_same_list(cursor: Make) -> None:
    record = cursor().take(1)[0]
    record.headers.append(("added", b""))
    assert record.headers == [("added", b"")]


@pytest.mark.parametrize("start", [0, 100, 104, 109, 110, 500])
def test_records_before_start_offset_are_skipped(cursor: Make, start: int) -> None:
    reader = cursor(start_offset=start)
    assert reader.position == max(start, 100)
    assert offsets(reader.take()) == [offset for offset in range(100, 110) if offset >= start]
    assert reader.exhausted
    assert reader.position == max(start, 110)


def test_start_offset_in_a_gap_finds_next_record(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(500))
    for offset in (2, 5, 9):
        builder.append_with_offset(offset, 0, None, b"")
    reader = twin.BatchCursor(twin.RecordBatch(builder.seal()), "t", 0, 3)
    assert offsets(reader.take()) == [5, 9]
    assert reader.position == 10


def test_position_after_batch_with_compacted_last_record(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(500))
    builder.append(0, None, b"")
    builder.append_with_offset(7, 0, None, b"")
    sealed = bytearray(builder.seal())
    del sealed[68:]  # as compaction leaves it: the record gone, its offset still counted
    sealed[57:61] = (1).to_bytes(4)
    sealed[8:12] = (len(sealed) - 12).to_bytes(4)
    reader = twin.BatchCursor(twin.RecordBatch(sealed), "t", 0)
    assert offsets(reader.take()) == [0]
    assert reader.position == 8


# ---- deserializers


def test_deserializer_arguments(cursor: Make) -> None:
    calls: list[tuple[str, list[Header], bytes]] = []

    def text(topic: str, headers: list[Header], data: bytes) -> str:
        calls.append((topic, headers, data))
        return data.decode()

    records = cursor(key_deserializer=text, value_deserializer=text).take(2)
    assert [(record.key, record.value) for record in records] == [(None, "v0"), ("k1", "v1")]
    assert calls == [
        ("flights", [], b"v0"),
        ("flights", [("n", b"1")], b"k1"),
        ("flights", [("n", b"1")], b"v1"),
    ]
    assert calls[1][1] is records[1].headers
    assert (records[1].serialized_key_size, records[1].serialized_value_size) == (2, 2)


def test_data_only_deserializer(cursor: Make) -> None:
    calls: list[bytes] = []

    def text(data: bytes) -> str:
        calls.append(data)
        return data.decode()

    def raw(topic: str, headers: list[Header], data: bytes) -> bytes:
        return data

    records = cursor(key_deserializer=DataOnly(text), value_deserializer=DataOnly(text)).take(2)
    assert [(record.key, record.value) for record in records] == [(None, "v0"), ("k1", "v1")]
    assert calls == [b"v0", b"k1", b"v1"]
    records = cursor(key_deserializer=raw, value_deserializer=DataOnly(text)).take(2)
    assert (records[1].key, records[1].value) == (b"k1", "v1")
    with pytest.raises(RecordDeserializationError, match="the value deserializer failed"):
        cursor(value_deserializer=DataOnly(int)).take()


@pytest.mark.parametrize(
    ("failure", "ending"),
    [
        (ValueError("no JSON"), "ValueError: no JSON; if only this record is damaged, seek to 101"),
        (TypeError("2 arguments"), "TypeError: 2 arguments; TypeError usually is a mistake in the"),
        (NameError("jsn"), "NameError: jsn; NameError usually is a mistake in the deserializer's"),
        (ValueError("x" * 9_999), "x" * 300 + "; if only"),
    ],
)
def test_deserialization_error_message(cursor: Make, failure: Exception, ending: str) -> None:
    def fail(topic: str, headers: list[Header], data: bytes) -> bytes:
        raise failure

    with pytest.raises(RecordDeserializationError) as caught:
        cursor(value_deserializer=fail).take()
    assert ending in str(caught.value)
    assert ("seek to" in str(caught.value)) is isinstance(failure, ValueError)


@pytest.mark.parametrize("origin", ["key", "value"])
def test_cursor_stops_before_record_of_failed_deserializer(cursor: Make, origin: str) -> None:
    def picky(topic: str, headers: list[Header], data: bytes) -> bytes:
        if data.endswith(b"3"):
            raise ValueError("a three")
        return data

    reader = cursor(**{f"{origin}_deserializer": picky})
    assert offsets(reader.take()) == [100, 101, 102]
    with pytest.raises(RecordDeserializationError):
        reader.take()
    assert (reader.position, reader.exhausted) == (103, False)
    with pytest.raises(RecordDeserializationError, match="flights-3, offset 103") as raised:
        reader.take()  # trying again is allowed, and fails again
    error = raised.value
    assert isinstance(error, SerializationError)
    assert isinstance(error.__cause__, ValueError)
    assert (error.origin, error.topic_partition) == (origin, TopicPartition("flights", 3))
    assert (error.offset, error.timestamp_ms) == (103, 1003)
    assert (error.key, error.value, error.headers) == (b"k3", b"v3", [("n", b"3")])
    assert "v3" not in str(error)
    reader.skip()
    assert offsets(reader.take()) == [104, 105, 106, 107, 108, 109]


def test_deserialization_can_be_retried(cursor: Make) -> None:
    failures = [ValueError("once")]

    def flaky(topic: str, headers: list[Header], data: bytes) -> bytes:
        if failures:
            raise failures.pop()
        return data

    reader = cursor(value_deserializer=flaky)
    with pytest.raises(RecordDeserializationError):
        reader.take()
    assert len(reader.take()) == 10


def test_interrupt_loses_no_record(cursor: Make) -> None:
    interrupts: list[BaseException] = [KeyboardInterrupt()]

    def interrupted(topic: str, headers: list[Header], data: bytes) -> bytes:
        if data == b"v5" and interrupts:
            raise interrupts.pop()
        return data

    reader = cursor(value_deserializer=interrupted)
    reader.take(2)
    with pytest.raises(KeyboardInterrupt):
        reader.take()
    assert offsets(reader.take()) == list(range(102, 110))


def test_skip_at_the_end_does_nothing(cursor: Make) -> None:
    reader = cursor()
    reader.take()
    reader.skip()
    assert reader.position == 110


# ---- damage


def test_cursor_stops_before_corrupt_record(cursor: Make) -> None:
    reader = cursor(damage=61 + 9)  # the second record's length
    assert offsets(reader.take()) == [100]
    for read in (reader.take, reader.skip):
        with pytest.raises(CorruptRecordError, match="offset 100: record 1"):
            read()
    assert reader.position == 101


def test_corrupt_payload_raises_on_first_read(cursor: Make) -> None:
    reader = cursor(compression=CompressionType.GZIP, damage=61)
    with pytest.raises(CompressionError, match="offset 100"):
        reader.take()
    assert (reader.position, reader.exhausted) == (100, False)


def test_decompression_limit_is_enforced(cursor: Make) -> None:
    reader = cursor(compression=CompressionType.ZSTD, max_record_bytes=8)
    with pytest.raises(CompressionError, match="expected at most 8; raise"):
        reader.take()


def test_data_after_the_last_record_is_detected(twin: ModuleType, cursor: Make) -> None:
    builder = twin.RecordBatchBuilder(bytearray(500))
    for _ in range(3):
        builder.append(0, None, b"v")
    sealed = bytearray(builder.seal())
    sealed[57:61] = (2).to_bytes(4)
    reader = twin.BatchCursor(twin.RecordBatch(sealed), "t", 0)
    assert len(reader.take()) == 1
    with pytest.raises(CorruptRecordError, match="data follows the last of its 2 records"):
        reader.take()


@pytest.mark.parametrize("arguments", [{"max_records": -1}, {"max_records": -(2**40)}])
def test_negative_max_records_is_rejected(cursor: Make, arguments: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError, match="max_records: got -"):
        cursor().take(**arguments)


def test_negative_start_offset_is_rejected(cursor: Make) -> None:
    with pytest.raises(InvalidArgumentError, match="start_offset: got -1"):
        cursor(start_offset=-1)


@pytest.mark.fault("R3")
def test_records_above_the_last_offset_are_an_error(twin: ModuleType) -> None:
    """A header with more records than offsets is invalid."""
    builder = RecordBatchBuilder(bytearray(8192), base_offset=100)
    for offset in (100, 102):
        builder.append_with_offset(offset, 1000, None, b"v")
    sealed = bytearray(builder.seal())
    sealed += sealed[61 : 61 + (len(sealed) - 61) // 2]  # the first one again
    sealed[8:12] = (len(sealed) - 12).to_bytes(4)
    sealed[57:61] = (3).to_bytes(4)
    sealed[17:21] = crc32c(sealed[21:]).to_bytes(4)
    batch = twin.RecordBatch(sealed)
    for read in (batch.records, batch.summary):
        with pytest.raises(CorruptRecordError, match="record 2: its offset delta 0"):
            read()
    reader = twin.BatchCursor(batch, "flights", 3)
    assert offsets(reader.take(10)) == [100, 102]
    assert (reader.position, reader.exhausted) == (103, False)
    with pytest.raises(CorruptRecordError, match="record 2: its offset delta 0"):
        reader.take(10)
    assert twin.BatchCursor(batch, "flights", 3, 103).exhausted
