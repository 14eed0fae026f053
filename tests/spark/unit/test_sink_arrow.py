"""From Spark's Arrow batches to what a producer is given."""

from typing import Any

import pyarrow as pa
import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.column_plan import ColumnPlan
from kclient.spark.sink.write_failed_error import WriteFailedError
from tests.spark.unit.fake_producer import FakeProducer

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(**columns: "pa.Array[Any]") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def test_a_batch_goes_as_it_is_under_the_names_that_the_producer_knows() -> None:
    given = batch(id=pa.array([1, 2]), v=pa.array(["a", "b"]), k=pa.array([b"x", None]))
    producer = FakeProducer()

    (chunk,) = arrow_chunks([given], ColumnPlan(topic="t", value="v", key="k"))
    (pending,) = chunk.send(producer)

    ((call, arguments),) = producer.sent
    assert (call, arguments["topic"]) == ("send_arrow", "t")
    assert arguments["batch"].to_pydict() == {"key": [b"x", None], "value": ["a", "b"]}
    assert (pending.topic, pending.first_row, pending.last_row) == ("t", 0, 1)


def test_rows_and_bytes_are_counted_whatever_was_cut_off() -> None:
    whole = batch(
        value=pa.array([b"nine char", None, b"abc"]),
        key=pa.array(["not this", "kk", "ä"]),
        headers=pa.array([[("cut", b"cut")], None, [("h", b"1234"), ("i", None)]], type=HEADERS),
    )
    plan = ColumnPlan(topic="t", key="key", headers="headers")

    (chunk,) = arrow_chunks([whole.slice(1)], plan)

    assert chunk.rows == 2
    assert chunk.bytes == 3 + 2 + 2 + 1 + 4 + 1


def test_batches_without_rows_are_passed_over_and_rows_are_numbered_through() -> None:
    three = batch(value=pa.array(["a", "b", "c"]))

    chunks = list(arrow_chunks([three, three.slice(3), three], ColumnPlan(topic="t")))

    assert [(chunk.first_row, chunk.rows) for chunk in chunks] == [(0, 3), (3, 3)]


def test_a_row_without_topic_is_named() -> None:
    good = batch(value=pa.array(["a"] * 3), topic=pa.array(["t"] * 3))
    bad = batch(value=pa.array(["a"] * 3), topic=pa.array(["t", "t", None]))

    with pytest.raises(WriteFailedError, match="column 'topic', row 5: got null") as caught:
        list(arrow_chunks([good, bad], ColumnPlan(topic_column="topic")))

    assert caught.value.first_row == 5


def test_a_batch_that_the_producer_refuses_is_named_with_the_cause() -> None:
    producer = FakeProducer()
    refusal = InvalidArgumentError("partition: row 1: got 9")

    def refuse() -> None:
        raise refusal

    producer.on_send = refuse
    two = batch(value=pa.array(["a", "b"]))
    *_, last = arrow_chunks([two, two], ColumnPlan(topic="t"))

    with pytest.raises(WriteFailedError) as caught:
        list(last.send(producer))

    assert str(caught.value) == "topic 't', batch of rows 2 to 3: partition: row 1: got 9"
    assert caught.value.__cause__ is refusal
