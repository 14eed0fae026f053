"""Conversion of Arrow batches to calls of a producer."""

from typing import Any

import pyarrow as pa
import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.column_plan import ColumnPlan
from kclient.spark.sink.write_errors import WriteFailedError
from tests.spark.sink.fake_producer import FakeProducer
from tests.support.clients.clients import Clients

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(**columns: "pa.Array[Any]") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def test_columns_are_renamed_for_the_producer() -> None:
    given = batch(id=pa.array([1, 2]), v=pa.array(["a", "b"]), k=pa.array([b"x", None]))
    producer = FakeProducer()

    (chunk,) = arrow_chunks([given], ColumnPlan(topic="t", value="v", key="k"))
    (pending,) = chunk.send(producer.as_producer)

    ((call, arguments),) = producer.sent
    assert (call, arguments["topic"]) == ("send_arrow", "t")
    assert arguments["batch"].to_pydict() == {"key": [b"x", None], "value": ["a", "b"]}
    assert (pending.topic, pending.first_row, pending.last_row) == ("t", 0, 1)


def test_rows_and_bytes_of_sliced_batches_are_counted() -> None:
    whole = batch(
        value=pa.array([b"nine char", None, b"abc"]),
        key=pa.array(["not this", "kk", "ä"]),
        headers=pa.array([[("cut", b"cut")], None, [("h", b"1234"), ("i", None)]], type=HEADERS),
    )
    plan = ColumnPlan(topic="t", key="key", headers="headers")

    (chunk,) = arrow_chunks([whole.slice(1)], plan)

    assert chunk.rows == 2
    assert chunk.size_in_bytes == 3 + 2 + 2 + 1 + 4 + 1


def test_empty_batches_are_skipped_and_rows_numbered_throughout() -> None:
    three = batch(value=pa.array(["a", "b", "c"]))

    chunks = list(arrow_chunks([three, three.slice(3), three], ColumnPlan(topic="t")))

    assert [(chunk.first_row, chunk.rows) for chunk in chunks] == [(0, 3), (3, 3)]


def test_row_without_topic_is_named() -> None:
    good = batch(value=pa.array(["a"] * 3), topic=pa.array(["t"] * 3))
    bad = batch(value=pa.array(["a"] * 3), topic=pa.array(["t", "t", None]))

    with pytest.raises(WriteFailedError, match="column 'topic', row 5: got null") as caught:
        list(arrow_chunks([good, bad], ColumnPlan(topic_column="topic")))

    assert caught.value.first_row == 5


def test_rejected_batch_fails_with_row_and_cause() -> None:
    producer = FakeProducer()
    refusal = InvalidArgumentError("partition: row 1: got 9")

    def refuse() -> None:
        raise refusal

    producer.on_send = refuse
    two = batch(value=pa.array(["a", "b"]))
    *_, last = arrow_chunks([two, two], ColumnPlan(topic="t"))

    with pytest.raises(WriteFailedError) as caught:
        list(last.send(producer.as_producer))

    assert str(caught.value) == "topic 't', row 3: partition: got 9"
    assert caught.value.__cause__ is refusal
    assert (caught.value.first_row, caught.value.last_row) == (3, 3)


@pytest.mark.parametrize(
    ("column", "plan", "text"),
    [
        (
            {"value": pa.array(["a", "x" * 2_000_000])},
            ColumnPlan(topic="t"),
            "topic 't', row 4: got 2000093 bytes with its batch's header, expected at most",
        ),
        (
            {"partition": pa.array([0, 17], pa.int32())},
            ColumnPlan(topic="t", partition="partition"),
            "topic 't', row 4: partition: got 17, expected 0 to 0",
        ),
        (
            {"partition": pa.array([0, -2], pa.int32())},
            ColumnPlan(topic="t", partition="partition"),
            "topic 't', row 4: partition: got -2, expected 0 to",
        ),
        (
            {"topic": pa.array(["t", "no pe"])},
            ColumnPlan(topic_column="topic"),
            "row 4: topic: got 'no pe', expected 1 to 249 of",
        ),
        (
            {
                "headers": pa.array(
                    [None, [{"key": None, "value": b"x"}]],
                    pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
                )
            },
            ColumnPlan(topic="t", headers="headers"),
            "topic 't', row 4: headers: row 4 has a header without a name",
        ),
    ],
)
def test_rejected_row_is_numbered_within_the_spark_partition(
    clients: Clients, column: dict[str, Any], plan: ColumnPlan, text: str
) -> None:
    three = batch(value=pa.array(["a"] * 3), partition=pa.array([0] * 3, pa.int32()))
    three = three.append_column("topic", pa.array(["t"] * 3))
    three = three.append_column("headers", pa.nulls(3, HEADERS))
    bad = batch(**{"value": pa.array(["a", "b"]), **column})

    with pytest.raises(WriteFailedError) as caught:
        [list(chunk.send(clients.producer())) for chunk in arrow_chunks([three, bad], plan)]

    assert str(caught.value).startswith(text)
    assert caught.value.first_row == caught.value.last_row == 4
