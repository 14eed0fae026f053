"""Future of one record."""

import math
from collections.abc import Callable

from kclient.common.arguments import check_timeout
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.event_loop import is_inside_event_loop, refuse_in_event_loop
from kclient.common.types import RecordMetadata
from kclient.common.waiting import run_steps
from kclient.producer.awaitable_outcome import AwaitableOutcome
from kclient.producer.batch_delivery import Segment
from kclient.producer.hot_path import RecordHandle
from kclient.producer.produce_request_result import (
    Appended,
    Failed,
    OnDelivery,
)


class DeliveryFuture(RecordHandle, AwaitableOutcome[RecordMetadata]):
    """The pending outcome of one `Producer.send` (Kafka: FutureRecordMetadata).

    It is a small reference to its batch's result. It can be awaited in an asyncio loop:
    ``metadata = await producer.send(...)``.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        outcome, _ = self._result.outcome_of(self._index)
        state = "pending" if outcome is None else type(outcome).__name__.lower()
        return f"DeliveryFuture({self._result.topic_partition}, {state})"

    def done(self) -> bool:
        """Return whether the record was acknowledged or has failed."""
        result = self._result
        return type(result.outcome) is Appended or result.outcome_of(self._index)[0] is not None

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement and return the record's metadata.

        Args:
            timeout: Seconds to wait at most; None waits until the outcome is known, which
                ``delivery.timeout.ms`` bounds.

        Raises:
            KafkaTimeoutError: The outcome is not known in time; the record is in flight.
            EventLoopError: It would wait inside a running event loop.
            KafkaError: The record failed; the class is the kind of failure.
        """
        outcome, index = self._await(timeout)
        if isinstance(outcome, Failed):
            # The error is shared by the batch: its traceback would grow with every raise.
            raise outcome.error_of(index).with_traceback(None)
        return self._metadata(outcome, index)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait for the outcome and return why the record failed, or None if it did not.

        Args:
            timeout: Seconds to wait at most; None waits until the outcome is known.

        Raises:
            KafkaTimeoutError: The outcome is not known in time; the record is in flight.
            EventLoopError: It would wait inside a running event loop.
        """
        result = self._result
        if result.is_finished and type(result.outcome) is Appended:  # fast path
            return None
        outcome, index = self._await(timeout)
        return outcome.error_of(index) if isinstance(outcome, Failed) else None

    def add_done_call(self, call: Callable[[], object]) -> bool:
        """Register a call for when the outcome is known; return False if it is known already."""
        return self._result.add_callback(self._index, call)

    def remove_done_call(self, call: Callable[[], object]) -> None:
        """Unregister a call; it may still be made if the outcome becomes known meanwhile."""
        self._result.remove_callback(self._index, call)

    def segment(self) -> Segment:
        """Return the record as a segment of one."""
        return Segment(self._result, self._index, 1)

    def report(self, on_delivery: OnDelivery) -> None:
        """Call ``on_delivery(metadata, error)``; the outcome is known."""
        outcome, index = self._result.outcome_of(self._index)
        if isinstance(outcome, Failed):
            on_delivery(None, outcome.error_of(index))
        elif outcome is not None:
            on_delivery(self._metadata(outcome, index), None)

    def _await(self, timeout: float | None) -> tuple[Appended | Failed, int]:
        result, index = self._result, self._index
        outcome = result.outcome
        if outcome is not None:
            result, index = result.locate(index)
            outcome = result.outcome
        if isinstance(outcome, Appended | Failed) and (
            self._result.is_finished or is_inside_event_loop()
        ):
            return outcome, index
        timeout_ms = check_timeout(timeout, default_ms=math.inf)
        if outcome is None and timeout_ms:  # else only callbacks are outstanding
            refuse_in_event_loop("result", "future.result, …", awaitable=True)
        clock = result.clock
        until_ms = clock.monotonic_ms() + timeout_ms
        while run_steps(result.wait(until_ms), clock):
            outcome = result.outcome
            if type(outcome) is Appended or isinstance(outcome, Failed):
                return outcome, index
            result, index = result.locate(index)  # the batch was split
        raise KafkaTimeoutError(
            f"the record for {self._result.topic_partition} has no outcome after {timeout} s; "
            "it is in flight"
        )

    def _metadata(self, outcome: Appended, index: int) -> RecordMetadata:
        topic, partition = self._result.topic_partition
        appended_at = outcome.log_append_time_ms
        return RecordMetadata(
            topic,
            partition,
            outcome.base_offset + index if outcome.base_offset >= 0 else -1,
            appended_at if appended_at >= 0 else self._timestamp_ms,
            self._key_size,
            self._value_size,
        )
