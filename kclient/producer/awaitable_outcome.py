"""Base of futures that work with asyncio and `concurrent.futures`, without importing either.

State that those modules need is created on first use: a future that is not awaited has none.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Generator
from threading import get_ident
from typing import Any, Generic, Protocol, Self, TypeVar

from kclient.common.errors import KafkaError
from kclient.common.event_loop import running_event_loop
from kclient.common.foreign_names import WithForeignNames
from kclient.common.process_bound import ProcessBound
from kclient.producer.foreign_names import FUTURE_NAMES

T = TypeVar("T")

# Whether an outcome was known when `concurrent.futures` acquired its condition, by thread and
# outcome. An outcome that becomes known later counts as pending until the release.
_seen_done: dict[tuple[int, int], bool] = {}


class _Waiter(Protocol):
    """A waiter of ``concurrent.futures``."""

    def add_result(self, future: Any) -> None: ...

    def add_exception(self, future: Any) -> None: ...


class _WaiterCall:
    """Callback that notifies a waiter of `concurrent.futures`; equal for the same waiter."""

    __slots__ = ("_outcome", "_waiter")

    def __init__(self, outcome: "AwaitableOutcome[Any]", waiter: _Waiter) -> None:
        self._outcome = outcome
        self._waiter = waiter

    def __call__(self) -> None:
        """Pass the outcome to the waiter as a success or as a failure."""
        if self._outcome.exception() is None:
            self._waiter.add_result(self._outcome)
        else:
            self._waiter.add_exception(self._outcome)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _WaiterCall):
            return NotImplemented
        return self._outcome is other._outcome and self._waiter is other._waiter

    def __hash__(self) -> int:
        return hash((id(self._outcome), id(self._waiter)))


class AwaitableOutcome(
    ProcessBound, Generic[T], metaclass=WithForeignNames, foreign_names=FUTURE_NAMES
):
    """Base of outcomes that can be awaited, or passed to functions of `concurrent.futures`.

    ``await outcome`` returns or raises what `result` does. It needs a running asyncio loop and does
    not block it. Cancelling the awaiting task does not cancel the records.

    ``concurrent.futures.wait`` and ``as_completed`` and ``asyncio.wrap_future`` accept it as a
    ``concurrent.futures.Future``; ``isinstance`` returns True if that module is loaded.
    """

    __slots__ = ()

    _bound_by = "an outcome that a producer of this process receives; send its result()"

    @property  # type: ignore[misc]  # read-only here, as in unittest.mock
    def __class__(self) -> type:
        """`concurrent.futures.Future`, for ``isinstance``, if that module is loaded."""
        found: type = getattr(sys.modules.get("concurrent.futures"), "Future", type(self))
        return found

    @abstractmethod
    def done(self) -> bool:
        """Return whether the outcome is known."""

    @abstractmethod
    def result(self, timeout: float | None = None) -> T:
        """Wait for the outcome and return or raise it."""

    @abstractmethod
    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait for the outcome and return the error or None."""

    def add_done_callback(self, callback: Callable[[Self], object]) -> None:
        """Call ``callback(outcome)`` when the outcome is known, or now if it is known already.

        It runs as ``on_delivery`` of `Producer.send` (now: in the caller's thread) and must not
        block.
        """
        if not self.add_done_call(lambda: callback(self)):
            callback(self)

    @abstractmethod
    def add_done_call(self, call: Callable[[], object]) -> bool:
        """Register a call for when the outcome is known; return False if it is known already."""

    def remove_done_call(self, call: Callable[[], object]) -> None:
        """Unregister a call; it may still be made if the outcome becomes known meanwhile."""

    def running(self) -> bool:
        """Return whether the outcome is unknown so far."""
        return not self.done()

    def cancel(self) -> bool:
        """Return False: queued records are always sent."""
        return False

    def cancelled(self) -> bool:
        """Return False, as `cancel` does."""
        return False

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the outcome in a running asyncio loop.

        Raises:
            IllegalStateError: No asyncio loop is running.
            KafkaError: As `result`.
        """
        loop, thread = running_event_loop("await"), get_ident()
        wakeup = loop.create_future()

        def wake() -> None:
            if not wakeup.done():  # the awaiting task may have been cancelled
                wakeup.set_result(None)

        def known() -> None:
            if get_ident() == thread:  # a producer of this event loop
                wake()
                return
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:  # the loop was closed
                if not loop.is_closed():
                    raise

        if self.add_done_call(known):
            try:
                yield from wakeup
            finally:
                if not wakeup.done() or wakeup.cancelled():
                    self.remove_done_call(known)
        return self.result()

    # -- private attributes of Future that concurrent.futures and asyncio read -------------------

    @property
    def _state(self) -> str:
        done = _seen_done.get((get_ident(), id(self)))
        return "FINISHED" if (self.done() if done is None else done) else "PENDING"

    @property
    def _condition(self) -> "_Seen":
        return _Seen(self)

    @property
    def _waiters(self) -> "_Waiters":
        return _Waiters(self)

    def _get_snapshot(self) -> tuple[bool, bool, T | None, KafkaError | None]:
        """Return (done, cancelled, result, error), for Python 3.14."""
        if not self.done():
            return False, False, None, None
        error = self.exception()
        return True, False, None if error is not None else self.result(), error


class _Seen:
    """Replacement of a future's condition: fixes, for one thread, whether the outcome is known.

    `concurrent.futures` holds the conditions of many futures at a time, counts those that are
    pending and adds a waiter to them. An outcome that becomes known in between is reported when
    the waiter is added, so no lock has to delay it.
    """

    __slots__ = ("_outcome",)

    def __init__(self, outcome: AwaitableOutcome[Any]) -> None:
        self._outcome = outcome

    def acquire(self) -> bool:
        """Record whether the outcome is known."""
        _seen_done[get_ident(), id(self._outcome)] = self._outcome.done()
        return True

    def release(self) -> None:
        """Discard what was recorded."""
        _seen_done.pop((get_ident(), id(self._outcome)), None)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()


class _Waiters:
    """Replacement of a future's list of waiters."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: AwaitableOutcome[Any]) -> None:
        self._outcome = outcome

    def append(self, waiter: _Waiter) -> None:
        """Add a waiter, unless the outcome was known when the condition was acquired."""
        outcome = self._outcome
        if _seen_done.get((get_ident(), id(outcome))):
            return  # the waiter has counted it
        call = _WaiterCall(outcome, waiter)
        if not outcome.add_done_call(call):
            call()

    def remove(self, waiter: _Waiter) -> None:
        """Remove a waiter."""
        self._outcome.remove_done_call(_WaiterCall(self._outcome, waiter))
