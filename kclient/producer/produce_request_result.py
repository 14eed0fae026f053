"""The outcome of a batch, shared by the futures of all its records."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock, Condition
from kclient.common.types import RecordMetadata, TopicPartition
from kclient.producer.callback_runner import CallbackRunner


class Appended(NamedTuple):
    """The broker has the batch; times are -1 where the records' own timestamps count."""

    base_offset: int
    log_append_time_ms: int


class Failed(NamedTuple):
    """The batch was given up."""

    error: KafkaError
    record_errors: dict[int, KafkaError]

    def error_of(self, index: int) -> KafkaError:
        """Return why the record at `index` failed."""
        return self.record_errors.get(index, self.error)


class Split(NamedTuple):
    """The batch was too large; its records live on in smaller ones."""

    first_indexes: list[int]
    parts: Sequence["ProduceRequestResult"]

    def locate(self, index: int) -> tuple["ProduceRequestResult", int]:
        """Return the part that holds a record, and the record's index there."""
        position = bisect_right(self.first_indexes, index) - 1
        return self.parts[position], index - self.first_indexes[position]


OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], object]
"""Called with where a record lies, or with why it failed."""


class Reporting(Protocol):
    """A future, as far as its batch knows it."""

    def report(self, on_delivery: OnDelivery, /) -> None:
        """Tell the record's outcome, which is known."""
        ...


class ProduceRequestResult:
    """One latch for a whole batch (Kafka: ProduceRequestResult).

    It outlives the batch and its buffer for as long as somebody holds a future of it.

    Attributes:
        topic_partition: Where the records go.
        clock: Tells those who wait how long they have waited.
        deliveries: Whom to tell of which record, in the records' order. The lock of the batch's
            queue guards it until the batch is drained; then it is the sender's.
        is_over: Whether the outcome is known and everybody who wanted to hear of it has. Whoever
            waits, waits for that: after a flush, every callback has run.
        outcome: What became of the batch, None while nothing is known; it is set once.
    """

    __slots__ = (
        "_callbacks",
        "_latch",
        "_runner",
        "clock",
        "deliveries",
        "is_over",
        "outcome",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        latch: Condition,
        runner: CallbackRunner,
        clock: Clock,
    ) -> None:
        self.topic_partition = topic_partition
        self.clock = clock
        self.deliveries: list[tuple[int, Reporting, OnDelivery]] = []
        self._runner = runner
        self._latch = latch  # guards: all below
        self.is_over = False
        self.outcome: Appended | Failed | Split | None = None
        self._callbacks: list[tuple[int, Callable[[], object]]] | None = None

    def complete(self, base_offset: int, log_append_time_ms: int) -> bool:
        """Mark every record as appended; return False if the outcome was settled before."""
        return self._settle(Appended(base_offset, log_append_time_ms))

    def fail(self, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> bool:
        """Mark every record as failed; return False if the outcome was settled before."""
        return self._settle(Failed(error, record_errors or {}))

    def continue_in(
        self, first_indexes: list[int], parts: Sequence["ProduceRequestResult"]
    ) -> None:
        """Hand the records on to the results of the batches that this one was split into."""
        split = Split(first_indexes, parts)
        deliveries, self.deliveries = self.deliveries, []
        for index, future, on_delivery in deliveries:
            part, inner = split.locate(index)
            part.deliveries.append((inner, future, on_delivery))
        for index, callback in self._publish(split):
            part, inner = split.locate(index)
            part.add_callback(inner, callback)
        self._let_go()

    def _settle(self, outcome: Appended | Failed) -> bool:
        if self.outcome is not None:
            return False
        callbacks = self._publish(outcome)
        try:
            if self.deliveries:
                deliveries, self.deliveries = self.deliveries, []
                self._runner.run_all(
                    partial(future.report, on_delivery) for _, future, on_delivery in deliveries
                )
            if callbacks:
                self._runner.run_all(callback for _, callback in callbacks)
        finally:
            self._let_go()
        return True

    def _publish(
        self, outcome: Appended | Failed | Split
    ) -> list[tuple[int, Callable[[], object]]]:
        with self._latch:
            self.outcome = outcome
            callbacks, self._callbacks = self._callbacks, None
        return callbacks or []

    def _let_go(self) -> None:
        with self._latch:
            self.is_over = True
            self._latch.notify_all()

    def add_callback(self, index: int, callback: Callable[[], object]) -> bool:
        """Call back when the record at `index` has its outcome; False if it has it already."""
        if self.outcome is None:
            self._runner.refuse_forked("add_done_callback()")
        with self._latch:
            outcome = self.outcome
            if outcome is None:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append((index, callback))
                return True
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            return part.add_callback(inner, callback)
        return False

    def remove_callback(self, index: int, callback: Callable[[], object]) -> None:
        """Remove a callback that `add_callback` took, or one equal to it, if it was not called."""
        with self._latch:
            outcome = self.outcome
            if self._callbacks is not None and (index, callback) in self._callbacks:
                self._callbacks.remove((index, callback))
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            part.remove_callback(inner, callback)

    def find(self, index: int) -> tuple[Appended | Failed | None, int]:
        """Return the outcome of a record, or None, and its index in the batch that has it."""
        outcome = self.outcome
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            return part.find(inner)
        return outcome, index

    def settled(self) -> bool:
        """Return whether this batch is over, its records possibly handed on to parts."""
        return self.outcome is not None

    def latest(self, index: int) -> "ProduceRequestResult":
        """Return the result that a record's outcome is to be awaited from, after splits."""
        outcome = self.outcome
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            return part.latest(inner)
        return self

    def parts(self) -> Sequence["ProduceRequestResult"]:
        """Return the results that this one was split into; empty if it was not."""
        outcome = self.outcome
        return outcome.parts if isinstance(outcome, Split) else ()

    def wait(self, timeout: float | None) -> bool:
        """Wait up to `timeout` seconds until this batch is over; return whether it is.

        A delivery callback is content with the outcome; the callbacks after it wait for it.

        Raises:
            IllegalStateError: The caller is a delivery callback, which would wait for itself.
            ForkedClientError: The caller is the child of a fork.
        """
        if self.is_over or (self.outcome is not None and self._runner.inside()):
            return True
        self._runner.refuse_forked("result()")
        self._runner.refuse_inside("result()")
        with self._latch:
            return self._latch.wait_for(lambda: self.is_over, timeout)
