"""Checksums of chunks: equal for the same rows in any order, and in any form."""

from typing import Any

import pyarrow as pa

from kclient.spark.sink.arrow_chunks import ArrowChunk
from kclient.spark.sink.row_checksum import row_checksum
from kclient.spark.sink.row_chunks import RowChunk

KEYS = [b"k", None, b"k", b""]
VALUES = [b"1", b"2", None, b"4"]


def test_checksum_does_not_depend_on_the_order_of_rows() -> None:
    assert row_checksum([KEYS, VALUES]) == row_checksum([KEYS[::-1], VALUES[::-1]])


def test_checksum_depends_on_each_row() -> None:
    known = {row_checksum([KEYS, VALUES])}
    for keys, values in (
        ([None, b"k", b"k", b""], VALUES),
        (KEYS, [b"4", b"2", None, b"1"]),
        (KEYS, [b"1", b"2", b"", b"4"]),
        ([b"k", None, b"k", None], VALUES),
        (KEYS[:3], VALUES[:3]),
    ):
        found = row_checksum([keys, values])
        assert found not in known
        known.add(found)
    assert row_checksum([[]]) == 0


def chunk(headers: list[tuple[str, bytes | None]] | None, partition: int, topic: str) -> RowChunk:
    return RowChunk(0, [topic], [b"v"], [b"k"], [headers], [partition])


def test_headers_partition_and_topic_are_part_of_the_row() -> None:
    found = {
        chunk(None, 1, "t").checksum(),
        chunk([("h", b"1")], 1, "t").checksum(),
        chunk([("h", b"2")], 1, "t").checksum(),
        chunk(None, 2, "t").checksum(),
        chunk(None, 1, "u").checksum(),
    }
    assert len(found) == 5


def test_chunks_of_arrow_batches_have_the_checksum_of_their_rows() -> None:
    texts = [None if each is None else each.decode() for each in VALUES]
    expected = RowChunk(0, "t", list(VALUES), list(KEYS))
    for values in (pa.array(VALUES, pa.binary()), pa.array(texts, pa.string())):
        batch = pa.RecordBatch.from_arrays([values, pa.array(KEYS, pa.binary())], ["value", "key"])
        arrow = ArrowChunk(0, "t", batch)
        assert arrow.checksum() == expected.checksum()
        assert arrow.first_topic == expected.first_topic == "t"
        halves = [ArrowChunk(0, "t", batch[:2]), ArrowChunk(2, "t", batch[2:])]
        assert sum(half.checksum() for half in halves) == arrow.checksum()


def test_first_topic_is_that_of_the_first_row() -> None:
    columns: list[Any] = [pa.array(["u", "t"]), pa.array([b"1", b"2"])]
    batch = pa.RecordBatch.from_arrays(columns, ["topic", "value"])
    assert ArrowChunk(0, None, batch).first_topic == "u"
    assert RowChunk(0, ["u", "t"], [b"1", b"2"]).first_topic == "u"


def test_columns_of_arrow_batches_may_have_any_type() -> None:
    headers = pa.array(
        [[{"key": "h", "value": b"1"}], None],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    columns: list[Any] = [
        pa.array([b"1", b"2"]),
        headers,
        pa.array([1, None], pa.int32()),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=["value", "headers", "partition"])
    assert ArrowChunk(0, "t", batch).checksum() != ArrowChunk(0, "t", batch[:1]).checksum()
