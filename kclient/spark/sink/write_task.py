"""The body of every sink's task."""

from collections.abc import Iterable

from kclient.spark.settled_objects import settled_objects
from kclient.spark.sink.delivery import Chunk, Delivery
from kclient.spark.sink.write_failed_error import WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport


def write_task(chunks: Iterable[Chunk], delivery: Delivery, task: TaskIdentity) -> TaskReport:
    """Write the rows of a Spark partition; when it returns, the delivery's promise holds for all.

    Raises:
        WriteFailedError: A row was not written; the text names the task and the row. Spark runs
            the task again, if it may.
        KafkaError: A producer or a column is not to be had.
    """
    try:
        with settled_objects(), delivery.begin(task) as writing:
            for chunk in chunks:
                writing.write(chunk)
            return writing.finish()
    except WriteFailedError as error:
        raise error.inside(task) from error.__cause__
