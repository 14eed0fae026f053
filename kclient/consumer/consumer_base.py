"""Entry and exit of the consumer's calls.

Ctrl-C, or another exception of a signal handler, may interrupt a call anywhere. State left
inconsistent by an interrupted call is reset when the next call begins, in one place:

* Records of a `poll` that did not return them are put back.
* Unless the call was interrupted while it waited, the network client is replaced, requests in
  flight fail as if the connection had been closed, buffered data is fetched again, and a rebalance
  in progress restarts. No heartbeats are sent until then.
"""

from collections.abc import Callable
from inspect import currentframe
from types import FrameType, TracebackType
from typing import Protocol

from kclient.common.errors import ClosedError, IllegalStateError
from kclient.common.event_loop import is_inside_event_loop, refuse_in_event_loop
from kclient.common.types import TopicPartition
from kclient.consumer.arguments import check_timeout
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator
from kclient.record import ConsumerRecord


class ConsumerBase:
    """Base class of the public calls; each runs within `_call`."""

    _closed = True  # until the constructor has finished

    def __init__(self, parts: ConsumerParts) -> None:
        self._parts = parts
        self._may_commit_last = True
        # Records of the iteration; those from _next_pending on are not returned yet.
        self._pending: list[ConsumerRecord] = []
        self._next_pending = 0
        # The same while they are being put back.
        self._putting_back: tuple[list[ConsumerRecord], int] | None = None
        # Result of a poll that is not returned to its caller yet.
        self._unreturned: object = None
        # Whether a call is in progress; if set at the start of a call, the last was interrupted.
        self._inside = False
        self._cut_short = False
        self._outermost: FrameType | None = None

    def _call(self) -> "Call":
        """Hold the lock during a call."""
        frame = currentframe()
        caller = None if frame is None else frame.f_back
        return Call(self._begin_call, self._end_call, self._depth_before(), caller)

    def _look(self) -> ConsumerParts:
        """Return the parts for reading from any thread, without the lock.

        Attributes read this way must be replaced as a whole, never changed in place.
        """
        self._parts.lock.check_process()
        if self._closed:
            raise ClosedError("this consumer was closed")
        return self._parts

    def _first_pending_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset of the iteration's next record, None without one."""
        records, index = self._putting_back or (self._pending, self._next_pending)
        if index < len(records) and records[index].topic_partition == partition:
            return records[index].offset
        return None

    def _depth_before(self) -> int:
        """Return the recursion depth of the calling thread: 0, or more inside a callback.

        An outer call that is not on the stack any more was interrupted before it released the lock.
        """
        depth = self._parts.lock.depth()
        if depth and not _is_running(self._outermost):
            self._parts.lock.restore_depth(0)
            return 0
        return depth

    def _begin_call(self, depth: int, frame: FrameType | None) -> ConsumerParts:
        """Begin a call; `_end_call` must follow.

        Args:
            depth: Result of `_depth_before`.
            frame: Stack frame of the call.
        """
        parts = self._parts
        parts.lock.acquire()
        if self._closed:
            raise ClosedError("this consumer was closed")
        if depth == 0:
            self._outermost = frame
            if self._inside or self._cut_short or self._unreturned is not None:
                self._reset_after_interrupt()
            self._inside = True
        if self._pending:
            self._put_back()
        return parts

    def _end_call(self, depth: int, *, whole: bool) -> None:
        """End a call. Idempotent.

        Args:
            depth: As for `_begin_call`.
            whole: Whether it returned or raised an `Exception`, so was not interrupted.
        """
        lock = self._parts.lock
        if lock.depth() <= depth:
            return  # the lock was not acquired
        if not whole and not self._parts.network.was_only_waiting():
            # The heartbeat task must not use inconsistent state.
            self._cut_short = lock.held = True
        elif depth == 0:
            self._inside = False
        if depth == 0:
            self._outermost = None
        lock.restore_depth(depth)

    def _reset_after_interrupt(self) -> None:
        """Reset the state that an interrupted call left inconsistent."""
        parts = self._parts
        if self._inside or self._cut_short:
            parts.reset_after_interrupt()
            records, consumed = self._putting_back or (self._pending, self._next_pending)
            parts.collector.rewind(records, consumed)
            self._pending = []
            self._putting_back = None
        if self._unreturned is not None:
            parts.collector.undo()
        self._unreturned = None
        self._inside = self._cut_short = parts.lock.held = False

    def _put_back(self) -> None:
        """Put back the records of the iteration that are not returned yet."""
        # No call in this line: from here on no other thread gets one of them, see `__next__`.
        self._putting_back, self._pending = (self._pending, self._next_pending), []
        self._parts.collector.put_back(*self._putting_back)
        self._putting_back = None

    def _deadline_ms(self, timeout: float | None, call: str = "") -> float:
        """Return the deadline of a call, by ``default.api.timeout.ms`` for None.

        Args:
            timeout: Seconds.
            call: Name of a call that must not be made in an event loop.
        """
        default_ms = self._parts.config.values["default_api_timeout_ms"]
        timeout_ms = check_timeout(timeout, default_ms=default_ms)
        if call and timeout_ms > 0:
            self._refuse_in_event_loop(call)
        return self._parts.runtime.clock.monotonic_ms() + timeout_ms

    def _refuse_in_event_loop(self, call: str) -> None:
        """Reject a waiting call in an event loop, unless it is nested in another call."""
        if is_inside_event_loop() and self._parts.lock.depth() == 0:
            refuse_in_event_loop(call, f"consumer.{call}, …")

    def _coordinator(self, what: str) -> ConsumerCoordinator:
        coordinator = self._parts.coordinator
        if coordinator is None:
            raise IllegalStateError(f"{what}: got no group, expected a consumer with group_id")
        return coordinator


class EndCall(Protocol):
    """End of a call."""

    def __call__(self, depth: int, *, whole: bool) -> None:
        """See `ConsumerBase._end_call`."""


class Call:
    """Context manager of one call."""

    __slots__ = ("_begin", "_depth", "_end", "_frame")

    def __init__(
        self,
        begin: Callable[[int, FrameType | None], ConsumerParts],
        end: "EndCall",
        depth: int,
        frame: FrameType | None,
    ) -> None:
        self._begin = begin
        self._end = end
        self._depth = depth
        self._frame = frame

    def __enter__(self) -> ConsumerParts:
        try:
            return self._begin(self._depth, self._frame)
        except BaseException as error:
            self._end(self._depth, whole=isinstance(error, Exception))
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # If an interrupt prevents this, the next call restores the depth, see `_depth_before`.
        try:
            self._end(self._depth, whole=kind is None or issubclass(kind, Exception))
        except BaseException:
            self._end(self._depth, whole=False)
            raise


def _is_running(wanted: FrameType | None) -> bool:
    """Return whether a frame is on the stack of the calling thread."""
    frame = currentframe()
    while frame is not None and frame is not wanted:
        frame = frame.f_back
    return frame is not None
