"""Condition of clients that run in steps, in one thread: the drivers' common part."""

from collections.abc import Callable
from types import TracebackType


class WouldBlockError(AssertionError):
    """A client would have blocked its driver."""


class StepCondition:
    """Condition whose lock is always free when it is acquired; no step may wait on it directly.

    Between two waits no other step runs, so that steps must not wait with the lock held.
    """

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> bool:
        self._depth += 1
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self._depth -= 1

    def check_free(self) -> None:
        """Refuse a wait in which the lock is held."""
        if self._depth:
            raise AssertionError("steps wait while they hold the lock of a condition")

    def wait(self, timeout: float | None = None) -> bool:
        """Refuse to block."""
        raise WouldBlockError(f"a condition was awaited for {timeout} s outside of steps")

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Return whether the predicate holds, if that needs no wait."""
        met = predicate()
        if not met and timeout != 0:
            self.wait(timeout)
        return met
