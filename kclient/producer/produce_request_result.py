"""Outcome of a batch, shared by the futures of its records."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock, Condition, Lock, Tasks
from kclient.common.types import RecordMetadata, TopicPartition
from kclient.common.waiting import ConditionWait, Steps
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.errors import located

if TYPE_CHECKING:
    from kclient.producer.delivery_future import DeliveryFuture


class Appended(NamedTuple):
    """The batch is in the log; `log_append_time_ms` is -1 if the records' timestamps apply."""

    base_offset: int
    log_append_time_ms: int


class Failed(NamedTuple):
    """The batch failed."""

    error: KafkaError
    record_errors: dict[int, KafkaError]

    def error_of(self, index: int) -> KafkaError:
        """Return the error of the record at `index`."""
        return self.record_errors.get(index, self.error)


class Split(NamedTuple):
    """The batch was too large; its records were moved to smaller ones."""

    first_indexes: list[int]
    parts: Sequence["ProduceRequestResult"]

    def locate(self, index: int) -> tuple["ProduceRequestResult", int]:
        """Return the part that holds a record, and the record's index there."""
        position = bisect_right(self.first_indexes, index) - 1
        return self.parts[position], index - self.first_indexes[position]


OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], object]
"""Called with a record's metadata or its error."""


class ProduceRequestResult:
    """Latch of one batch (Kafka: ProduceRequestResult).

    It outlives the batch and its buffer while a future refers to it.

    Attributes:
        topic_partition: Partition of the records.
        clock: Measures timeouts.
        deliveries: Delivery callbacks with the index and future of their record, in the order of
            the records. The lock of the batch's queue guards it until the batch is drained; then
            only the sender accesses it.
        is_finished: Whether the outcome is known and all callbacks have run. Callers of `wait` wait
            for it: after a flush, every callback has run.
        outcome: Outcome of the batch, None while unknown; it is set once.
    """

    __slots__ = (
        "_callbacks",
        "_latch",
        "_lock",
        "_runner",
        "_tasks",
        "clock",
        "deliveries",
        "is_finished",
        "outcome",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        tasks: Tasks,
        lock: Lock,
        runner: CallbackRunner,
        clock: Clock,
    ) -> None:
        """Create a pending outcome.

        Args:
            topic_partition: Partition of the records.
            tasks: Creates the condition of callers that wait.
            lock: Lock that many results may share.
            runner: Runs callbacks.
            clock: Measures timeouts.
        """
        self.topic_partition = topic_partition
        self.clock = clock
        self.deliveries: list[tuple[int, DeliveryFuture, OnDelivery]] = []
        self._runner = runner
        self._tasks = tasks
        self._lock = lock  # guards: all below
        self._latch: Condition | None = None  # guards: nothing; it only carries the notification
        self.is_finished = False
        self.outcome: Appended | Failed | Split | None = None
        self._callbacks: list[tuple[int, Callable[[], object]]] | None = None

    def complete(self, base_offset: int, log_append_time_ms: int) -> bool:
        """Mark every record as appended; return False if the batch was completed before."""
        return self._finish(Appended(base_offset, log_append_time_ms))

    def fail(self, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> bool:
        """Mark every record as failed; return False if the batch was completed before.

        The errors that are reported have the partition.
        """
        own_errors = {
            index: located(each, self.topic_partition)
            for index, each in (record_errors or {}).items()
        }
        return self._finish(Failed(located(error, self.topic_partition), own_errors))

    def continue_in(
        self, first_indexes: list[int], parts: Sequence["ProduceRequestResult"]
    ) -> None:
        """Move the callbacks to the results of the batches that this one was split into."""
        split = Split(first_indexes, parts)
        deliveries, self.deliveries = self.deliveries, []
        for index, future, on_delivery in deliveries:
            part, inner = split.locate(index)
            part.deliveries.append((inner, future, on_delivery))
        for index, callback in self._set_outcome(split):
            part, inner = split.locate(index)
            part.add_callback(inner, callback)
        self._release_waiters()

    def _finish(self, outcome: Appended | Failed) -> bool:
        if self.outcome is not None:
            return False
        with self._lock:
            latch = self._latch
            is_reported = not self.deliveries and not self._callbacks  # as for most batches
            if is_reported:
                self.outcome = outcome
                self.is_finished = True
        if is_reported:
            if latch is not None:
                with latch:
                    latch.notify_all()
            return True
        callbacks = self._set_outcome(outcome)
        try:
            if self.deliveries:
                deliveries, self.deliveries = self.deliveries, []
                self._runner.run_all(
                    partial(future.report, on_delivery) for _, future, on_delivery in deliveries
                )
            if callbacks:
                self._runner.run_all(callback for _, callback in callbacks)
        finally:
            self._release_waiters()
        return True

    def _set_outcome(
        self, outcome: Appended | Failed | Split
    ) -> list[tuple[int, Callable[[], object]]]:
        with self._lock:
            self.outcome = outcome
            callbacks, self._callbacks = self._callbacks, None
        return callbacks or []

    def _release_waiters(self) -> None:
        with self._lock:
            self.is_finished = True
            latch = self._latch
        if latch is not None:
            with latch:
                latch.notify_all()

    def add_callback(self, index: int, callback: Callable[[], object]) -> bool:
        """Register a callback for the record at `index`; return False if its outcome is known."""
        if self.outcome is None:
            self._runner.check_not_forked("add_done_callback()")
        with self._lock:
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
        """Remove a callback registered by `add_callback`, or one equal to it."""
        with self._lock:
            outcome = self.outcome
            if self._callbacks is not None and (index, callback) in self._callbacks:
                self._callbacks.remove((index, callback))
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            part.remove_callback(inner, callback)

    def locate(self, index: int) -> tuple["ProduceRequestResult", int]:
        """Return the result of the batch that holds a record now, and its index there."""
        outcome = self.outcome
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            return part.locate(inner)
        return self, index

    def outcome_of(self, index: int) -> tuple[Appended | Failed | None, int]:
        """Return the outcome of a record, or None, and its index in the batch that holds it."""
        outcome = self.outcome
        if isinstance(outcome, Split):
            part, inner = outcome.locate(index)
            return part.outcome_of(inner)
        return outcome, index

    def is_complete(self) -> bool:
        """Return whether this batch has an outcome or was split."""
        return self.outcome is not None

    def parts(self) -> Sequence["ProduceRequestResult"]:
        """Return the results that this one was split into, if it was."""
        outcome = self.outcome
        return outcome.parts if isinstance(outcome, Split) else ()

    def wait(self, until_ms: float) -> Steps[bool]:
        """Wait until this batch is finished; return whether it is.

        In the sender's thread a known outcome suffices: the other callbacks run after it.

        Raises:
            IllegalStateError: The caller is in the sender's thread and would wait for itself.
            ForkedClientError: The caller is the child of a fork.
        """
        if self.is_finished or (self.outcome is not None and self._runner.inside()):
            return True
        self._runner.check_may_wait("result()")
        with self._lock:
            if self._latch is None:  # most results are never waited for
                self._latch = self._tasks.condition()
        yield ConditionWait(self._latch, self._has_finished, until_ms, self._runner.sender)
        self._runner.check_not_forked("result()")  # the caller ran a callback that forked
        return self.is_finished

    def _has_finished(self) -> bool:
        return self.is_finished

    def await_all(self, until_ms: float) -> Steps[bool]:
        """Wait until the batch, and those it was split into, are finished; see `wait`."""
        if not (yield from self.wait(until_ms)):
            return False
        for part in self.parts():
            if not (yield from part.await_all(until_ms)):
                return False
        return True
