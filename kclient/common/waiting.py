"""Waits as values: calls that may wait yield them, and a driver performs them.

A call that waits for brokers or for other threads is a generator. Where it cannot continue it
yields a `Wait`, and it is resumed when the wait has ended, at its deadline or earlier. It then
checks again what it waited for. A loop of a background task is a generator like that.

`run_steps` drives a call in the calling thread, and `perform` the loop of a task; a driver for an
event loop awaits the same waits.
"""

import math
from collections.abc import Callable, Coroutine, Generator
from typing import Any, NamedTuple, Protocol, TypeVar

from kclient.common.errors import InvalidTypeError
from kclient.common.interrupts import deferred_signals
from kclient.common.runtime import Clock, Condition, Task

T = TypeVar("T")

impatient_threads: set[int] = set()
"""Threads that wait for a response which the application needs to continue."""


class Wait(Protocol):
    """A wait that a step asks for."""

    def block(self, clock: Clock, until_ms: float = math.inf) -> None:
        """Wait in the calling thread, not longer than until a time."""
        ...


Steps = Generator[Wait, None, T]
"""A call in steps: yields its waits and returns its result."""


class Network(Protocol):
    """Connections whose input and output continues while a call waits."""

    def poll(self, timeout_ms: float, now_ms: float, /) -> object:
        """Send and receive what is possible; wait at most `timeout_ms` for the first event."""
        ...


class NetworkWait(NamedTuple):
    """A wait for events of connections.

    Attributes:
        network: The connections.
        until_ms: Deadline in the clock's milliseconds.
    """

    network: Network
    until_ms: float

    def block(self, clock: Clock, until_ms: float = math.inf) -> None:
        """Poll the connections once."""
        now_ms = clock.monotonic_ms()
        self.network.poll(max(0.0, min(self.until_ms, until_ms) - now_ms), now_ms)


class ConditionWait(NamedTuple):
    """A wait for a change that another thread makes.

    Attributes:
        condition: Is notified of changes; `is_met` is called with its lock held.
        is_met: Whether the change was made.
        until_ms: Deadline in the clock's milliseconds; infinity waits without limit.
        task: Task that makes the change, if it can use the waiting thread.
    """

    condition: Condition
    is_met: Callable[[], bool]
    until_ms: float
    task: Task | None = None

    def block(self, clock: Clock, until_ms: float = math.inf) -> None:
        """Wait for the condition, or use the time to run the task."""
        wait = self if until_ms >= self.until_ms else self._replace(until_ms=until_ms)
        if self.task is None:
            wait.await_notification(clock)
        else:
            self.task.await_change(wait, clock)

    def await_notification(self, clock: Clock) -> None:
        """Wait for the condition."""
        timeout = seconds_until(self.until_ms, clock)
        with self.condition:
            self.condition.wait_for(self.is_met, timeout)


class TaskWait(NamedTuple):
    """A wait for the end of a task.

    Attributes:
        task: The task.
        until_ms: Deadline in the clock's milliseconds; infinity waits without limit.
    """

    task: Task
    until_ms: float

    def block(self, clock: Clock, until_ms: float = math.inf) -> None:
        """Join the task."""
        self.task.join(seconds_until(min(self.until_ms, until_ms), clock))


class CodeWait(NamedTuple):
    """A wait for the end of a coroutine of the application; its exception ends the wait.

    Attributes:
        code: The coroutine, not started.
    """

    code: Coroutine[Any, Any, object]

    def block(self, clock: Clock, until_ms: float = math.inf) -> None:
        """Refuse to run the coroutine: a blocking client has no event loop.

        Raises:
            InvalidTypeError: Always.
        """
        self.code.close()
        raise InvalidTypeError(
            f"callback: got a function that returned the coroutine {self.code!r:.80}, expected a "
            "plain function; kclient.aio.Consumer awaits coroutines in poll and unsubscribe"
        )


def seconds_until(until_ms: float, clock: Clock) -> float | None:
    """Return the time until a deadline in the clock's milliseconds, None for infinity."""
    if until_ms == math.inf:
        return None
    return max(0.0, until_ms - clock.monotonic_ms()) / 1000.0


def perform(steps: Steps[T], clock: Clock) -> T:
    """Perform the waits of a call or of a loop in the calling thread; return its result.

    An exception of a wait is raised in the steps where they yielded the wait.
    """
    try:
        wait = next(steps)
        while True:
            try:
                wait.block(clock)
            except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                wait = steps.throw(error)
            else:
                wait = next(steps)
    except StopIteration as returned:
        result: T = returned.value
        return result


def run_steps(steps: Steps[T], clock: Clock) -> T:
    """Run a call in the calling thread, waiting where it asks to; return its result.

    Signals take effect in the waits and at the end, see `deferred_signals`.
    """
    with deferred_signals():
        return perform(steps, clock)
