"""The sink functions: `write_partitions`, `foreach_partition_sink` and `foreach_batch_sink`."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypedDict, Unpack

from kclient.common.errors import ConfigError
from kclient.common.extras import missing_package
from kclient.common.foreign_names import unexpected_keyword
from kclient.spark.common.installed_spark import finds_data_source, supports
from kclient.spark.environment.worker_failures import explain_worker_errors
from kclient.spark.options.sink_options import (
    AT_LEAST_ONCE,
    DEFAULT_PREFIX,
    FOREACH_BATCH_ID,
    check_id,
)
from kclient.spark.sink.column_plan import IF_PRESENT, Column, ColumnPlan, ColumnSelection
from kclient.spark.sink.deliveries import check_sink_id, delivery_for
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.sink_identity import SinkIdentity
from kclient.spark.sink.write_report import TaskReport, WriteReport
from kclient.spark.sink.write_task import (
    COUNTS,
    ForeachPartitionSink,
    WritePartitionTask,
    report_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OTHER_ARGUMENTS = {
    "bootstrap_servers": "use the first argument, {'bootstrap.servers': ...}",
    "key_column": "use key=, the name of a column",
    "options": "use the first argument, options by dotted name",
    "timeout": "use flush_timeout=, in seconds",
    "topics": "use topic=, one name, or a column 'topic' with the topic of each row",
    "topic_name": "use topic=",
    "value_column": "use value=, the name of a column",
}


class SinkArguments(TypedDict, total=False):
    """Keyword arguments of every sink function.

    Attributes:
        key: Column with the key, string or binary. By default the column ``key`` if there is one;
            None sends no key.
        value: Column with the value, string or binary; null is a tombstone. By default ``value``.
        headers: Column with the headers, ``array<struct<key:string,value:binary>>``. By default the
            column ``headers`` if there is one; None sends no headers.
        partition: Column with the partition, int; null chooses by the key. By default the column
            ``partition`` if there is one; None always chooses by the key.
        flush_timeout: Longest wait of a task for its last acknowledgements, seconds. By default
            None: as long as ``delivery.timeout.ms`` allows.
        delivery: Delivery guarantee: ``at-least-once``, which is the default, or ``exactly-once``.
        transactional_id_prefix: Beginning of the transactional ids and groups of exactly-once
            delivery, for ACLs. By default ``kclient-spark``.
    """

    key: Column
    value: str
    headers: Column
    partition: Column
    flush_timeout: float | None
    delivery: str
    transactional_id_prefix: str


class WriteArguments(SinkArguments, total=False):
    """Keyword arguments of a sink that writes a table.

    Attributes:
        write_id: Id of this write for exactly-once delivery, which needs it: a job that is repeated
            with it skips the Spark partitions that are committed.
    """

    write_id: str


class BatchSinkArguments(SinkArguments, total=False):
    """Keyword arguments of a sink that writes micro-batches.

    Attributes:
        sink_id: Id of the sink for exactly-once delivery, which needs it: the same in each run of
            the query, and that of no other sink.
    """

    sink_id: str


def write_partitions(
    df: "DataFrame",
    conf: Mapping[str, object],
    topic: str | None = None,
    **arguments: Unpack[WriteArguments],
) -> WriteReport:
    """Send each row of a DataFrame as a record, and return the counts by Spark partition.

    **At least once.** Spark retries a task that failed or was lost, and the retry sends all its
    rows again, including those that had been written. An idempotent producer does not prevent that:
    it deduplicates retries of its own requests, not those of another task. With
    ``delivery="exactly-once"`` and a `write_id`, each task writes one transaction, and a repeated
    task or job skips what is committed. The counts are those of the successful attempts.

    Rows are passed to the workers as Arrow batches (``DataFrame.mapInArrow``), which needs pandas
    on the driver; ``df.write.format("kclient")`` does not.

    Args:
        df: The DataFrame.
        conf: Options of the producers by dotted name, such as ``bootstrap.servers``.
        topic: Topic of every record; by default the column ``topic`` has it.
        **arguments: Columns, timeout and delivery guarantee: see `SinkArguments`.

    Returns:
        Total rows and bytes, and rows by Spark partition.

    Raises:
        ConfigError: An option or column is unknown or wrong, or pandas is missing.
        InvalidTypeError: The name of a column or topic is not a str.
        InvalidArgumentError: The topic name is not valid.
        WorkerEnvironmentError: The workers lack a package or a suitable interpreter.
        PythonException: From Spark: a task failed and has no attempts left. The message contains
            the `WriteFailedError` with the row and the reason.
    """
    sink = _Sink.of(WriteArguments, "write_partitions", conf, topic, arguments)
    plan = sink.selection.checked_plan(df.schema.fields)
    return WriteReport.of(_write_by_map("write_partitions", df, plan, sink.delivery))


def _write_by_map(
    call: str, df: "DataFrame", plan: ColumnPlan, delivery: Delivery, batch_id: int | None = None
) -> list[TaskReport]:
    _require_pandas(call)
    task = WritePartitionTask(plan.renamed(), delivery, batch_id)
    with explain_worker_errors(call):
        counted = plan.renaming(df).mapInArrow(task, COUNTS).collect()
    reports = [report_of(row) for row in counted]
    delivery.commit(reports)
    return reports


def foreach_partition_sink(
    conf: Mapping[str, object],
    *,
    topic: str | None = None,
    **arguments: Unpack[WriteArguments],
) -> ForeachPartitionSink:
    """Return a function for ``df.foreachPartition`` that sends each row as a record.

    **At least once.** Spark retries a task that failed or was lost, and the retry sends all its
    rows again, including those that had been written. An idempotent producer does not prevent that:
    it deduplicates retries of its own requests, not those of another task. With
    ``delivery="exactly-once"`` and a `write_id`, each task writes one transaction, and a repeated
    task or job skips what is committed.

    Workers keep one producer per process and configuration. When a task returns, each of its
    records is acknowledged. Memory is bounded by ``buffer.memory`` and the batches of rows that
    Spark passes.

    `write_partitions` does the same at a third of the cost.

    Args:
        conf: Options of the producers by dotted name, such as ``bootstrap.servers``.
        topic: Topic of every record; by default the column ``topic`` has it.
        **arguments: Columns, timeout and delivery guarantee: see `SinkArguments`.

    Raises:
        ConfigError: An option is unknown or wrong.
        InvalidTypeError: The name of a column or topic is not a str.
        InvalidArgumentError: The topic name is not valid.

    In the tasks, and so in Spark's PythonException: `WriteFailedError` if a row could not be
    written, with the reason as its cause; `ConfigError` if a column is missing.
    """
    sink = _Sink.of(WriteArguments, "foreach_partition_sink", conf, topic, arguments)
    return ForeachPartitionSink(sink.selection, sink.delivery)


def foreach_batch_sink(
    conf: Mapping[str, object],
    *,
    topic: str | None = None,
    **arguments: Unpack[BatchSinkArguments],
) -> "ForeachBatchSink":
    """Return a function for ``df.writeStream.foreachBatch`` that sends each row as a record.

    It writes as ``format("kclient")`` does, and can be called with other sinks from one function.

    **At least once.** Spark retries a failed task, and after a crash of the driver a micro-batch
    without a commit: with the same ``batch_id`` and the same rows. All of them are then sent again,
    including those that had been written. An idempotent producer does not prevent that. With
    ``delivery="exactly-once"`` and a `sink_id`, each task writes one transaction, and a repeated
    task or micro-batch skips what is committed.

    Args:
        conf: Options of the producers by dotted name, such as ``bootstrap.servers``.
        topic: Topic of every record; by default the column ``topic`` has it.
        **arguments: Columns, timeout and delivery guarantee: see `SinkArguments`.

    Raises:
        ConfigError: An option is unknown or wrong.
        InvalidTypeError: The name of a column or topic is not a str.
        InvalidArgumentError: The topic name is not valid.
    """
    sink = _Sink.of(BatchSinkArguments, "foreach_batch_sink", conf, topic, arguments)
    given = {
        "delivery": arguments.get("delivery"),
        "topic": topic,
        "sinkId": arguments.get("sink_id"),
        "transactionalIdPrefix": arguments.get("transactional_id_prefix"),
    }
    options = {name: value for name, value in given.items() if value is not None}
    flush_timeout = arguments.get("flush_timeout")
    if flush_timeout is not None:
        options["deliveryTimeoutMs"] = str(max(1, round(flush_timeout * 1000)))
    return ForeachBatchSink(ProducerSettings(conf), sink.selection, options, sink.delivery)


class ForeachBatchSink:
    """Writes micro-batches when called with them, on the driver.

    Args:
        settings: Configuration of the producers.
        selection: Columns by the user's arguments.
        options: Further options of the data source.
        delivery: Delivery guarantee, for a Spark without Python data sources.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        selection: ColumnSelection,
        options: Mapping[str, str],
        delivery: Delivery,
    ) -> None:
        self._settings = settings
        self._selection = selection
        self._options = dict(options)
        self._delivery = delivery

    def __repr__(self) -> str:
        return f"ForeachBatchSink({self._selection}, {self._settings!r})"

    def __call__(self, df: "DataFrame", batch_id: int) -> None:
        """Write a micro-batch; when it returns, every record is acknowledged.

        Raises:
            ConfigError: A column is missing or has a type that cannot be sent.
            WorkerEnvironmentError: The workers lack a package or a suitable interpreter.
            PythonException: From Spark: a task failed and has no attempts left.
        """
        plan = self._selection.checked_plan(df.schema.fields)
        if supports("data-source"):
            self._write_by_format(df, plan, batch_id)
        else:
            _write_by_map("foreach_batch_sink", df, plan, self._delivery, batch_id)

    def _write_by_format(self, df: "DataFrame", plan: ColumnPlan, batch_id: int) -> None:
        from kclient.spark.data_source import KclientDataSource  # noqa: PLC0415 (not in Spark 3.5)

        kafka = _kafka_options(self._settings)
        options = {**self._options, **kafka, FOREACH_BATCH_ID: str(batch_id)}
        if not finds_data_source():  # Spark 4.0 refuses to register a source that it has found
            session = df.sparkSession
            session.dataSource.register(KclientDataSource)
        writer = plan.renaming(df).write.format(KclientDataSource.name())
        with explain_worker_errors("foreach_batch_sink"):
            writer.mode("append").options(**options).save()


@dataclass(frozen=True, slots=True)
class _Sink:
    """The validated arguments of a sink function."""

    selection: ColumnSelection
    delivery: Delivery

    @classmethod
    def of(
        cls,
        kind: type[SinkArguments],
        call: str,
        conf: Mapping[str, object],
        topic: str | None,
        arguments: SinkArguments,
    ) -> "_Sink":
        for name in arguments:
            if name not in kind.__annotations__:
                raise unexpected_keyword(call, name, _OTHER_ARGUMENTS)
        selection = ColumnSelection(
            topic=topic,
            key=arguments.get("key", IF_PRESENT),
            value=arguments.get("value", "value"),
            headers=arguments.get("headers", IF_PRESENT),
            partition=arguments.get("partition", IF_PRESENT),
        )
        mode = arguments.get("delivery", AT_LEAST_ONCE)
        identity = _identity(mode, kind, arguments)
        delivery = delivery_for(mode, conf, arguments.get("flush_timeout"), identity)
        return cls(selection, delivery)


def _identity(
    mode: object, kind: type[SinkArguments], arguments: Mapping[str, object]
) -> SinkIdentity:
    is_single_write = kind is WriteArguments
    option = "write_id" if is_single_write else "sink_id"
    sink_id = check_sink_id(mode, option, arguments.get(option), is_required=True)
    prefix = arguments.get("transactional_id_prefix", DEFAULT_PREFIX)
    prefix = check_id("transactional_id_prefix", prefix)
    return SinkIdentity(prefix, sink_id, is_single_write)


def _kafka_options(settings: ProducerSettings) -> dict[str, str]:
    given = {name: value for name, value in settings.config().items() if value is not None}
    return {
        f"kafka.{name}": str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }


def _require_pandas(call: str) -> None:
    try:
        import_module("pandas")
    except ImportError as error:
        raise ConfigError(
            missing_package(f"{call}, by DataFrame.mapInArrow", "pandas", "spark")
            + "; or use df.write.format('kclient'), which works without"
        ) from error
