"""The writers behind ``df.write`` and ``df.writeStream`` with ``format("kclient")``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kclient.common.errors import ConfigError
from kclient.spark.common.worker_tuning import tuned_worker
from kclient.spark.options.sink_options import FOREACH_BATCH_ID, SinkOptions
from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.column_plan import IF_PRESENT, Column, ColumnPlan, ColumnSelection
from kclient.spark.sink.deliveries import check_sink_id, delivery_for
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.sink_identity import SinkIdentity
from kclient.spark.sink.write_report import TaskReport
from kclient.spark.sink.write_task import current_task, write_task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_HEADERS: Final[Mapping[bool | None, Column]] = {None: IF_PRESENT, True: "headers", False: None}


def batch_writer(
    options: Mapping[str, str],
    schema: "StructType",
    overwrite: bool,  # noqa: FBT001 (as Spark's own call)
) -> DataSourceArrowWriter:
    """Validate options and schema and return the writer of a batch; opens no connection.

    Args:
        options: Options of the data source.
        schema: Columns of the DataFrame.
        overwrite: Whether the user chose the mode ``overwrite``.

    Raises:
        ConfigError: An option or a column is wrong, or the mode is ``overwrite``.
    """
    if overwrite:
        raise ConfigError(
            "mode: got 'overwrite', expected 'append'; the records of a topic cannot be replaced"
        )
    return BatchWriter(plan_write(options, schema, is_stream=False))


def stream_writer(
    options: Mapping[str, str],
    schema: "StructType",
    overwrite: bool,  # noqa: FBT001 (as Spark's own call)
) -> "StreamWriter":
    """Validate options and schema and return the writer of a stream; opens no connection.

    Args:
        options: Options of the data source.
        schema: Columns of the DataFrame.
        overwrite: Whether the output mode is ``complete``: as with Spark's connector, each
            micro-batch then sends the whole result again.

    Raises:
        ConfigError: An option or a column is wrong.
    """
    return StreamWriter(plan_write(options, schema, is_stream=True))


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch from Arrow batches; Spark creates it for the driver and copies it to tasks."""

    def __init__(self, plan: "WritePlan") -> None:
        self._columns = plan.columns
        self._delivery = plan.delivery
        self._batch_id = plan.batch_id

    def write(self, iterator: Iterator[Any]) -> "CommitMessage":
        """Write the rows of a Spark partition, and wait until all are acknowledged."""
        task = current_task()
        if self._batch_id is not None:
            task = replace(task, batch_id=self._batch_id)
        chunks = arrow_chunks(iterator, self._columns)
        return CommitMessage(write_task(chunks, self._delivery, task))

    @tuned_worker()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Complete a job whose tasks all succeeded."""
        self._delivery.commit(reports_of(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Complete a job that failed."""
        self._delivery.abort(reports_of(messages))


def _stream_writer_base() -> Any:
    """Return the base class of a writer that gets micro-batches as Arrow batches.

    Spark 4.0 has no such class. But it passes Arrow batches to every writer, of streams too, that
    derives from `DataSourceArrowWriter`. Rows would cost six times as much.
    """
    name = "DataSourceStreamArrowWriter"
    both = (datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter)
    return getattr(datasource, name, None) or type(name, both, {})


_StreamWriterBase: Any = _stream_writer_base()


class StreamWriter(_StreamWriterBase):  # type: ignore[misc]  # the base depends on Spark
    """Writes micro-batches from Arrow batches.

    Spark commits with another copy than those that wrote; only the messages connect them.
    """

    def __init__(self, plan: "WritePlan") -> None:
        self._columns = plan.columns
        self._delivery = plan.delivery

    def write(self, iterator: Iterator[Any]) -> "CommitMessage":
        """Write the rows of a Spark partition, and wait until all are acknowledged."""
        chunks = arrow_chunks(iterator, self._columns)
        return CommitMessage(write_task(chunks, self._delivery, current_task()))

    @tuned_worker()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Complete a micro-batch whose tasks all succeeded."""
        self._delivery.commit(reports_of(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Complete a micro-batch that failed."""
        self._delivery.abort(reports_of(messages))


@dataclass(frozen=True)
class CommitMessage(WriterCommitMessage):
    """A task's report, which Spark passes to the driver.

    Attributes:
        report: The report.
    """

    report: TaskReport


def reports_of(messages: Iterable[object]) -> Sequence[TaskReport]:
    """Return the reports of the tasks that succeeded: Spark has None for the others."""
    return [message.report for message in messages if isinstance(message, CommitMessage)]


class WritePlan(NamedTuple):
    """The validated parameters of a writer.

    Attributes:
        columns: Columns of the records.
        delivery: Delivery guarantee.
        batch_id: Id of the micro-batch if `foreach_batch_sink` writes it.
    """

    columns: ColumnPlan
    delivery: Delivery
    batch_id: int | None


def plan_write(options: Mapping[str, str], schema: "StructType", *, is_stream: bool) -> WritePlan:
    """Validate the options and the schema of a data source.

    Args:
        options: Options of the data source.
        schema: Columns of the DataFrame.
        is_stream: Whether Spark asks for the writer of a stream.

    Raises:
        ConfigError: An option or a column is wrong.
    """
    given = {name: value for name, value in options.items() if not _is_batch_id(name)}
    batch_ids = [int(value) for name, value in options.items() if _is_batch_id(name)]
    settings = SinkOptions.parse(given)
    timeout_ms = settings.delivery_timeout_ms
    delivery = delivery_for(
        settings.delivery,
        settings.producer,
        None if timeout_ms is None else timeout_ms / 1000,
        _identity(settings, is_single_write=not is_stream and not batch_ids),
    )
    selection = ColumnSelection(topic=settings.topic, headers=_HEADERS[settings.include_headers])
    columns = selection.checked_plan(schema.fields)
    return WritePlan(columns, delivery, batch_ids[0] if batch_ids else None)


def _identity(settings: SinkOptions, *, is_single_write: bool) -> SinkIdentity:
    ids = {"sinkId": settings.sink_id, "writeId": settings.write_id}
    option, other = ("writeId", "sinkId") if is_single_write else ("sinkId", "writeId")
    if ids[other] is not None:
        what = "table" if is_single_write else "stream"
        raise ConfigError(f"{other}: got {ids[other]!r} for a {what}, expected {option}")
    sink_id = check_sink_id(settings.delivery, option, ids[option], is_required=is_single_write)
    return SinkIdentity(settings.transactional_id_prefix, sink_id, is_single_write)


def _is_batch_id(name: str) -> bool:
    return name.lower() == FOREACH_BATCH_ID.lower()
