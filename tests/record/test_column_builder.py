"""Builder of columns."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import InvalidArgumentError
from kclient.record import (
    BatchCursor,
    ColumnBuilder,
    CompressionType,
    RecordBatch,
    TimestampType,
    reference,
)
from kclient.record.record import Header


def test_full_column_accepts_no_records(twin: ModuleType) -> None:
    builder = twin.RecordBatchBuilder(bytearray(5000))
    for _ in range(10):
        builder.append(0, None, b"v" * 100)
    cursor = twin.BatchCursor(twin.RecordBatch(builder.seal()), "t", 0)
    columns = twin.ColumnBuilder(max_bytes=350)
    assert cursor.take_columns(columns) == 3
    assert cursor.take_columns(columns) == 0
    assert (cursor.position, columns.length, columns.next_offset) == (3, 3, 3)
    small = twin.ColumnBuilder(max_bytes=1)
    assert cursor.take_columns(small) == 1  # the first always fits
    assert cursor.take_columns(twin.ColumnBuilder(), 4) == 4


@pytest.mark.parametrize("size", [0, -1, 2**31])
def test_invalid_max_bytes_is_rejected(twin: ModuleType, size: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"max_bytes: got {size}"):
        twin.ColumnBuilder(max_bytes=size)


def test_columns_and_records_can_be_taken_alternately(batch: RecordBatch) -> None:
    cursor = BatchCursor(batch, "t", 0)
    columns = ColumnBuilder()
    assert cursor.take_columns(columns, 1) == 1
    assert [record.offset for record in cursor.take(1)] == [11]
    assert cursor.take_columns(columns) == 1
    assert list(memoryview(columns.finish().offsets).cast("q")) == [10, 12]


def test_finished_columns_hold_nulls_and_headers(twin: ModuleType) -> None:
    rows: list[tuple[bytes | None, bytes | None, list[Header]]] = [
        (None, b"", [("a", b"1"), ("b", None)]),
        (b"key", None, []),
        (b"", b"value", [("c", b"")]),
    ]
    builder = twin.RecordBatchBuilder(bytearray(500), base_offset=7)
    for row in rows:
        builder.append(1000, *row)
    columns = twin.ColumnBuilder()
    twin.BatchCursor(twin.RecordBatch(builder.seal()), "t", 0).take_columns(columns)
    found = columns.finish()
    assert (found.length, found.next_offset) == (3, 10)
    assert [found.keys.row(index) for index in range(3)] == [row[0] for row in rows]
    assert [found.values.row(index) for index in range(3)] == [row[1] for row in rows]
    assert list(memoryview(found.header_offsets).cast("i")) == [0, 2, 2, 3]
    assert [found.header_keys.row(index) for index in range(3)] == [b"a", b"b", b"c"]
    assert [found.header_values.row(index) for index in range(3)] == [b"1", None, b""]
    assert found.header_keys.validity is None  # without nulls there is no bitmap


def test_reference_size_limit_counts_the_largest_column() -> None:
    columns = reference.ColumnBuilder(max_bytes=100)
    kind = TimestampType.CREATE_TIME
    columns.add(0, 1, kind, b"k" * 90, b"v", [("name", b"h" * 95)])
    assert columns.has_capacity(5)
    assert not columns.has_capacity(6)
    assert (columns.length, columns.next_offset) == (1, 1)


rows = st.tuples(
    st.none() | st.binary(max_size=20),
    st.none() | st.integers(0, 3000).map(bytes),
    st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=5)), max_size=2),
)


@given(
    st.lists(st.tuples(st.lists(rows, min_size=1, max_size=40), st.integers(0, 50)), max_size=5),
    st.sampled_from([CompressionType.NONE, CompressionType.GZIP]),
)
def test_one_builder_takes_parts_of_many_batches(
    twins: list[ModuleType], parts: list[Any], compression: CompressionType
) -> None:
    """Memory is reserved for each part; what is taken must not depend on how."""
    found = []
    for twin in twins:
        columns = twin.ColumnBuilder()
        for content, taken in parts:
            builder = twin.RecordBatchBuilder(bytearray(150_000))
            for row in content:
                builder.append(1000, *row)
            cursor = twin.PartitionCursor(bytes(builder.seal(compression=compression)), "t", 0)
            assert cursor.take_columns(columns, taken) == min(taken, len(content))
        found.append(columns.finish())
    assert all(each == found[0] for each in found)
    kept = [row for content, taken in parts for row in content[:taken]]
    assert found[0].length == len(kept)
    assert bytes(found[0].values.data) == b"".join(row[1] or b"" for row in kept)


timed_rows = st.tuples(st.sampled_from([-1, 0, 2**61, 2**62, 3 * 2**61]), rows)


@given(st.lists(timed_rows, min_size=1, max_size=40), st.integers(1, 5000), st.integers(0, 40))
def test_twins_stop_at_the_same_record(
    twins: list[ModuleType], content: list[Any], max_bytes: int, start: int
) -> None:
    """Records whose fields need no decision are taken by another loop than the rest."""
    found = []
    for twin in twins:
        builder = twin.RecordBatchBuilder(bytearray(150_000))
        for timestamp, row in content:
            builder.append(timestamp, *row)
        cursor = twin.PartitionCursor(bytes(builder.seal()), "t", 0, start)
        taken = []
        while cursor.remaining:
            columns = twin.ColumnBuilder(max_bytes=max_bytes)
            cursor.take_columns(columns, 30)
            taken.append(columns.finish())
        found.append((cursor.position, taken))
    assert all(each == found[0] for each in found)
    assert sum(each.length for each in found[0][1]) == max(0, len(content) - start)
