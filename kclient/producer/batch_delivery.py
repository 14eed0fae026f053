"""Future of the records of one `send_many` or `send_arrow`."""

import math
from collections.abc import Callable, Iterator
from functools import partial

from kclient.common.arguments import check_timeout
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.event_loop import is_inside_event_loop, refuse_in_event_loop
from kclient.common.runtime import Clock
from kclient.common.waiting import Steps, run_steps
from kclient.producer.awaitable_outcome import AwaitableOutcome
from kclient.producer.produce_request_result import Appended, Failed, ProduceRequestResult


class Segment:
    """Consecutive records of one call that were appended to one batch."""

    __slots__ = ("count", "first_index", "result")

    def __init__(self, result: ProduceRequestResult, first_index: int, count: int) -> None:
        self.result = result
        self.first_index = first_index
        self.count = count


class BatchDelivery(AwaitableOutcome[int]):
    """The pending outcome of one `Producer.send_many` or `Producer.send_arrow`.

    It can be awaited in an asyncio loop: ``count = await producer.send_many(...)``.
    """

    __slots__ = ("_clock", "_segments")

    def __init__(self, segments: list[Segment], clock: Clock) -> None:
        self._segments = segments
        self._clock = clock

    def __repr__(self) -> str:
        failed = next(self.failures(), None) is not None
        state = "pending" if not self.done() else "failed" if failed else "appended"
        return f"BatchDelivery({len(self)} records, {state})"

    def __len__(self) -> int:
        return sum(segment.count for segment in self._segments)

    def done(self) -> bool:
        """Return whether every record was acknowledged or has failed."""
        return all(
            leaf.is_complete() for segment in self._segments for leaf in _leaves(segment.result)
        )

    def result(self, timeout: float | None = None) -> int:
        """Wait for every acknowledgement and return the number of records.

        Args:
            timeout: Seconds to wait at most; None waits until every outcome is known, which
                ``delivery.timeout.ms`` bounds.

        Raises:
            KafkaTimeoutError: Some outcomes are not known in time; those records are in flight.
            KafkaError: At least one record failed; it is the first failure in the order of the
                append.
        """
        failed = self.exception(timeout)
        if failed is not None:
            raise failed.with_traceback(None)
        return len(self)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait for every outcome and return the first failure, or None.

        Raises:
            KafkaTimeoutError: Some outcomes are not known in time.
            EventLoopError: It would wait inside a running event loop.
        """
        timeout_ms = check_timeout(timeout, default_ms=math.inf)
        if timeout_ms and not self.done():
            refuse_in_event_loop("result", "delivery.result, …", awaitable=True)
        if not (self.done() and is_inside_event_loop()):  # else only callbacks are outstanding
            steps = self._await_all(self._clock.monotonic_ms() + timeout_ms)
            if not run_steps(steps, self._clock):
                raise KafkaTimeoutError(
                    f"not every record has an outcome after {timeout} s; the others are in flight"
                )
        for error in self.failures():
            return error
        return None

    def add_done_call(self, call: Callable[[], object]) -> bool:
        """Register a call for when every outcome is known; return False if they all are."""
        return self._watch(0, call)

    def _watch(self, position: int, call: Callable[[], object]) -> bool:
        """Register with the first segment from `position` on that is not done; False if none is."""
        for index in range(position, len(self._segments)):
            resume = partial(self._resume_watch, index, call)
            for leaf in _leaves(self._segments[index].result):
                if leaf.add_callback(0, resume):
                    return True
        return False

    def _resume_watch(self, position: int, call: Callable[[], object]) -> None:
        if not self._watch(position, call):
            call()

    def failures(self) -> Iterator[KafkaError]:
        """Yield the error of each record known to have failed so far."""
        for segment in self._segments:
            outcome, _ = segment.result.outcome_of(segment.first_index)
            if isinstance(outcome, Appended) and not segment.result.parts():
                continue
            for index in range(segment.first_index, segment.first_index + segment.count):
                outcome, inner = segment.result.outcome_of(index)
                if isinstance(outcome, Failed):
                    yield outcome.error_of(inner)

    def _await_all(self, until_ms: float) -> Steps[bool]:
        for segment in self._segments:
            if not (yield from segment.result.await_all(until_ms)):
                return False
        return True


def _leaves(result: ProduceRequestResult) -> Iterator[ProduceRequestResult]:
    parts = result.parts()
    if not parts:
        yield result
    for part in parts:
        yield from _leaves(part)
