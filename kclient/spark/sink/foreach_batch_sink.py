"""A sink for `DataStreamWriter.foreachBatch`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kclient.spark.data_source import KclientDataSource
from kclient.spark.discovery import is_found
from kclient.spark.environment.worker_failures import told_of_workers
from kclient.spark.options.delivery_option import AT_LEAST_ONCE
from kclient.spark.sink.column_plan import IF_PRESENT, Column, ColumnWishes
from kclient.spark.sink.delivery_modes import delivery_of
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.source_writer import FOREACH_BATCH_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ForeachBatchSink:
    """Writes micro-batches when it is called with them, on the driver."""

    def __init__(
        self, settings: ProducerSettings, wishes: ColumnWishes, options: Mapping[str, str]
    ) -> None:
        """Remember what to do.

        Args:
            settings: Configuration of the producers.
            wishes: Which columns the user named.
            options: Further options of the data source.
        """
        self._settings = settings
        self._wishes = wishes
        self._options = dict(options)

    def __repr__(self) -> str:
        return f"ForeachBatchSink({self._wishes}, {self._settings!r})"

    def __call__(self, df: "DataFrame", batch_id: int) -> None:
        """Write a micro-batch; when it returns, every record is acknowledged.

        Raises:
            ConfigError: A column is missing or has a type that cannot be sent.
            WorkerEnvironmentError: The workers lack a package, or an interpreter that fits.
            PythonException: From Spark: a task failed as often as it may.
        """
        plan = self._wishes.checked_plan(df.schema.fields)
        options = {**self._options, **_kafka(self._settings), FOREACH_BATCH_ID: str(batch_id)}
        if not is_found():  # Spark 4.0 refuses to have one registered that it has found
            df.sparkSession.dataSource.register(KclientDataSource)
        writer = plan.renaming(df).write.format(KclientDataSource.name())
        with told_of_workers("foreach_batch_sink"):
            writer.mode("append").options(**options).save()


def foreach_batch_sink(
    conf: Mapping[str, object],
    *,
    topic: str | None = None,
    key: Column = IF_PRESENT,
    value: str = "value",
    headers: Column = IF_PRESENT,
    partition: Column = IF_PRESENT,
    flush_timeout: float | None = None,
    delivery: str = AT_LEAST_ONCE,
) -> ForeachBatchSink:
    """Return a function for ``df.writeStream.foreachBatch`` that sends each row as a record.

    It writes as ``format("kclient")`` does. A batch of several sinks can call it among others.

    **At least once.** Spark runs a task again that failed, and a micro-batch that was not noted as
    done when the driver ended: with the same ``batch_id`` and the same rows. All of them are then
    sent again, those included that had arrived. An idempotent producer does not hide that.

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
    """
    wishes = ColumnWishes(topic, key, value, headers, partition)
    delivery_of(delivery, conf, flush_timeout)  # what is wrong with them is told here
    options = {"delivery": delivery}
    if topic is not None:
        options["topic"] = topic
    if flush_timeout is not None:
        options["deliveryTimeoutMs"] = str(max(1, round(flush_timeout * 1000)))
    return ForeachBatchSink(ProducerSettings(conf), wishes, options)


def _kafka(settings: ProducerSettings) -> dict[str, str]:
    given = {name: value for name, value in settings.config().items() if value is not None}
    return {
        f"kafka.{name}": str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }
