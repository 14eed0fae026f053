"""Errors of tasks whose records were not all acknowledged."""

import re
from typing import TYPE_CHECKING

from kclient.common.errors import KafkaError
from kclient.spark.sink.write_report import TaskIdentity

if TYPE_CHECKING:
    from kclient.spark.sink.delivery import PendingRows

_ROW = re.compile(r"\brow (\d+)(: )?")  # the form in the producer's errors


class WriteFailedError(KafkaError):
    """A record of a Spark task could not be written; `__cause__` has the reason.

    Spark retries the task as often as ``spark.task.maxFailures`` allows, and then writes the
    records that had been written before the failure again.

    Attributes:
        topic: Topic of the record, or None if the failure does not concern a single record.
        first_row: First row, counted from 0 in its Spark partition, that may have failed.
        last_row: Last such row.
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

    def in_task(self, task: TaskIdentity) -> "WriteFailedError":
        """Return a copy whose message starts with the task."""
        return WriteFailedError(
            f"{task}, {self}",
            topic=self.topic,
            first_row=self.first_row,
            last_row=self.last_row,
        )


class NonDeterministicReplayError(KafkaError):
    """A repeated task has other rows than those that an earlier attempt has committed.

    With ``delivery=exactly-once`` the rows of a committed transaction are not written again. The
    query must return the same rows in the same Spark partition each time. Tasks of other partitions
    may have committed already.
    """


def not_acknowledged(rows: "PendingRows", cause: KafkaError) -> WriteFailedError:
    """Return the error for rows of which a record failed after it was queued."""
    first, last = rows.first_row, rows.last_row
    topic = "" if rows.topic is None else f"topic {rows.topic!r}, "
    where = f"row {first}" if first == last else f"one of the rows {first} to {last}"
    return WriteFailedError(
        f"{topic}{where}: {cause}",
        topic=rows.topic,
        first_row=first,
        last_row=last,
    )


def not_queued(
    topic: str | None, first_row: int, last_row: int, cause: KafkaError
) -> WriteFailedError:
    """Return the error for a row that could not be queued, or for the rows that contain it.

    A row number in the message of `cause` counts from `first_row`; it is converted to the row of
    the Spark partition.
    """
    message = str(cause)
    named = _ROW.search(message)
    if named is not None and first_row < last_row:
        first_row = last_row = first_row + int(named[1])
        message = _ROW.sub("" if named[2] else f"row {first_row}", message, count=1)
    where = "" if topic is None else f"topic {topic!r}, "
    where += (
        f"row {first_row}" if first_row == last_row else f"batch of rows {first_row} to {last_row}"
    )
    return WriteFailedError(
        f"{where}: {message}", topic=topic, first_row=first_row, last_row=last_row
    )


def missing_topic(column: str, row: int) -> WriteFailedError:
    """Return the error for a row without a topic."""
    return WriteFailedError(
        f"column {column!r}, row {row}: got null, expected a topic; the option 'topic' sets one "
        "for all rows",
        first_row=row,
        last_row=row,
    )
