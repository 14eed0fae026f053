"""What was written, in numbers."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Which task of which job writes.

    Attributes:
        partition: Number of the Spark partition.
        attempt: Number of the attempt at it, from 0.
        batch_id: Number of the micro-batch; None outside of a streaming query.
        query_id: Id of the streaming query, which outlives restarts; None outside of one.
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
    """What one task wrote, every record of it acknowledged.

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
    """What a job wrote, every record of it acknowledged.

    The counts are those of the attempts that succeeded. Records of failed attempts come on top of
    them in the topic: see the note on retries in the documentation of the sinks.

    Attributes:
        rows: Number of records.
        bytes: Bytes of their keys, values and headers, before compression.
        partitions: Number of records by number of the Spark partition that they came from, those
            without rows included.
    """

    rows: int
    bytes: int
    partitions: dict[int, int]

    @classmethod
    def of(cls, reports: Iterable[TaskReport]) -> "WriteReport":
        """Sum up the reports of a job's tasks."""
        found = sorted(reports, key=lambda report: report.task.partition)
        return cls(
            rows=sum(report.rows for report in found),
            bytes=sum(report.bytes for report in found),
            partitions={report.task.partition: report.rows for report in found},
        )
