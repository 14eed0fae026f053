"""Entry and exit of the consumer's calls.

Ctrl-C, or another exception of a signal handler, may interrupt a call anywhere. State left
inconsistent by an interrupted call is reset when the next call begins, in one place:
`ConsumerCore.begin_call`.
"""

from collections.abc import Callable
from inspect import currentframe
from types import FrameType, TracebackType
from typing import Protocol

from kclient.common.errors import ClosedError
from kclient.consumer.consumer_lock import ConsumerLock


class CallGuard:
    """Lock of the calls, with the knowledge whether the last call was interrupted.

    Attributes:
        closed: Whether the consumer is closed.
    """

    def __init__(self, lock: ConsumerLock, was_only_waiting: Callable[[], bool]) -> None:
        """Initialize.

        Args:
            lock: Lock of the consumer.
            was_only_waiting: Returns once whether the network client was interrupted while it
                waited, which leaves no inconsistent state.
        """
        self._lock = lock
        self._was_only_waiting = was_only_waiting
        self.closed = False
        # Whether a call is in progress; if set at the start of a call, the last was interrupted.
        self._inside = False
        self._cut_short = False
        self._outermost: FrameType | None = None

    def check_open(self) -> None:
        """Raise if the consumer is closed or belongs to another process; takes no lock."""
        self._lock.check_process()
        if self.closed:
            raise ClosedError("this consumer was closed")

    def depth(self) -> int:
        """Return the recursion depth of the calling thread: 0, or more inside a callback.

        An outer call that is not on the stack any more was interrupted before it released the lock.
        """
        depth = self._lock.depth()
        if depth and not _is_running(self._outermost):
            self._lock.restore_depth(0)
            return 0
        return depth

    def enter(self, depth: int, frame: FrameType | None) -> bool:
        """Acquire the lock for a call; return whether the last call was interrupted.

        `start` must follow at depth 0, and `exit` always.

        Args:
            depth: Result of `depth`.
            frame: Stack frame of the call.
        """
        self._lock.acquire()
        if self.closed:
            raise ClosedError("this consumer was closed")
        if depth:
            return False
        self._outermost = frame
        return self._inside or self._cut_short

    def start(self) -> None:
        """Mark the start of an outermost call: the state is consistent."""
        self._cut_short = self._lock.held = False
        self._inside = True

    def exit(self, depth: int, *, whole: bool) -> None:
        """End a call. Idempotent.

        Args:
            depth: As for `enter`.
            whole: Whether it returned or raised an `Exception`, so was not interrupted.
        """
        lock = self._lock
        if lock.depth() <= depth:
            return  # the lock was not acquired
        if not whole and not self._was_only_waiting():
            # The heartbeat task must not use inconsistent state.
            self._cut_short = lock.held = True
        elif depth == 0:
            self._inside = False
        if depth == 0:
            self._outermost = None
        lock.restore_depth(depth)


class Calls(Protocol):
    """Begin and end of calls."""

    def begin_call(self, depth: int, frame: FrameType | None) -> None:
        """Begin a call; see `CallGuard.enter`."""

    def end_call(self, depth: int, *, whole: bool) -> None:
        """End a call; see `CallGuard.exit`."""


class Call:
    """Context manager of one call."""

    __slots__ = ("_calls", "_depth", "_frame")

    def __init__(self, calls: Calls, depth: int, frame: FrameType | None) -> None:
        self._calls = calls
        self._depth = depth
        self._frame = frame

    def __enter__(self) -> None:
        try:
            self._calls.begin_call(self._depth, self._frame)
        except BaseException as error:
            self._calls.end_call(self._depth, whole=isinstance(error, Exception))
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # If an interrupt prevents this, the next call restores the depth, see `CallGuard.depth`.
        try:
            self._calls.end_call(self._depth, whole=kind is None or issubclass(kind, Exception))
        except BaseException:
            self._calls.end_call(self._depth, whole=False)
            raise


def _is_running(wanted: FrameType | None) -> bool:
    """Return whether a frame is on the stack of the calling thread."""
    frame = currentframe()
    while frame is not None and frame is not wanted:
        frame = frame.f_back
    return frame is not None
