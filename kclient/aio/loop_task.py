"""Loop of a client's steps in callbacks of an asyncio event loop."""

import logging
import math
from contextvars import Context
from typing import TYPE_CHECKING, TypeVar

from kclient.common.errors import IllegalStateError
from kclient.common.interrupts import deferred_signals
from kclient.common.runtime import Clock
from kclient.common.waiting import CodeWait, ConditionWait, Steps, TaskWait, Wait, seconds_until

if TYPE_CHECKING:
    from kclient.aio.loop_driver import LoopDriver
    from kclient.aio.loop_turns import LoopWait

T = TypeVar("T")

# Of a loop without its event loop: enough to close connections, and it never waits for brokers.
_MOST_LAST_STEPS = 10

_log = logging.getLogger(__name__)


class LoopTask:
    """Loop of a client's steps, which callbacks of the event loop run.

    Attributes:
        name: Name, for log lines.
        waits: Waits for its end.
    """

    def __init__(
        self,
        name: str,
        steps: Steps[None],
        driver: "LoopDriver",
        context: Context | None = None,
        code_until_ms: float = math.inf,
    ) -> None:
        """Create a loop; `advance` starts it.

        Args:
            name: Name, for log lines.
            steps: The loop.
            driver: Driver of the client.
            context: Context of a call of the application that continues without its task: it has
                the caller id of a task. None for a loop of the client.
            code_until_ms: When coroutines of the application that the loop awaits are cancelled.
        """
        self.name = name
        self.waits: list[LoopWait] = []
        self._steps = steps
        self._driver = driver
        self._context = context
        self._code_until_ms = code_until_ms
        self._ended = False

    def advance(self, error: BaseException | None = None) -> None:
        """Run to the next wait, or to the end; an error is raised in the present wait."""
        driver, context = self._driver, self._context
        outer, driver.running = driver.running, self if context is None else None
        try:
            wait = self._resume(error) if context is None else context.run(self._resume, error)
        except StopIteration:
            self._end()
        except BaseException:
            # The top of a thread elsewhere: there is no caller.
            _log.exception("%s ended by an unexpected error", self.name)
            self._end()
            raise
        else:
            if type(wait) is CodeWait:
                limit_s = seconds_until(self._code_until_ms, driver.runtime.clock)
                driver.code.start(wait.code, driver.bind(), self.advance, context, limit_s)
            else:
                driver.bind().watch(wait, self.advance)
        finally:
            driver.running = outer

    def _resume(self, error: BaseException | None) -> Wait:
        # A turn defers signals already.
        return next(self._steps) if error is None else self._steps.throw(error)

    def run_out(self) -> None:
        """Run to the end without waiting, after a request to end."""
        for _ in range(_MOST_LAST_STEPS):
            if next(self._steps, None) is None:
                return
        self._steps.close()

    def discard(self) -> None:
        """End a loop whose event loop has ended, without running it."""
        self._steps.close()

    def _end(self) -> None:
        self._ended = True
        self._driver.ended(self)
        for each in list(self.waits):
            each.check()

    def until_ended(self) -> Steps[None]:
        """Wait for the end of the loop."""
        while not self._ended:
            yield TaskWait(self, math.inf)

    def has_ended(self) -> bool:
        """Return whether the loop has ended."""
        return self._ended

    def join(self, timeout: float | None = None) -> bool:
        """Return whether the loop has ended; refuse to wait for it.

        Raises:
            IllegalStateError: It has not ended, and `timeout` is not 0.
        """
        if not self._ended and timeout != 0:
            raise IllegalStateError(f"the end of {self.name} was awaited outside of steps")
        return self._ended

    def is_alive(self) -> bool:
        """Return whether the loop is running."""
        return not self._ended

    def is_current(self) -> bool:
        """Return whether the caller runs in this loop."""
        return self._driver.running is self

    def needs_wakeup(self) -> bool:
        """Return True."""
        return True

    def await_change(self, wait: ConditionWait, clock: Clock) -> None:
        """Wait for the notification of a change."""
        wait.await_notification(clock)


def resume(steps: Steps[T], error: BaseException | None) -> Wait:
    """Run steps up to their next wait; an error is raised where they wait."""
    with deferred_signals():
        return next(steps) if error is None else steps.throw(error)
