"""Makes pending outcomes work with asyncio and `concurrent.futures`, which are not imported here.

What those modules need beyond the public methods of a future is created on first use, so that a
future that is not awaited has none of it.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Generator
from threading import get_ident
from typing import Any, Generic, Protocol, Self, TypeVar

from kclient.common.errors import KafkaError
from kclient.common.event_loop import running_event_loop
from kclient.common.foreign_names import WithForeignNames
from kclient.producer.foreign_names import FUTURE_NAMES

T = TypeVar("T")

# What `concurrent.futures` saw of an outcome when it acquired the outcome's condition, by thread
# and outcome. An outcome that becomes known later counts as pending until the release.
_seen_done: dict[tuple[int, int], bool] = {}


class _Waiter(Protocol):
    """The part of ``concurrent.futures`` that is notified."""

    def add_result(self, future: Any) -> None: ...

    def add_exception(self, future: Any) -> None: ...


class _WaiterCall:
    """Notifies a waiter of `concurrent.futures`; equal to another call of the same waiter."""

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


class AwaitableOutcome(Generic[T], metaclass=WithForeignNames, foreign_names=FUTURE_NAMES):
    """Base of outcomes that can be awaited, or passed to functions of `concurrent.futures`.

    ``await outcome`` returns what `result` returns, or raises what it raises. It needs a running
    asyncio loop and does not hold it up. To cancel the awaiting task does not cancel the records.

    ``concurrent.futures.wait`` and ``as_completed`` and ``asyncio.wrap_future`` take it for a
    ``concurrent.futures.Future``; ``isinstance`` returns True where that module is loaded.
    """

    __slots__ = ()

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
        """Return or raise the outcome, waiting for it."""

    @abstractmethod
    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Return the error or None, waiting for the outcome."""

    @abstractmethod
    def when_done(self, call: Callable[[], object]) -> bool:
        """Call back once the outcome is known; return False, and do nothing, if it is already."""

    def forget(self, call: Callable[[], object]) -> None:
        """Do not make a call that `when_done` took; it may be made nevertheless."""

    def running(self) -> bool:
        """Return whether the outcome is not known yet."""
        return not self.done()

    def cancel(self) -> bool:
        """Return False: records that were queued are sent."""
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
        loop = running_event_loop("await")
        wakeup = loop.create_future()

        def wake() -> None:
            if not wakeup.done():  # the awaiting task may have been cancelled
                wakeup.set_result(None)

        def wake_from_other_thread() -> None:
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:  # the loop was closed: nothing awaits any more
                if not loop.is_closed():
                    raise

        if self.when_done(wake_from_other_thread):
            yield from wakeup
        return self.result()

    # -- what concurrent.futures and asyncio use of a Future ------------------------------------

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
        """Return whether it is done, whether cancelled, result and error (Python 3.14)."""
        if not self.done():
            return False, False, None, None
        error = self.exception()
        return True, False, None if error is not None else self.result(), error


class _Seen:
    """Stands for a future's condition: fixes, for one thread, whether the outcome is known.

    `concurrent.futures` holds the conditions of many futures at a time, counts those that are
    pending and adds a waiter to them. An outcome that comes between is reported to the waiter when
    it is added, so that no lock has to keep it back.
    """

    __slots__ = ("_outcome",)

    def __init__(self, outcome: AwaitableOutcome[Any]) -> None:
        self._outcome = outcome

    def acquire(self) -> bool:
        """Fix whether the outcome is known."""
        _seen_done[get_ident(), id(self._outcome)] = self._outcome.done()
        return True

    def release(self) -> None:
        """Look at the outcome again."""
        _seen_done.pop((get_ident(), id(self._outcome)), None)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()


class _Waiters:
    """Stands for a future's list of waiters."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: AwaitableOutcome[Any]) -> None:
        self._outcome = outcome

    def append(self, waiter: _Waiter) -> None:
        """Notify a waiter once the outcome is known, unless it was when the condition was taken."""
        outcome = self._outcome
        if _seen_done.get((get_ident(), id(outcome))):
            return  # the waiter has counted it already
        call = _WaiterCall(outcome, waiter)
        if not outcome.when_done(call):
            call()

    def remove(self, waiter: _Waiter) -> None:
        """Notify a waiter no more."""
        self._outcome.forget(_WaiterCall(self._outcome, waiter))
