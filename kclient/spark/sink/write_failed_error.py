"""The error of a task whose records were not all acknowledged."""

from kclient.common.errors import KafkaError
from kclient.spark.sink.write_report import TaskIdentity


class WriteFailedError(KafkaError):
    """A record of a Spark task could not be written; the cause says why.

    Spark runs the task again, as often as ``spark.task.maxFailures`` says. The records that were
    written before the failure are written once more then.

    Attributes:
        topic: Topic of the record, or None where the failure was not one record's.
        first_row: First row, counted from 0 in its Spark partition, that may be meant.
        last_row: Last one.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: str | None = None,
        first_row: int = -1,
        last_row: int = -1,
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.first_row = first_row
        self.last_row = last_row

    def inside(self, task: TaskIdentity) -> "WriteFailedError":
        """Return the same error, its text beginning with the task."""
        return WriteFailedError(
            f"{task}, {self}",
            topic=self.topic,
            first_row=self.first_row,
            last_row=self.last_row,
        )
