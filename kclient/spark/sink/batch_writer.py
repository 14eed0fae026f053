"""The writer behind ``df.write.format("kclient")``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kclient.common.errors import ConfigError
from kclient.spark.settled_objects import settled_objects
from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.commit_message import CommitMessage, reports_of
from kclient.spark.sink.source_writer import WriterPlan, planned
from kclient.spark.sink.task_identity import current_task
from kclient.spark.sink.write_task import write_task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class BatchWriter(DataSourceArrowWriter):
    """Writes Arrow batches; it is made on the driver's side and travels to the workers."""

    def __init__(self, plan: WriterPlan) -> None:
        self._columns = plan.columns
        self._delivery = plan.delivery
        self._batch_id = plan.batch_id

    def write(self, iterator: Iterator[Any]) -> CommitMessage:
        """Write the rows of a Spark partition, and wait until all are acknowledged."""
        task = current_task()
        if self._batch_id is not None:
            task = replace(task, batch_id=self._batch_id)
        chunks = arrow_chunks(iterator, self._columns)
        return CommitMessage(write_task(chunks, self._delivery, task))

    @settled_objects()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Finish a job whose tasks all succeeded."""
        self._delivery.commit(reports_of(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Finish a job that failed."""
        self._delivery.abort(reports_of(messages))


def batch_writer(
    options: Mapping[str, str],
    schema: "StructType",
    overwrite: bool,  # noqa: FBT001 (as Spark's own call)
) -> DataSourceArrowWriter:
    """Return the writer of a batch, or say what is wrong with it; nobody is contacted yet.

    Args:
        options: Options of the data source.
        schema: Columns of what is to be written.
        overwrite: Whether the user asked for the mode ``overwrite``.

    Raises:
        ConfigError: An option or a column is wrong, or the mode is ``overwrite``.
    """
    if overwrite:
        raise ConfigError(
            "mode: got 'overwrite', expected 'append'; what a topic holds cannot be replaced"
        )
    return BatchWriter(planned(options, schema))
