"""A sink for `DataFrame.foreachPartition`."""

from collections.abc import Iterator, Mapping
from typing import Any

from kclient.spark.options.delivery_option import AT_LEAST_ONCE
from kclient.spark.sink.column_plan import IF_PRESENT, Column, ColumnWishes
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.delivery_modes import delivery_of
from kclient.spark.sink.row_chunks import row_chunks
from kclient.spark.sink.task_identity import current_task
from kclient.spark.sink.write_task import write_task


class ForeachPartitionSink:
    """Writes the rows of a partition when it is called with them; can be sent to workers."""

    def __init__(self, wishes: ColumnWishes, delivery: Delivery) -> None:
        self._wishes = wishes
        self._delivery = delivery

    def __repr__(self) -> str:
        return f"ForeachPartitionSink({self._wishes}, {self._delivery!r})"

    def __call__(self, rows: Iterator[Any]) -> None:
        """Write the rows; when it returns, every record is acknowledged.

        Raises:
            KafkaError: A row was not written.
        """
        write_task(row_chunks(iter(rows), self._wishes), self._delivery, current_task())


def foreach_partition_sink(
    conf: Mapping[str, object],
    *,
    topic: str | None = None,
    key: Column = IF_PRESENT,
    value: str = "value",
    headers: Column = IF_PRESENT,
    partition: Column = IF_PRESENT,
    flush_timeout: float | None = None,
    delivery: str = AT_LEAST_ONCE,
) -> ForeachPartitionSink:
    """Return a function for ``df.foreachPartition`` that sends each row as a record.

    **At least once.** Spark runs a task again that failed or was lost, and then all its rows are
    sent again, those included that had arrived. An idempotent producer does not hide that: it
    recognises the repetitions of its own requests, not those of another task.

    Workers keep one producer per process and configuration. Before a task returns, each of its
    records was acknowledged. Memory is bounded by ``buffer.memory`` and the batches of rows that
    Spark hands over.

    `write_partitions` does the same at a third of the cost.

    Args:
        conf: Options of the producers by dotted name, such as ``bootstrap.servers``.
        topic: Topic of every record. Left out, the column ``topic`` names it.
        key: Column with the key, string or binary. The column ``key`` if there is one; None sends
            no key.
        value: Column with the value, string or binary; null is a tombstone.
        headers: Column with the headers, ``array<struct<key:string,value:binary>>``. The column
            ``headers`` if there is one; None sends no headers.
        partition: Column with the partition, int; null leaves the choice to the key. The column
            ``partition`` if there is one; None leaves all to the key.
        flush_timeout: Seconds a task may wait for its last acknowledgements; None for as long as
            ``delivery.timeout.ms`` allows.
        delivery: What is promised: ``at-least-once``.

    Raises:
        ConfigError: An option is unknown or wrong.
        InvalidTypeError: The name of a column or topic is not a str.
        InvalidArgumentError: No topic can have that name.

    In the tasks, and thereby in Spark's PythonException: `WriteFailedError` where a row could not
    be written, with the reason as its cause; `ConfigError` where a column is missing.
    """
    wishes = ColumnWishes(topic, key, value, headers, partition)
    return ForeachPartitionSink(wishes, delivery_of(delivery, conf, flush_timeout))
