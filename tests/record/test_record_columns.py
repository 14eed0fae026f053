"""Columns as a source of records, in both implementations."""

import struct
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.errors import InvalidArgumentError, InvalidTypeError, KafkaError
from kclient.record import BinaryColumn, HeaderColumn, murmur2, record_size_upper_bound
from tests.support.checks.record_columns import column, header_column, record_columns


def longs(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def ints(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}i", *numbers)


# ---- appending


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", [0, 3, 9])
def test_rows_are_appended_as_records(twin: ModuleType, wide: bool, first: int) -> None:
    values: list[bytes | None] = [b"a", None, b"", b"dddd"] * 5
    keys = list(reversed(values))
    headers: Any = [[("h", b"1"), ("ü", None)], None, [], [("", b"")]] * 5
    columns = record_columns(twin)(
        longs(*range(100, 120)),
        column(keys, first=first),
        column(values, wide=wide, first=first),
        header_column(headers, wide=wide, first=first),
    )
    builder = twin.RecordBatchBuilder(bytearray(1000))
    assert columns.check(1000) == -1
    assert builder.append_columns(columns, None, 2) == 18
    records = twin.RecordBatch(builder.seal()).records()
    assert [record.value for record in records] == values[2:]
    assert [record.key for record in records] == keys[2:]
    assert [record.timestamp for record in records] == list(range(102, 120))
    assert [record.headers for record in records] == [each or [] for each in headers[2:]]


def test_chosen_rows_are_appended_until_full(twin: ModuleType) -> None:
    columns = record_columns(twin)(5, None, column([bytes([65 + each] * 50) for each in range(9)]))
    builder = twin.RecordBatchBuilder(bytearray(250))
    assert builder.append_columns(columns, longs(8, 0, 0, 3, 1, 2), 1) == 3
    assert builder.append_columns(columns, longs(8, 0, 0, 3, 1, 2), 4) == 0
    records = twin.RecordBatch(builder.seal()).records()
    assert [record.value[:1] for record in records] == [b"A", b"A", b"D"]
    assert {record.timestamp for record in records} == {5}
    assert builder.append_columns(columns) == 0  # sealed


@pytest.mark.parametrize(
    ("times", "keys", "values", "headers", "text"),
    [
        (0, None, BinaryColumn(2, bytes(8), b""), None, "too short"),
        (0, None, BinaryColumn(-1, bytes(8), b""), None, "too short"),
        (0, None, BinaryColumn(9, bytes(40), b"", validity=b"\xff"), None, "too short"),
        (0, None, BinaryColumn(2**62, bytes(8), b"", first=2**62), None, "too short"),
        (0, None, BinaryColumn(0, b"", b""), None, "too short"),
        (0, column([b"a"]), column([b"a", b"b"]), None, "keys: got 1 rows, expected 2"),
        (0, None, column([b"a"]), header_column([]), "headers: got 0 rows, expected 1"),
        (longs(1), None, column([b"a", b"b"]), None, "timestamps_ms: got 1 rows"),
        (-2, None, column([b"a"]), None, "timestamp_ms: got -2"),
        (
            0,
            None,
            column([b"a"]),
            HeaderColumn(1, ints(0, 0), column([b"k"]), column([])),
            "differ in number",
        ),
    ],
)
def test_columns_must_have_equal_lengths(
    twin: ModuleType, times: Any, keys: Any, values: Any, headers: Any, text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        record_columns(twin)(times, keys, values, headers)


PAIR = (column([b"k"]), column([b"v"]))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ((0, None, BinaryColumn(1, ints(0, 5), b"1234")), "value: row 70 exceeds the data"),
        ((0, None, BinaryColumn(1, ints(3, 2), b"1234")), "value: row 70 exceeds the data"),
        ((0, None, BinaryColumn(1, ints(-1, 2), b"1234")), "value: row 70 exceeds the data"),
        ((0, BinaryColumn(1, ints(0, 1), b""), column([b"a"])), "key: row 70 exceeds the data"),
        ((longs(-2), None, column([b"a"])), "timestamp_ms: got -2"),
        (
            (0, None, column([b"a"]), HeaderColumn(1, ints(0, 2), *PAIR)),
            "headers: row 70 exceeds the data",
        ),
        (
            (0, None, column([b"a"]), HeaderColumn(1, ints(0, 1), column([None]), PAIR[1])),
            "headers: row 70 has a header without a name",
        ),
        (
            (0, None, column([b"a"]), HeaderColumn(1, ints(0, 1), column([b"\xff"]), PAIR[1])),
            "headers: row 70 has a header whose name is not UTF-8",
        ),
        (
            (
                0,
                None,
                column([b"a"]),
                HeaderColumn(
                    1, ints(0, 2), BinaryColumn(2, ints(0, 1, 9), b"\xff"), column([b"", b""])
                ),
            ),
            "headers: row 70 has a header whose name is not UTF-8",  # the first fault is outcome
        ),
        (
            (
                0,
                None,
                column([b"a"]),
                HeaderColumn(1, ints(0, 1), PAIR[0], BinaryColumn(1, ints(0, 9), b"")),
            ),
            "headers: row 70 exceeds the data",
        ),
    ],
)
def test_invalid_row_is_reported_and_none_appended(
    twin: ModuleType, columns: tuple[Any, ...], text: str
) -> None:
    made = record_columns(twin)(*columns)
    with pytest.raises(InvalidArgumentError, match=text):
        made.check(1000, 70)
    if "UTF-8" in text:
        return  # names are looked at by `check` alone
    builder = twin.RecordBatchBuilder(bytearray(1000))
    with pytest.raises(InvalidArgumentError, match=text.replace("70", "0")):
        builder.append_columns(made)
    assert (builder.record_count, builder.size_in_bytes) == (0, 61)


@pytest.mark.parametrize("rows", [longs(0, 1), longs(-1), longs(2**62)])
def test_rows_must_exist(twin: ModuleType, rows: bytes) -> None:
    columns = record_columns(twin)(0, None, column([b"a"]))
    builder = twin.RecordBatchBuilder(bytearray(1000))
    with pytest.raises(InvalidArgumentError, match=r"row: got .*, expected 0 to 0"):
        builder.append_columns(columns, rows)
    assert builder.record_count == 0
    with pytest.raises(InvalidArgumentError, match="start: got 2, expected 0 to 1"):
        builder.append_columns(columns, None, 2)
    with pytest.raises(InvalidArgumentError, match="row: got 1"):
        columns.size_upper_bound(1)


def test_memory_modified_after_the_check_is_detected(twin: ModuleType) -> None:
    offsets = bytearray(ints(0, 4))
    columns = record_columns(twin)(0, None, BinaryColumn(1, offsets, b"1234"))
    assert columns.check(1000) == -1
    offsets[4] = 5
    with pytest.raises(InvalidArgumentError, match="exceeds the data"):
        twin.RecordBatchBuilder(bytearray(1000)).append_columns(columns)


# ---- sizes


def test_the_first_row_that_is_too_large_is_found(twin: ModuleType) -> None:
    headers: Any = [None, [("name", bytes(300))], None]
    columns = record_columns(twin)(0, column([b"k"] * 3), column([b"a", b"b", None]),
                                   header_column(headers))  # fmt: skip
    size = record_size_upper_bound(b"k", b"b", headers[1])
    assert columns.size_upper_bound(1) == size
    assert columns.check(size) == -1
    assert columns.check(size - 1) == 1
    assert columns.check(0) == 0


# ---- partitions


def test_rows_are_grouped_in_their_order(twin: ModuleType) -> None:
    keys: list[bytes | None] = [b"k%d" % (each % 5) if each % 3 else None for each in range(50)]
    columns = record_columns(twin)(0, column(keys), column([b""] * 50))
    chosen = [each % 4 - 2 for each in range(50)]
    for given_partitions in (None, chosen):
        expected: dict[int, list[int]] = {}
        for row in range(10, 40):
            key, partition = keys[row], -1 if given_partitions is None else given_partitions[row]
            if partition < 0:
                partition = -1 if key is None else (murmur2(key) & 0x7FFFFFFF) % 7
            expected.setdefault(partition, []).append(row)
        memory = None if given_partitions is None else ints(*given_partitions)
        found = columns.rows_by_partition(7, memory, 10, 40, by_key=True)
        assert {part: list(rows.cast("q")) for part, rows in found} == expected
        assert [part for part, _ in found] == sorted(expected)
    assert columns.rows_by_partition(7, None, 3, 3, by_key=True) == []
    ((partition, rows),) = columns.rows_by_partition(7, None, 0, 2, by_key=False)
    assert (partition, list(rows.cast("q"))) == (-1, [0, 1])


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((2, ints(0, 2), 0, 2), InvalidArgumentError, "partition: got 2, expected 0 to 1"),
        ((2, ints(0), 0, 2), InvalidArgumentError, "rows: got 0 to 2, expected 0 to 2"),
        ((2, b"", 0, 2), InvalidArgumentError, "rows: got 0 to 2, expected 0 to 2"),
        ((2, None, 0, 3), InvalidArgumentError, "rows: got 0 to 3"),
        ((2, None, -1, 1), InvalidArgumentError, "rows: got -1 to 1"),
        ((2, None, 2, 1), InvalidArgumentError, "rows: got 2 to 1"),
        ((2, b"abc", 0, 2), TypeError, "memoryview"),
    ],
)
def test_grouping_validates_its_arguments(
    twin: ModuleType, arguments: tuple[Any, ...], kind: type[Exception], text: str
) -> None:
    columns = record_columns(twin)(0, None, column([b"a", b"b"]))
    with pytest.raises(kind, match=text):
        columns.rows_by_partition(*arguments, by_key=True)


def test_key_beyond_its_data_is_rejected(twin: ModuleType) -> None:
    keys = BinaryColumn(1, ints(0, 5), b"1234")
    columns = record_columns(twin)(0, keys, column([b"a"]))
    with pytest.raises(InvalidArgumentError, match="key: row 0 exceeds the data"):
        columns.rows_by_partition(2, None, 0, 1, by_key=True)


def test_columns_require_buffers(twin: ModuleType) -> None:
    with pytest.raises((InvalidTypeError, TypeError)):
        record_columns(twin)(None, None, column([b"a"]))


# ---- the twins by chance

bad_columns = st.builds(
    BinaryColumn,
    st.integers(-1, 6) | st.just(2**63 - 1),
    st.binary(max_size=32) | st.lists(st.integers(-1, 9), max_size=7).map(lambda n: ints(*n)),
    st.binary(max_size=8),
    st.none() | st.binary(max_size=2),
    st.integers(-1, 3) | st.just(2**63 - 1),
    st.booleans(),
)
cells = st.none() | st.binary(max_size=40)
good_columns = st.builds(
    lambda cells, wide, first: column(cells, wide=wide, first=first),
    st.lists(cells, min_size=4, max_size=4),
    st.booleans(),
    st.integers(0, 9),
)
bad_headers = st.builds(
    HeaderColumn,
    st.integers(-1, 4),
    st.lists(st.integers(-1, 5), max_size=6).map(lambda n: ints(*n)),
    bad_columns | good_columns,
    bad_columns | good_columns,
    st.none() | st.binary(max_size=1),
    st.integers(-1, 2),
)
good_headers = st.builds(
    lambda rows, wide, first: header_column(rows, wide=wide, first=first),
    st.lists(
        st.none() | st.lists(st.tuples(st.text(max_size=5), cells), max_size=3),
        min_size=4,
        max_size=4,
    ),
    st.booleans(),
    st.integers(0, 9),
)
some_columns = st.tuples(
    st.integers(-2, 2**63 - 1)
    | st.lists(st.integers(-2, 2**63 - 1), min_size=3, max_size=4).map(lambda n: longs(*n)),
    st.none() | good_columns | bad_columns,
    good_columns | bad_columns,
    st.none() | good_headers | bad_headers,
)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except KafkaError as error:
        return type(error), str(error)


@settings(max_examples=400)
@given(
    some_columns,
    st.integers(60, 400),
    st.none() | st.lists(st.integers(-1, 6), max_size=6).map(lambda n: longs(*n)),
    st.integers(0, 3),
    st.integers(0, 120),
)
def test_column_twins_append_alike(
    twins: list[ModuleType], parts: Any, capacity: int, rows: Any, start: int, limit: int
) -> None:
    stories = []
    for module in twins:
        columns = outcome(partial(record_columns(module), *parts))
        story: list[Any] = [isinstance(columns, tuple) and columns]
        if not story[0]:
            builder = module.RecordBatchBuilder(bytearray(capacity))
            story.append(outcome(partial(columns.check, limit, 7)))
            if not isinstance(story[-1], tuple):
                story.append(outcome(partial(builder.append_columns, columns, rows, start)))
            if builder.record_count:
                story.append(bytes(builder.seal()))
        stories.append(story)
    assert all(story == stories[0] for story in stories)


@settings(max_examples=200)
@given(
    good_columns | bad_columns,
    st.none() | st.lists(st.integers(-2, 9), min_size=4, max_size=4).map(lambda n: ints(*n)),
    st.integers(1, 9),
    st.integers(-1, 5),
    st.integers(-1, 5),
    st.booleans(),
)
def test_column_twins_group_alike(
    twins: list[ModuleType],
    keys: BinaryColumn,
    chosen: Any,
    count: int,
    start: int,
    stop: int,
    by_key: bool,
) -> None:
    stories = []
    for module in twins:

        def group(module: ModuleType = module) -> Any:
            columns = record_columns(module)(0, keys, column([b""] * 4))
            groups = columns.rows_by_partition(count, chosen, start, stop, by_key=by_key)
            return [(partition, bytes(rows)) for partition, rows in groups]

        stories.append(outcome(group))
    assert all(story == stories[0] for story in stories)
