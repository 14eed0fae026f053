"""Calls of an asyncio consumer in progress, and its close, which ends them."""

import math
from contextvars import copy_context
from typing import TypeVar

from kclient.aio.loop_driver import LoopDriver
from kclient.aio.loop_task import LoopTask
from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
    WakeupError,
)
from kclient.common.waiting import ConditionWait, Steps
from kclient.consumer.consumer_core import ConsumerCore

R = TypeVar("R")

_CALL_ENDS_MS = 100.0


class ConsumerCalls:
    """Runs the calls of a consumer, and closes it when they have ended.

    It has no reference to the consumer: one whose event loop ends during `close` is collected.
    """

    def __init__(self, core: ConsumerCore, driver: LoopDriver) -> None:
        """Run calls of a core in the event loop of a driver."""
        self._core = core
        self._driver = driver
        self._code = driver.code
        self._ended = driver.code.ended  # also notified of the end of each call
        self._monotonic_ms = driver.runtime.clock.monotonic_ms
        self._count = 0  # in progress
        self._closing: LoopTask | None = None
        self._error: BaseException | None = None  # of `close`

    def is_closing(self) -> bool:
        """Return whether `close` was called, and has not failed to end the calls."""
        return self._closing is not None

    def close_continues(self) -> bool:
        """Return whether the event loop still runs a close whose call may have been cancelled."""
        closing = self._closing
        return closing is not None and closing.is_alive() and self._driver.has_loop()

    def check_open(self) -> None:
        """Refuse a call during `close`, except those of callbacks.

        Raises:
            ClosedError: The consumer is being closed, and no callback makes the call.
        """
        if (
            self._closing is not None
            and not self._code.is_inside()
            and not self._core.lock.is_running_user_code
        ):
            raise ClosedError("this consumer was closed")

    async def run(self, steps: Steps[R]) -> R:
        """Run a call; `close` ends it.

        Raises:
            ClosedError: The consumer is being closed, and no callback makes the call.
        """
        if self._closing is not None:
            self.check_open()
        self._count += 1
        try:
            return await self._driver.run(steps)
        except WakeupError:
            if self._closing is not None:
                raise ClosedError("this consumer was closed during the call") from None
            raise
        finally:
            self._count -= 1
            self._ended.notify_all()

    async def run_after_callbacks(self, steps: Steps[R]) -> R:
        """Run a call that calls the callbacks, when none of them runs in another task."""
        return await self.run(self._after_callbacks(steps))

    def _after_callbacks(self, steps: Steps[R]) -> Steps[R]:
        while self._code.running and not self._code.is_inside():
            yield ConditionWait(self._ended, lambda: not self._code.running, math.inf)
        self.check_open()
        return (yield from steps)

    async def close(self, timeout_ms: float, *, commit: bool) -> None:
        """Close the core, as `Consumer.close`."""
        if self._code.is_inside():
            raise IllegalStateError(
                "close: got a call of a rebalance callback, which it would wait for, expected one "
                "after the callback has returned"
            )
        closing = self._closing
        if closing is None:
            self._driver.bind()
            if not commit:
                self._core.skip_last_commit()
            deadline_ms = self._monotonic_ms() + timeout_ms
            closing = self._closing = self._driver.start(
                "close", self._close(deadline_ms), copy_context(), deadline_ms
            )
        await self._driver.run(closing.until_ended())
        error, self._error = self._error, None
        if error is not None:
            raise error
        if not self._core.is_closed():
            raise ConcurrentAccessError(
                "close: a rebalance callback did not end in time; the consumer is not closed"
            )

    def abandon(self) -> None:
        """Close the connections of a consumer that its application has dropped, from any thread."""
        core, closing = self._core, self._closing

        def close() -> None:
            core.stop_background()
            core.network.close()

        def close_without_loop() -> None:
            if closing is not None:
                closing.discard()
            close()

        self._driver.abandon(close, close_without_loop)

    def _close(self, deadline_ms: float) -> Steps[None]:
        # Calls end within a turn of the event loop, which a timeout of 0 does not exclude.
        yield from self._end_calls(max(deadline_ms, self._monotonic_ms() + _CALL_ENDS_MS))
        if self._count:  # a callback of the application still runs
            self._closing = None
            return
        try:
            yield from self._core.close_until(deadline_ms)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 (raised by `close`)
            self._error = error

    def _end_calls(self, deadline_ms: float) -> Steps[None]:
        """End the calls in progress; wait for callbacks, whose own calls must not end early."""
        while self._count:
            count, running = self._count, len(self._code.running)

            def has_changed(count: int = count, running: int = running) -> bool:
                return self._count < count or len(self._code.running) != running

            if self._monotonic_ms() >= deadline_ms:
                return
            if not running:
                self._core.wakeup()  # ends one of them
            yield ConditionWait(self._ended, has_changed, deadline_ms)
