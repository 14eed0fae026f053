"""What a sink promises: the seam between what is written and how it is made sure of."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from kclient.common.errors import KafkaError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

if TYPE_CHECKING:
    import pyarrow as pa


class PendingOutcome(Protocol):
    """What becomes of one or more records: `DeliveryFuture` and `BatchDelivery`."""

    def done(self) -> bool:
        """Return whether every outcome is known."""
        ...

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait for every outcome and return the first failure, or None."""
        ...


class RowSender(Protocol):
    """What sends rows: a producer, as far as sinks know it."""

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
    ) -> PendingOutcome:
        """Queue a record."""
        ...

    def send_many(
        self, topic: str, values: list[bytes | None], keys: list[bytes | None] | None = None
    ) -> PendingOutcome:
        """Queue many records of one topic."""
        ...

    def send_arrow(self, topic: str | None, batch: "pa.RecordBatch") -> PendingOutcome:
        """Queue the rows of an Arrow batch; None goes by its column ``topic``."""
        ...


class PendingRows:
    """Neighbouring rows of a Spark partition whose records are on their way.

    Attributes:
        topic: Topic of all, None for one of each.
        first_row: First row, counted from 0 in its Spark partition.
        last_row: Last one; rows of other topics may lie between.
        outcome: What becomes of them.
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
    """Some rows of a Spark partition, small against ``buffer.memory``."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def bytes(self) -> int:
        """Bytes of keys, values and headers."""
        ...

    def send(self, sender: RowSender) -> Iterator[PendingRows]:
        """Queue the rows, waiting where memory is full, and yield what becomes of them.

        Raises:
            WriteFailedError: A row cannot be sent; its text names the row.
        """
        ...


class TaskDelivery(Protocol):
    """One task's writing, from its first row to the acknowledgement of its last."""

    def write(self, chunk: Chunk) -> None:
        """Take rows.

        Raises:
            WriteFailedError: One of them, or one that was taken before, cannot be written.
        """
        ...

    def finish(self) -> TaskReport:
        """Wait until every row is acknowledged, and return what the driver is to know.

        Raises:
            WriteFailedError: A row was not written; it is the first one that is known.
        """
        ...


class Delivery(Protocol):
    """A promise: what holds for a row when the task is over, and when the job is.

    It is made on the driver, travels to the workers with the sink, and must not open anything
    before `begin`. `begin` runs in the worker; `commit` and `abort` run on the driver's side, on
    another copy, so that all they need is in the reports: a delivery that commits there, such as
    one with a transaction for each task, adds to `TaskReport` what names the transaction.
    """

    def begin(self, task: TaskIdentity) -> AbstractContextManager[TaskDelivery]:
        """Begin a task's writing; leaving the block by an error gives it up."""
        ...

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Make final what the tasks wrote; all of them succeeded."""
        ...

    def abort(self, reports: Sequence[TaskReport]) -> None:
        """Undo, as far as it can be, what the tasks wrote that succeeded; others did not."""
        ...
