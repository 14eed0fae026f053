"""Conversion of rows to calls of a producer."""

from typing import Any

import pytest
from pyspark.sql import Row

from kclient.common.errors import ConfigError, InvalidTypeError
from kclient.spark.sink.column_plan import ColumnSelection
from kclient.spark.sink.row_chunks import row_chunks
from kclient.spark.sink.write_errors import WriteFailedError
from tests.spark.sink.fake_producer import FakeProducer
from tests.support.clients.clients import Clients


def sent(rows: list[Any], selection: ColumnSelection) -> FakeProducer:
    producer = FakeProducer()
    for chunk in row_chunks(iter(rows), selection):
        list(chunk.send(producer.as_producer))
    return producer


def test_rows_with_only_key_and_value_use_send_many() -> None:
    rows = [
        Row(key="k1", value=bytearray(b"v1"), other=1),
        Row(key=None, value="ä", other=2),
        Row(key=b"k3", value=None, other=3),
    ]

    producer = sent(rows, ColumnSelection(topic="t"))

    assert producer.sent == [
        (
            "send_many",
            {"topic": "t", "values": [b"v1", "ä".encode(), None], "keys": [b"k1", None, b"k3"]},
        )
    ]


def test_rows_with_topic_headers_or_partition_use_send() -> None:
    rows = [
        Row(value=b"1", topic="a", partition=1, headers=[Row(key="h", value=bytearray(b"x"))]),
        Row(value=b"2", topic="b", partition=None, headers=None),
        Row(value=b"3", topic="a", partition=0, headers=[("h", None), {"key": "i", "value": b"y"}]),
    ]

    calls = [arguments for name, arguments in sent(rows, ColumnSelection()).sent if name == "send"]

    assert [(call["topic"], call["value"], call["partition"]) for call in calls] == [
        ("a", b"1", 1),
        ("b", b"2", None),
        ("a", b"3", 0),
    ]
    assert [call["headers"] for call in calls] == [
        [("h", b"x")],
        None,
        [("h", None), ("i", b"y")],
    ]


@pytest.mark.parametrize(
    ("column", "given", "name"),
    [("headers", [("h", b"x")], "headers"), ("partition", 0, "partition")],
)
def test_headers_or_partition_alone_use_send(column: str, given: object, name: str) -> None:
    ((call, arguments),) = sent(
        [Row(value=b"1", **{column: given})], ColumnSelection(topic="t")
    ).sent

    assert (call, arguments[name]) == ("send", given)


def test_empty_partition_sends_nothing() -> None:
    assert sent([], ColumnSelection(topic="t")).sent == []


def test_chunks_are_bounded_in_rows_and_bytes() -> None:
    small = list(row_chunks(iter([Row(value=b"x")] * 10_000), ColumnSelection(topic="t")))
    large = list(row_chunks(iter([Row(value=bytes(100_000))] * 300), ColumnSelection(topic="t")))

    assert [(chunk.first_row, chunk.rows) for chunk in small] == [
        (0, 4_096),
        (4_096, 4_096),
        (8_192, 1_808),
    ]
    assert max(chunk.size_in_bytes for chunk in large) <= 64 * 100_000
    assert sum(chunk.rows for chunk in large) == 300


def test_bytes_include_keys_values_and_headers() -> None:
    rows = [Row(key="kk", value=b"vvv", headers=[("hä", b"1234"), ("h", None)])]

    (chunk,) = row_chunks(iter(rows), ColumnSelection(topic="t"))

    assert chunk.size_in_bytes == 2 + 3 + 3 + 4 + 1


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (Row(value=7), "column 'value', row 70: got int, expected string or binary; cast"),
        (Row(value="x", key=1.5), "column 'key', row 70: got float, expected string or binary"),
        (Row(value="x", topic=None), "column 'topic', row 70: got null, expected a topic"),
        (Row(value="x", topic=5), "column 'topic', row 70: got int, expected string"),
        (Row(value="x", partition=-1), "column 'partition', row 70: got -1, expected a partition"),
        (Row(value="x", partition="0"), "column 'partition', row 70: got str, expected int"),
        (Row(value="x", headers=[(None, b"")]), "column 'headers', row 70: got tuple, expected"),
        (Row(value="x", headers="h"), "column 'headers', row 70: got str, expected an array"),
    ],
)
def test_unsuitable_value_fails_without_showing_it(bad: Row, text: str) -> None:
    good = {"value": "s", "key": "s", "topic": "t", "partition": 1, "headers": None}
    fields = bad.asDict()
    rows = [Row(**{name: good[name] for name in fields})] * 70 + [bad]
    selection = ColumnSelection(topic=None if "topic" in fields else "t")

    with pytest.raises(WriteFailedError) as caught:
        sent(rows, selection)

    assert text in str(caught.value)
    assert (caught.value.first_row, caught.value.last_row) == (70, 70)


def test_too_large_row_is_named(clients: Clients) -> None:
    rows = [Row(value="small")] * 70 + [Row(value="x" * 2_000_000), Row(value="y")]
    chunks = row_chunks(iter(rows), ColumnSelection(topic="t"))

    with pytest.raises(WriteFailedError, match=r"^topic 't', row 70: record: got 2\d{6} bytes"):
        [list(chunk.send(clients.producer())) for chunk in chunks]


def test_values_other_than_rows_fail() -> None:
    with pytest.raises(InvalidTypeError, match=r"rows: got \(1, 2\) \(tuple\), expected the rows"):
        sent([(1, 2)], ColumnSelection(topic="t"))


def test_missing_column_fails_at_the_first_row() -> None:
    with pytest.raises(
        ConfigError, match="key: got the columns 'value', expected one with the name 'id'"
    ):
        sent([Row(value="x")], ColumnSelection(topic="t", key="id"))
