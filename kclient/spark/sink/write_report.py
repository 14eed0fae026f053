"""Reports of tasks and jobs: the counts of what was written."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Identity of a Spark task.

    Attributes:
        partition: Number of the Spark partition.
        attempt: Number of the attempt at it, from 0.
        batch_id: Id of the micro-batch; None outside of a streaming query.
        query_id: Id of the streaming query, which is stable across restarts; None outside of one.
    """

    partition: int
    attempt: int = 0
    batch_id: int | None = None
    query_id: str | None = None

    def __str__(self) -> str:
        batch = "" if self.batch_id is None else f"batch {self.batch_id}, "
        return f"{batch}Spark partition {self.partition}, attempt {self.attempt}"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Counts of one task, whose records are all acknowledged.

    Attributes:
        task: The task.
        rows: Number of records.
        bytes: Bytes of their keys, values and headers, before compression.
    """

    task: TaskIdentity
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WriteReport:
    """Counts of a job, whose records are all acknowledged.

    The counts are those of the successful attempts. With at-least-once delivery, the topic also
    contains the records that failed attempts wrote.

    Attributes:
        rows: Number of records.
        bytes: Bytes of their keys, values and headers, before compression.
        partitions: Number of records by Spark partition, including partitions without rows.
    """

    rows: int
    bytes: int
    partitions: dict[int, int]

    @classmethod
    def of(cls, reports: Iterable[TaskReport]) -> "WriteReport":
        """Sum up the reports of the tasks of a job."""
        found = sorted(reports, key=lambda report: report.task.partition)
        return cls(
            rows=sum(report.rows for report in found),
            bytes=sum(report.bytes for report in found),
            partitions={report.task.partition: report.rows for report in found},
        )
