"""Columnar records."""

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import pytest

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidArgumentError
from kclient.record import (
    BinaryColumn,
    CompressionType,
    TimestampType,
    build_end_txn_batch,
)
from kclient.record.control_records import ControlRecordType, EndTxnMarker

ROWS: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (1000, b"a", b"first", []),
    (-1, None, b"", [("h", b"1"), ("ü", None)]),
    (900, b"", None, []),
    (1200, b"long" * 100, b"v" * 3000, [("", b"")]),
] * 5


@pytest.fixture
def batches(twin: ModuleType) -> Callable[..., list[Any]]:
    def make(compression: CompressionType = CompressionType.NONE) -> list[Any]:
        made = []
        for base in (0, 20, 60):
            builder = twin.RecordBatchBuilder(bytearray(100_000), base_offset=base)
            for row in ROWS:
                builder.append(*row)
            made.append(twin.RecordBatch(builder.seal(compression=compression)))
        return made

    return make


def integers(data: bytearray, kind: Literal["b", "i", "q"]) -> list[int]:
    return list(memoryview(data).cast(kind))


def rows(column: BinaryColumn) -> list[bytes | None]:
    column.check()
    return [column.row(index) for index in range(column.length)]


@pytest.mark.parametrize("compression", CompressionType)
def test_columns_equal_records(
    twin: ModuleType, batches: Callable[..., list[Any]], compression: CompressionType
) -> None:
    source = batches(compression)
    columns = twin.decode_columns(source)
    records = [record for batch in source for record in batch.records()]
    assert columns.length == 60
    assert columns.next_offset == 80
    assert integers(columns.offsets, "q") == [record.offset for record in records]
    assert integers(columns.timestamps, "q") == [record.timestamp for record in records]
    assert integers(columns.timestamp_types, "b") == [0] * 60
    assert rows(columns.keys) == [record.key for record in records]
    assert rows(columns.values) == [record.value for record in records]
    ends = integers(columns.header_offsets, "i")
    names, values = rows(columns.header_keys), rows(columns.header_values)
    for index, record in enumerate(records):
        place = slice(ends[index], ends[index + 1])
        expected = [(name.encode(), value) for name, value in record.headers]
        assert list(zip(names[place], values[place], strict=True)) == expected


def test_columns_in_slices(twin: ModuleType, batches: Callable[..., list[Any]]) -> None:
    source = batches(CompressionType.LZ4)
    position, seen = 7, []
    while True:
        columns = twin.decode_columns(source, position, max_records=9)
        if columns.length == 0:
            break
        seen += integers(columns.offsets, "q")
        position = columns.next_offset
    assert seen == [*range(7, 40), *range(60, 80)]
    assert position == 80


def test_no_batches_give_empty_columns(twin: ModuleType) -> None:
    columns = twin.decode_columns([], 5)
    assert (columns.length, columns.next_offset) == (0, 5)
    assert rows(columns.keys) == []


def test_columns_skip_control_batches(twin: ModuleType) -> None:
    marker = EndTxnMarker(ControlRecordType.COMMIT, 0)
    control = twin.RecordBatch(build_end_txn_batch(marker, 1, 0, 5, base_offset=9))
    columns = twin.decode_columns([control])
    assert (columns.length, columns.next_offset) == (0, 10)


def test_log_append_time_in_columns(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(100))
    builder.append(5, None, b"v")
    batch = twin.RecordBatch(builder.seal(timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert integers(twin.decode_columns([batch]).timestamp_types, "b") == [1]


def test_columns_end_before_corrupt_record(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(500))
    for _ in range(3):
        builder.append(0, None, b"v")
    sealed = bytearray(builder.seal())
    sealed[-7] ^= 0xFF  # the last record's attributes byte is not looked at; its length is
    sealed[-8] ^= 0xFF
    source = [twin.RecordBatch(sealed)]
    columns = twin.decode_columns(source)
    assert (columns.length, columns.next_offset) == (2, 2)
    with pytest.raises(CorruptRecordError, match="record 2"):
        twin.decode_columns(source, 2)


def test_row_beyond_column_data_is_rejected() -> None:
    column = BinaryColumn(1, struct.pack("=ii", 0, 9), b"12345678")
    column.check()
    with pytest.raises(InvalidArgumentError, match="row 0 exceeds the data"):
        column.row(0)
