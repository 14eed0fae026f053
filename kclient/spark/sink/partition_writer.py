"""Writes a DataFrame in Arrow batches and counts."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from kclient.common.errors import ConfigError
from kclient.spark.environment.worker_failures import told_of_workers
from kclient.spark.options.delivery_option import AT_LEAST_ONCE
from kclient.spark.sink.arrow_counting import COUNTS, ArrowCounting, report_of
from kclient.spark.sink.column_plan import IF_PRESENT, Column, ColumnWishes
from kclient.spark.sink.delivery_modes import delivery_of
from kclient.spark.sink.write_report import WriteReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_partitions(
    df: "DataFrame",
    conf: Mapping[str, object],
    topic: str | None = None,
    *,
    key: Column = IF_PRESENT,
    value: str = "value",
    headers: Column = IF_PRESENT,
    partition: Column = IF_PRESENT,
    flush_timeout: float | None = None,
    delivery: str = AT_LEAST_ONCE,
) -> WriteReport:
    """Send each row of a DataFrame as a record, and return how many came from which partition.

    **At least once.** Spark runs a task again that failed or was lost, and then all its rows are
    sent again, those included that had arrived. An idempotent producer does not hide that: it
    recognises the repetitions of its own requests, not those of another task. The counts are those
    of the attempts that succeeded.

    Rows travel to the workers as Arrow batches (``DataFrame.mapInArrow``), which needs pandas on
    the driver; ``df.write.format("kclient")`` does not.

    Args:
        df: What to write.
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

    Returns:
        Rows and bytes in all, and rows by number of the Spark partition.

    Raises:
        ConfigError: An option or column is unknown or wrong, or pandas is missing.
        InvalidTypeError: The name of a column or topic is not a str.
        InvalidArgumentError: No topic can have that name.
        WorkerEnvironmentError: The workers lack a package, or an interpreter that fits.
        PythonException: From Spark: a task failed as often as it may. The text holds the
            `WriteFailedError` with the row and the reason.
    """
    wishes = ColumnWishes(topic, key, value, headers, partition)
    promise = delivery_of(delivery, conf, flush_timeout)
    plan = wishes.checked_plan(df.schema.fields)
    _require_pandas()
    counting = ArrowCounting(plan.renamed(), promise)
    with told_of_workers("write_partitions"):
        counted = plan.renaming(df).mapInArrow(counting, COUNTS).collect()
    reports = [report_of(row) for row in counted]
    promise.commit(reports)
    return WriteReport.of(reports)


def _require_pandas() -> None:
    try:
        import_module("pandas")
    except ImportError as error:
        raise ConfigError(
            "write_partitions: the 'pandas' package is missing, and DataFrame.mapInArrow needs it; "
            "pip install kclient[spark], or use df.write.format('kclient'), which works without"
        ) from error
