"""The writer behind ``df.writeStream.format("kclient")``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import WriterCommitMessage

from kclient.spark.settled_objects import settled_objects
from kclient.spark.sink.arrow_chunks import arrow_chunks
from kclient.spark.sink.commit_message import CommitMessage, reports_of
from kclient.spark.sink.source_writer import WriterPlan, planned
from kclient.spark.sink.task_identity import current_task
from kclient.spark.sink.write_task import write_task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def _arrow_writer_of_streams() -> Any:
    """Return what a writer has to be to get micro-batches as Arrow.

    Spark 4.0 has no name for that. But it asks of every writer, be it of a stream, whether it is a
    batch's that takes Arrow, and then hands Arrow over. Rows cost six times as much, most of it
    before they are here.
    """
    name = "DataSourceStreamArrowWriter"
    both = (datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter)
    return getattr(datasource, name, None) or type(name, both, {})


_Base: Any = _arrow_writer_of_streams()


class StreamWriter(_Base):  # type: ignore[misc]  # the base depends on Spark
    """Writes micro-batches from Arrow batches.

    Spark commits with another copy than those that wrote: only the messages link them.
    """

    def __init__(self, plan: WriterPlan) -> None:
        self._columns = plan.columns
        self._delivery = plan.delivery

    def write(self, iterator: Iterator[Any]) -> CommitMessage:
        """Write the rows of a Spark partition, and wait until all are acknowledged."""
        chunks = arrow_chunks(iterator, self._columns)
        return CommitMessage(write_task(chunks, self._delivery, current_task()))

    @settled_objects()
    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,
    ) -> None:
        """Finish a micro-batch whose tasks all succeeded."""
        self._delivery.commit(reports_of(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,
    ) -> None:
        """Finish a micro-batch that failed."""
        self._delivery.abort(reports_of(messages))


def stream_writer(
    options: Mapping[str, str],
    schema: "StructType",
    overwrite: bool,  # noqa: FBT001 (as Spark's own call)
) -> StreamWriter:
    """Return the writer of a streaming query, or say what is wrong; nobody is contacted yet.

    Args:
        options: Options of the data source.
        schema: Columns of what is to be written.
        overwrite: Whether the output mode is ``complete``: as with Spark's connector, each
            micro-batch then sends the whole result anew.

    Raises:
        ConfigError: An option or a column is wrong.
    """
    return StreamWriter(planned(options, schema))
