"""Interfaces between chunks of rows, producers and delivery guarantees."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from kclient import Producer
from kclient.common.errors import KafkaError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport


class PendingOutcome(Protocol):
    """Outcome of one or more records: `DeliveryFuture` or `BatchDelivery`."""

    def done(self) -> bool:
        """Return whether every outcome is known."""
        ...

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait for every outcome and return the first failure, or None."""
        ...


class PendingRows:
    """Rows of a Spark partition whose records are queued or in flight.

    Attributes:
        topic: Topic of all rows; None if each row has its own.
        first_row: First row, counted from 0 in its Spark partition.
        last_row: Last row.
        outcome: Outcome of their records.
    """

    __slots__ = ("first_row", "last_row", "outcome", "topic")

    def __init__(
        self, topic: str | None, first_row: int, last_row: int, outcome: PendingOutcome
    ) -> None:
        self.topic = topic
        self.first_row = first_row
        self.last_row = last_row
        self.outcome = outcome


class Chunk(Protocol):
    """Rows of a Spark partition, few compared with ``buffer.memory``."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def size_in_bytes(self) -> int:
        """Bytes of keys, values and headers."""
        ...

    @property
    def first_topic(self) -> str:
        """Topic of the first row."""
        ...

    def checksum(self) -> int:
        """Return the checksum of the rows: see `row_checksum`."""
        ...

    def send(self, producer: Producer[bytes, bytes]) -> Iterator[PendingRows]:
        """Queue the rows, blocking while memory is exhausted, and yield their pending outcomes.

        Raises:
            WriteFailedError: A row cannot be sent; the message contains the row.
        """
        ...


class TaskDelivery(Protocol):
    """The writing of one task, from its first row to the acknowledgement of its last."""

    def write(self, chunk: Chunk) -> None:
        """Write rows.

        Raises:
            WriteFailedError: One of these rows, or of earlier ones, cannot be written.
        """
        ...

    def finish(self) -> TaskReport:
        """Wait until every row is acknowledged, and return the report for the driver.

        Raises:
            WriteFailedError: A row was not written; it is the first known failure.
        """
        ...


class Delivery(Protocol):
    """A delivery guarantee: the state of a row after its task, and after its job.

    It is created on the driver, sent to the workers with the sink, and opens no connection before
    `begin`. `begin` runs in the worker; `commit` and `abort` run on the driver, on another copy, so
    they get all they need from the reports.
    """

    def begin(self, task: TaskIdentity) -> AbstractContextManager[TaskDelivery]:
        """Start the writing of a task; an exception in the block aborts it."""
        ...

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Commit the records of the tasks, which all succeeded."""
        ...

    def abort(self, reports: Sequence[TaskReport]) -> None:
        """Abort, as far as possible, the records of the tasks that succeeded; others failed."""
        ...
