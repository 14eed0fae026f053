"""Driver of a client on an asyncio event loop: performs the waits of its calls and loops.

A call runs in the task that awaits it. A loop of the client, such as the producer's sender, runs in
callbacks of the event loop and is no task, so that nothing outside of the client can cancel it.
"""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from threading import get_ident
from typing import TypeVar

from kclient.aio.application_code import ApplicationCode
from kclient.aio.loop_runtime import (
    LoopNet,
    LoopPoller,
    LoopTasks,
    WatchedPoller,
    watched_poller,
)
from kclient.aio.loop_task import LoopTask, resume
from kclient.aio.loop_turns import LoopTurns
from kclient.common.errors import ForkedClientError, IllegalStateError
from kclient.common.runtime import Runtime
from kclient.common.waiting import CodeWait, Steps
from kclient.network.system_runtime import system_runtime

T = TypeVar("T")

# Drivers with open connections, and pollers of those whose event loop has ended; these refer to
# the sockets, and not to the client. The garbage collector may finalize a cycle in any
# order: without this, sockets would be finalized before the client that closes them.
_open: set["LoopDriver"] = set()
_without_loop: set[WatchedPoller] = set()


class LoopDriver:
    """Performs the waits of one client.

    Attributes:
        runtime: Runtime of the client.
        running: Loop of steps that runs now, None in a task or in a call.
        code: Coroutines of the application that the client awaits.
        on_late: Called for timers and callbacks of the client that run late, with the times when
            each was due and when it ran, in the clock's milliseconds.
    """

    def __init__(self, name: str, runtime: Runtime | None = None) -> None:
        """Create a driver that binds itself to the event loop of the first call.

        Args:
            name: Name of the client, for errors.
            runtime: Clock, network and files, for simulations; the system's by default.
        """
        self._name = name
        self.running: LoopTask | None = None
        self.code = ApplicationCode()
        self.on_late: Callable[[float, float], None] = _nothing
        runtime = system_runtime() if runtime is None else runtime
        self._watched = watched_poller(runtime.net)
        self._poller = LoopPoller(self, self._watched)
        self.runtime = runtime._replace(
            tasks=LoopTasks(self, runtime.tasks), net=LoopNet(runtime.net, self._poller)
        )
        self._turns: LoopTurns | None = None  # once the client is bound to a loop
        self._thread = 0
        self._process = self.runtime.tasks.process_id()
        self._tasks: list[LoopTask] = []  # that have not ended

    def bind(self) -> LoopTurns:
        """Bind the client to the running event loop at its first call.

        Raises:
            IllegalStateError: The client is bound to another loop, or the loop is unsuitable.
            ForkedClientError: The client is bound to a loop of the parent process.
        """
        loop, process = asyncio.get_running_loop(), self.runtime.tasks.process_id()
        turns = self._turns
        if turns is not None:
            if turns.loop is not loop or self._process != process:
                self._refuse(turns.loop)
            return turns
        turns = LoopTurns(loop, self._poller, self.runtime.clock, self._name, self.on_late)
        self._turns, self._thread, self._process = turns, get_ident(), process
        _release_ended()
        _open.add(self)
        for each in self._tasks:
            turns.call_soon(each.advance)
        return turns

    def _refuse(self, bound: asyncio.AbstractEventLoop) -> None:
        process = self.runtime.tasks.process_id()
        if process != self._process:
            raise ForkedClientError(
                f"{self._name}: bound to an event loop of process {self._process}, this is "
                f"{process}; create a client after fork()"
            )
        state = "closed" if bound.is_closed() else "not the loop that runs"
        raise IllegalStateError(
            f"{self._name}: the event loop of its first call is {state}; "
            "create a client in each event loop, and close it there"
        )

    async def run(self, steps: Steps[T]) -> T:
        """Run a call; its waits suspend the calling task, whose cancellation is raised there."""
        turns = self.bind()
        try:
            wait = resume(steps, None)
            while True:
                try:
                    if type(wait) is CodeWait:
                        await self.code.run(wait.code)
                    else:
                        await turns.perform(wait)
                except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                    wait = resume(steps, error)
                else:
                    wait = resume(steps, None)
        except StopIteration as returned:
            result: T = returned.value
            return result

    def start(
        self,
        name: str,
        steps: Steps[None],
        context: Context | None = None,
        code_until_ms: float = math.inf,
    ) -> LoopTask:
        """Run a loop of the client in callbacks, once the client is bound to an event loop.

        Args:
            name: Name, for log lines.
            steps: The loop.
            context: Context of the application, if this is one of its calls.
            code_until_ms: When coroutines of the application that the loop awaits are cancelled.
        """
        task = LoopTask(name, steps, self, context, code_until_ms)
        self._tasks.append(task)
        if self._turns is not None:
            self._turns.call_soon(task.advance)
        return task

    def ended(self, task: LoopTask) -> None:
        """Forget a loop that has ended."""
        self._tasks.remove(task)

    def received(self) -> None:
        """Let the calls that wait for the network continue, after another call has polled it."""
        if self._turns is not None:
            self._turns.received()

    def has_loop(self) -> bool:
        """Return whether the client's event loop may still run it."""
        return self._turns is not None and not self._turns.loop.is_closed()

    def abandon(self, in_loop: Callable[[], None], without_loop: Callable[[], None]) -> None:
        """Close a client that its application has dropped, from any thread.

        Args:
            in_loop: Closes the client in its event loop.
            without_loop: Closes the client and ends its loops, if the event loop has ended.
        """
        if self._turns is not None and not self._turns.loop.is_closed():
            self._turns.call_soon_from_thread(in_loop)
            return
        without_loop()
        for each in self._tasks:
            each.run_out()

    def wakeup(self) -> None:
        """End the present waits for the network. For any thread."""
        turns = self._turns
        if turns is None or turns.loop.is_closed():
            return  # nothing waits
        if get_ident() == self._thread:
            turns.turn_soon()
        else:
            turns.call_soon_from_thread(turns.turn_soon)

    def turn_now(self) -> None:
        """Send what is due at once, see `LoopTurns.turn_now`."""
        if self._turns is not None:
            self._turns.turn_now()

    def keep_poller_only(self) -> None:
        """Let the client be collected if its application has dropped it: its loop has ended."""
        _open.discard(self)
        _without_loop.add(self._watched)

    def poller_closes(self) -> None:
        """Stop watching the poller, before it is closed."""
        _open.discard(self)
        _without_loop.discard(self._watched)
        # In the child of a fork, the descriptor is watched by the parent.
        if self._turns is not None and self.runtime.tasks.process_id() == self._process:
            self._turns.stop_watching()


def _release_ended() -> None:
    for each in [driver for driver in _open if not driver.has_loop()]:
        each.keep_poller_only()


def _nothing(due_ms: float, now_ms: float) -> None:
    return
