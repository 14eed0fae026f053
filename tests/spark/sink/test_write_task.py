"""Tasks of the sinks, and the callables that run in the workers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql import types as T

from kclient.producer.errors import DeliveryTimeoutError
from kclient.spark.sink.at_least_once import AtLeastOnceTask
from kclient.spark.sink.column_plan import ColumnSelection
from kclient.spark.sink.row_chunks import RowChunk
from kclient.spark.sink.write_errors import WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport
from kclient.spark.sink.write_task import (
    ForeachPartitionSink,
    WritePartitionTask,
    current_task,
    report_of,
    write_task,
)
from tests.spark.sink.fake_producer import FakeProducer

TASK = TaskIdentity(partition=3, attempt=1, batch_id=7)


def chunks(count: int, rows: int = 10) -> Iterator[RowChunk]:
    for number in range(count):
        yield RowChunk(number * rows, "t", [b"value"] * rows)


class _FakeDelivery:
    """A delivery whose tasks write to a fake producer."""

    def __init__(self, producer: FakeProducer) -> None:
        self._producer = producer

    @contextmanager
    def begin(self, task: TaskIdentity) -> Iterator[AtLeastOnceTask]:
        yield AtLeastOnceTask(self._producer.as_producer, task, None)

    def commit(self, reports: Sequence[TaskReport]) -> None:
        raise AssertionError(reports)

    def abort(self, reports: Sequence[TaskReport]) -> None:
        raise AssertionError(reports)


def test_task_error_starts_with_the_task_and_keeps_the_cause() -> None:
    producer = FakeProducer()
    cause = DeliveryTimeoutError("no acknowledgement")
    producer.fails = cause

    with pytest.raises(WriteFailedError) as caught:
        write_task(chunks(2), _FakeDelivery(producer), TASK)

    assert str(caught.value) == (
        "batch 7, Spark partition 3, attempt 1, topic 't', one of the rows 0 to 9: "
        "no acknowledgement"
    )
    assert caught.value.__cause__ is cause
    assert (caught.value.topic, caught.value.first_row, caught.value.last_row) == ("t", 0, 9)


@pytest.mark.parametrize(
    ("properties", "batch_id", "query_id"),
    [
        ({}, None, None),
        ({"streaming_sql_batchId": "12", "sql_streaming_queryId": "q"}, 12, "q"),
        ({"streaming_sql_batchId": "", "sql_streaming_queryId": ""}, None, None),
        ({"streaming_sql_batchId": "x"}, None, None),
    ],
)
def test_task_is_identified_by_its_context(
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, str],
    batch_id: int | None,
    query_id: str | None,
) -> None:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    context = SimpleNamespace(
        getLocalProperty=named.get, partitionId=lambda: 4, attemptNumber=lambda: 2
    )
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    assert current_task() == TaskIdentity(4, 2, batch_id, query_id)


def test_outside_of_a_task_the_partition_is_0() -> None:
    assert current_task() == TaskIdentity(0)


def test_partition_task_returns_its_counts() -> None:
    producer = FakeProducer()
    producer.at_once = True
    plan = ColumnSelection(topic="t").checked_plan([T.StructField("value", T.BinaryType())])
    task = WritePartitionTask(plan, _FakeDelivery(producer))
    batches = [pa.RecordBatch.from_pydict({"value": [b"12", b"345"]}) for _ in range(2)]
    (counts,) = task(batches)
    (row,) = counts.to_pylist()
    assert row == {"partition": 0, "attempt": 0, "rows": 4, "bytes": 10}
    assert report_of(tuple(row.values())) == TaskReport(TaskIdentity(0), rows=4, bytes=10)
    assert [name for name, _ in producer.sent] == ["send_arrow"] * 2


def test_foreach_partition_task_writes_rows() -> None:
    producer = FakeProducer()
    producer.at_once = True
    task = ForeachPartitionSink(ColumnSelection(topic="t"), _FakeDelivery(producer))
    task(iter([Row(value=b"1"), Row(value=b"2")]))
    ((name, arguments),) = producer.sent
    assert (name, arguments["values"]) == ("send_many", [b"1", b"2"])
