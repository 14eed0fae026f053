"""What all calls of a consumer have in common: who may call, and how long it may take.

Ctrl-C, or whatever else a signal handler raises, may end a call behind any call it makes. What it
leaves half done is mended at the begin of the next call, in one place, instead of everywhere:

* Records that were taken for a `poll` which did not return them are taken back.
* Unless the call did nothing but wait when it was struck, all connections are made anew, what was
  in flight fails as if the connection had broken, what was fetched ahead is fetched again, and a
  rebalance under way begins anew. Heartbeats rest until then.
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
    """Holds the parts; every public call goes through `_call`."""

    _closed = True  # until it is made to the end

    def __init__(self, parts: ConsumerParts) -> None:
        self._parts = parts
        self._may_commit_last = True
        # Records taken for the iteration; those from _next_in_hand on were not handed out yet.
        self._in_hand: list[ConsumerRecord] = []
        self._next_in_hand = 0
        # The same while they are put back.
        self._putting_back: tuple[list[ConsumerRecord], int] | None = None
        # What a poll has taken and not returned to its caller yet.
        self._unreturned: object = None
        # Whether a call is inside; a call that finds it set was preceded by one cut short.
        self._inside = False
        self._cut_short = False
        self._outermost: FrameType | None = None

    def _call(self) -> "Call":
        """Keep other threads and the heartbeat loop out while the call lasts."""
        frame = currentframe()
        caller = None if frame is None else frame.f_back
        return Call(self._begin_call, self._end_call, self._depth_before(), caller)

    def _look(self) -> ConsumerParts:
        """Return the parts to read from, in any thread and also while another one is inside.

        What is read must be replaced as a whole by those who change it, never in place.
        """
        self._parts.seat.check_process()
        if self._closed:
            raise ClosedError("this consumer was closed")
        return self._parts

    def _not_handed_out(self, partition: TopicPartition) -> int | None:
        """Return the offset of the first record in the hand of an iteration, None without one."""
        records, index = self._putting_back or (self._in_hand, self._next_in_hand)
        if index < len(records) and records[index].topic_partition == partition:
            return records[index].offset
        return None

    def _depth_before(self) -> int:
        """Return how deep the calling thread sits: 0, or more inside of a callback.

        An outer call that is not on the stack any more was cut short before it could stand up.
        """
        depth = self._parts.seat.depth()
        if depth and not _is_running(self._outermost):
            self._parts.seat.go_back(0)
            return 0
        return depth

    def _begin_call(self, depth: int, frame: FrameType | None) -> ConsumerParts:
        """Begin a call; `_end_call` must follow.

        Args:
            depth: What `_depth_before` said.
            frame: Where the call runs.
        """
        parts = self._parts
        parts.seat.take()
        if self._closed:
            raise ClosedError("this consumer was closed")
        if depth == 0:
            self._outermost = frame
            if self._inside or self._cut_short or self._unreturned is not None:
                self._mend()
            self._inside = True
        if self._in_hand:
            self._put_back()
        return parts

    def _end_call(self, depth: int, *, whole: bool) -> None:
        """End a call; again does no harm.

        Args:
            depth: As for `_begin_call`.
            whole: Whether it came to its end, be it with an error.
        """
        seat = self._parts.seat
        if seat.depth() <= depth:
            return  # the seat was not taken
        if not whole and not self._parts.network.was_only_waiting():
            # The heartbeat loop must not work with what is half done.
            self._cut_short = seat.held = True
        elif depth == 0:
            self._inside = False
        if depth == 0:
            self._outermost = None
        seat.go_back(depth)

    def _mend(self) -> None:
        """Mend what a call left behind that was cut short."""
        parts = self._parts
        if self._inside or self._cut_short:
            parts.mend()
            records, handed_out = self._putting_back or (self._in_hand, self._next_in_hand)
            parts.collector.go_back_to(records, handed_out)
            self._in_hand = []
            self._putting_back = None
        if self._unreturned is not None:
            parts.collector.undo()
        self._unreturned = None
        self._inside = self._cut_short = parts.seat.held = False

    def _put_back(self) -> None:
        """Put back the records that the iteration fetched and has not returned."""
        # No call in this line: no other thread gets a record of them any more, see `__next__`.
        self._putting_back, self._in_hand = (self._in_hand, self._next_in_hand), []
        self._parts.collector.put_back(*self._putting_back)
        self._putting_back = None

    def _deadline_ms(self, timeout: float | None, call: str = "") -> float:
        """Return the time by which a call must be over, ``default.api.timeout.ms`` for None.

        Args:
            timeout: Seconds.
            call: Name of the call, where it must not be made in an event loop.
        """
        default_ms = self._parts.config.values["default_api_timeout_ms"]
        timeout_ms = check_timeout(timeout, default_ms=default_ms)
        if call and timeout_ms > 0:
            self._refuse_in_event_loop(call)
        return self._parts.runtime.clock.monotonic_ms() + timeout_ms

    def _refuse_in_event_loop(self, call: str) -> None:
        """Refuse a call that waits; one made by a callback is part of the call around it."""
        if is_inside_event_loop() and self._parts.seat.depth() == 0:
            refuse_in_event_loop(call, f"consumer.{call}, …")

    def _coordinator(self, what: str) -> ConsumerCoordinator:
        coordinator = self._parts.coordinator
        if coordinator is None:
            raise IllegalStateError(f"{what}: there is no group; create the consumer with group_id")
        return coordinator


class EndCall(Protocol):
    """What ends a call."""

    def __call__(self, depth: int, *, whole: bool) -> None:
        """See `ConsumerBase._end_call`."""


class Call:
    """One call of an application, as a context."""

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
        # Ctrl-C on the way in here leaves it to the next call to stand up, see `_depth_before`.
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
