"""The body of every sink's task."""

from collections.abc import Iterable

from kclient.spark.sink.delivery import Chunk, Delivery
from kclient.spark.sink.write_report import TaskIdentity, TaskReport


def write_task(chunks: Iterable[Chunk], delivery: Delivery, task: TaskIdentity) -> TaskReport:
    """Write the rows of a Spark partition; when it returns, the delivery's promise holds for all.

    Raises:
        KafkaError: A row was not written. Spark runs the task again, if it may.
    """
    with delivery.begin(task) as writing:
        for chunk in chunks:
            writing.write(chunk)
        return writing.finish()
