"""What a task of a data source writer tells the driver."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from kclient.spark.sink.write_report import TaskReport


@dataclass(frozen=True)
class CommitMessage(WriterCommitMessage):
    """A task's report, on its way to the driver.

    Attributes:
        report: The report.
    """

    report: TaskReport


def reports_of(messages: Iterable[object]) -> Sequence[TaskReport]:
    """Return the reports of the tasks that succeeded: Spark has None for the others."""
    return [message.report for message in messages if isinstance(message, CommitMessage)]
