"""The tasks of the sinks, and the callables that Spark sends to the workers to run them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from kclient.spark.common.worker_tuning import tuned_worker
from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.column_plan import ColumnPlan, ColumnSelection
from kclient.spark.sink.delivery import Chunk, Delivery
from kclient.spark.sink.row_chunks import row_chunks
from kclient.spark.sink.write_errors import WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"

COUNTS: Final = "partition int, attempt int, rows long, bytes long"
"""Columns that a `WritePartitionTask` returns, in Spark's form."""

_COUNTS_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("attempt", pa.int32()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


def write_task(chunks: Iterable[Chunk], delivery: Delivery, task: TaskIdentity) -> TaskReport:
    """Write the rows of a Spark partition; when it returns, the delivery guarantee holds for all.

    Raises:
        WriteFailedError: A row was not written; the message contains the task and the row. Spark
            retries the task if attempts are left.
        KafkaError: The producer could not be created, or a column is missing.
    """
    try:
        with tuned_worker(), delivery.begin(task) as writing:
            for chunk in chunks:
                writing.write(chunk)
            return writing.finish()
    except WriteFailedError as error:
        raise error.in_task(task) from error.__cause__


def current_task() -> TaskIdentity:
    """Return the running Spark task; outside of one, partition 0."""
    context = TaskContext.get()
    if context is None:
        return TaskIdentity(0)
    batch = context.getLocalProperty(_BATCH_ID)
    return TaskIdentity(
        partition=context.partitionId(),
        attempt=context.attemptNumber(),
        batch_id=int(batch) if batch and batch.isdigit() else None,
        query_id=context.getLocalProperty(_QUERY_ID) or None,
    )


class ForeachPartitionSink:
    """Writes the rows of a partition when called with them; Spark sends it to the workers."""

    def __init__(self, selection: ColumnSelection, delivery: Delivery) -> None:
        self._selection = selection
        self._delivery = delivery

    def __repr__(self) -> str:
        return f"ForeachPartitionSink({self._selection}, {self._delivery!r})"

    def __call__(self, rows: Iterator[Any]) -> None:
        """Write the rows; when it returns, every record is acknowledged.

        Raises:
            KafkaError: A row was not written.
        """
        write_task(row_chunks(iter(rows), self._selection), self._delivery, current_task())


class WritePartitionTask:
    """Writes the Arrow batches of a partition when called with them, and returns the counts.

    Spark sends it to the workers.
    """

    def __init__(self, plan: ColumnPlan, delivery: Delivery, batch_id: int | None = None) -> None:
        self._plan = plan
        self._delivery = delivery
        self._batch_id = batch_id

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and wait until all are acknowledged.

        Raises:
            KafkaError: A row was not written.
        """
        task = current_task()
        if self._batch_id is not None:
            task = replace(task, batch_id=self._batch_id)
        done = write_task(arrow_chunks(batches, self._plan), self._delivery, task)
        counts = (done.task.partition, done.task.attempt, done.rows, done.bytes)
        columns = [
            pa.array([count], field.type)
            for count, field in zip(counts, _COUNTS_SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_COUNTS_SCHEMA)


def report_of(row: tuple[int, int, int, int]) -> TaskReport:
    """Convert a row that a `WritePartitionTask` returned."""
    partition, attempt, rows, size = row
    return TaskReport(TaskIdentity(partition, attempt), rows, size)
