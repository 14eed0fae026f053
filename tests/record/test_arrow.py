"""Conversion of columns to Arrow arrays."""

import pytest

from kclient.common.errors import ConfigError
from kclient.record import (
    Columns,
    RecordBatch,
    RecordBatchBuilder,
    arrow,
    decode_columns,
)

ROWS: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (1000, b"a", b"first", []),
    (-1, None, b"", [("h", b"1"), ("ü", None)]),
    (900, b"", None, []),
    (1200, b"long" * 100, b"v" * 3000, [("", b"")]),
] * 5


def sample() -> Columns:
    builder = RecordBatchBuilder(bytearray(100_000), base_offset=100)
    for row in ROWS:
        builder.append(*row)
    return decode_columns([RecordBatch(builder.seal())])


def test_arrow_batch_equals_records() -> None:
    table = arrow.to_arrow([("flights", 2, sample())])
    table.validate(full=True)
    assert table.schema == arrow.record_schema()
    found = table.to_pylist()
    assert [row["offset"] for row in found] == list(range(100, 120))
    assert {(row["topic"], row["partition"], row["timestamp_type"]) for row in found} == {
        ("flights", 2, 0)
    }
    for row, (timestamp, key, value, headers) in zip(found, ROWS, strict=True):
        millis = None if row["timestamp"] is None else int(row["timestamp"].timestamp() * 1000)
        assert millis == (None if timestamp == -1 else timestamp)
        assert (row["key"], row["value"]) == (key, value)
        assert [(header["key"], header["value"]) for header in row["headers"]] == headers


def test_several_partitions_are_joined_into_one_batch() -> None:
    table = arrow.to_arrow([("a", 0, sample()), ("b", 1, sample())])
    table.validate(full=True)
    assert table.num_rows == 40
    assert table.column("topic").to_pylist() == ["a"] * 20 + ["b"] * 20


def test_no_records_give_empty_arrow_batch() -> None:
    for parts in ([], [("t", 0, decode_columns([]))]):
        table = arrow.to_arrow(parts)
        table.validate(full=True)
        assert table.num_rows == 0
        assert table.schema == arrow.record_schema()


def test_missing_pyarrow_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match="pip install pyarrow"):
        arrow.record_schema()
