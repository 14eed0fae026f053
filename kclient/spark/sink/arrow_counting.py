"""The tasks of `write_partitions`: they take Arrow batches and return counts."""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.column_plan import ColumnPlan
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.task_identity import current_task
from kclient.spark.sink.write_report import TaskIdentity, TaskReport
from kclient.spark.sink.write_task import write_task

COUNTS: Final = "partition int, attempt int, rows long, bytes long"
"""Columns of what a task returns, for Spark."""

_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("attempt", pa.int32()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


class ArrowCounting:
    """Writes the Arrow batches of a partition when it is called with them, and returns its counts.

    It can be sent to workers.
    """

    def __init__(self, plan: ColumnPlan, delivery: Delivery) -> None:
        self._plan = plan
        self._delivery = delivery

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and wait until all are acknowledged.

        Raises:
            KafkaError: A row was not written.
        """
        done = write_task(arrow_chunks(batches, self._plan), self._delivery, current_task())
        counts = (done.task.partition, done.task.attempt, done.rows, done.bytes)
        columns = [
            pa.array([count], field.type) for count, field in zip(counts, _SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def report_of(row: tuple[int, int, int, int]) -> TaskReport:
    """Return what a task returned, from its row."""
    partition, attempt, rows, size = row
    return TaskReport(TaskIdentity(partition, attempt), rows, size)
