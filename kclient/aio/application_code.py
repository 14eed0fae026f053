"""Coroutines of the application that a client awaits, such as rebalance callbacks."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from kclient.aio.loop_runtime import LoopCondition
from kclient.common.errors import KafkaTimeoutError

if TYPE_CHECKING:
    from kclient.aio.loop_turns import LoopTurns

_inside: ContextVar[tuple[object, ...]] = ContextVar("kclient.application_code", default=())


class ApplicationCode:
    """Coroutines of the application that one client awaits.

    Attributes:
        running: An object for each coroutine that has not ended.
        ended: Is notified of the end of each coroutine.
    """

    def __init__(self) -> None:
        self.running: list[object] = []
        self.ended = LoopCondition()
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop has weak references only

    def is_inside(self) -> bool:
        """Return whether the caller runs in such a coroutine, or in a task that one has created."""
        return bool(self.running) and any(each in self.running for each in _inside.get())

    async def run(self, code: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine in the calling task, whose cancellation is raised in it."""
        this, outer = object(), _inside.get()
        self.running.append(this)
        _inside.set((*outer, this))
        try:
            await code
        finally:
            _inside.set(outer)
            self.running.remove(this)
            self.ended.notify_all()

    def start(
        self,
        code: Coroutine[Any, Any, object],
        turns: "LoopTurns",
        ended: Callable[[BaseException | None], None],
        context: Context | None,
        limit_s: float | None,
    ) -> None:
        """Run a coroutine in a task of its own.

        Args:
            code: The coroutine.
            turns: Turns of the client, in which `ended` is called.
            ended: Called at the end, with the error of the coroutine if there is one.
            context: Context of the task, None for a copy of the present one.
            limit_s: Time after which the coroutine is cancelled, None for no limit.
        """
        task = turns.loop.create_task(self._run_limited(code, limit_s), context=context)

        def report(_: object) -> None:
            self._tasks.discard(task)
            code.close()  # if the task was cancelled before it began
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            turns.call_soon(partial(ended, error))

        self._tasks.add(task)
        task.add_done_callback(report)

    async def _run_limited(self, code: Coroutine[Any, Any, object], limit_s: float | None) -> None:
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                await self.run(code)
        except TimeoutError:
            if not limit.expired():
                raise
            name = getattr(code, "__qualname__", type(code).__name__)
            raise KafkaTimeoutError(
                f"callback {name}: did not end within the timeout of close and was cancelled"
            ) from None
