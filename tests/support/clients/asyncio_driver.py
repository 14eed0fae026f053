"""Driver that performs the waits of clients on an asyncio event loop, without a thread.

It shows what an asyncio API needs: a runtime whose poller returns at once and reports how long it
would have waited, whose conditions wake coroutines, and whose loops are asyncio tasks. Everything
else is the code of the blocking clients.
"""

import asyncio
import math
import os
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from kclient.common.runtime import (
    Address,
    Clock,
    Condition,
    Listener,
    Lock,
    LookUp,
    Poller,
    Runtime,
    StreamSocket,
    Task,
)
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemClock
from kclient.common.waiting import ConditionWait, NetworkWait, Steps, TaskWait, Wait
from kclient.network.name_resolver import NameLookUp
from kclient.network.system_net import SystemNet, SystemPoller
from tests.support.clients.step_condition import StepCondition, WouldBlockError

T = TypeVar("T")

Resolve = Callable[[str], Awaitable[list[str]]]
"""Resolver of names to IP addresses that does not block and needs no thread."""


class LoopDriver:
    """Performs the waits of steps in coroutines of the running event loop.

    Attributes:
        runtime: Runtime for the clients.
        polls: Number of polls that asked for input and output.
    """

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = SystemClock()
        # The poller that a client has polled last, and how long that poll would have waited.
        self._polled: tuple[LoopPoller | None, float] = (None, 0.0)
        self.polls = 0
        self._net = LoopNet(self, resolve or _no_names)
        self.runtime = Runtime(
            self._clock, random.Random(), LoopTasks(self), self._net, SystemFiles()
        )

    async def run(self, steps: Steps[T]) -> T:
        """Run a call or a loop; return its result.

        The cancellation of the caller is raised in the steps where they wait.
        """
        try:
            wait = next(steps)
            while True:
                try:
                    await self._perform(wait)
                except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                    wait = steps.throw(error)
                else:
                    wait = next(steps)
        except StopIteration as returned:
            result: T = returned.value
            return result

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a coroutine as a task of the loop."""
        return self._loop.create_task(coroutine)

    async def cancel_look_ups(self) -> None:
        """Cancel the look-ups in progress: they outlive their client, as those in threads do."""
        await self._net.cancel_look_ups()

    def note_poll(self, poller: "LoopPoller", timeout_ms: float) -> None:
        """Note that a client polled, and how long it would have waited."""
        self.polls += 1
        self._polled = (poller, timeout_ms)

    async def _perform(self, wait: Wait) -> None:
        match wait:
            case NetworkWait():
                await self._poll(wait)
            case ConditionWait():
                await self._until_met(wait)
            case TaskWait(LoopTask() as task):
                await asyncio.wait([task.task], timeout=self._seconds(wait.until_ms))
            case _:
                raise TypeError(f"{wait!r}: the driver does not know this wait")

    async def _poll(self, wait: NetworkWait) -> None:
        """Poll, wait for as long as that poll would have waited, and poll again."""
        self._last_poll()  # discard that of a call that did not wait
        wait.block(self._clock)
        poller, timeout_ms = self._last_poll()
        if poller is None or timeout_ms <= 0:
            await asyncio.sleep(0)  # others run as well
            return
        await poller.ready(None if math.isinf(timeout_ms) else timeout_ms / 1000.0)
        wait.network.poll(0.0, self._clock.monotonic_ms())

    def _last_poll(self) -> "tuple[LoopPoller | None, float]":
        """Return once what `note_poll` noted; a client with responses to complete does not poll."""
        polled, self._polled = self._polled, (None, 0.0)
        return polled

    async def _until_met(self, wait: ConditionWait) -> None:
        condition = wait.condition
        assert isinstance(condition, LoopCondition)
        while not wait.is_met():
            seconds = self._seconds(wait.until_ms)
            if seconds == 0:
                return
            await condition.notified(seconds)

    def _seconds(self, until_ms: float) -> float | None:
        if math.isinf(until_ms):
            return None
        return max(0.0, until_ms - self._clock.monotonic_ms()) / 1000.0


class LoopPoller:
    """Poller that never waits: it reports to the driver how long it would have waited."""

    def __init__(self, driver: LoopDriver) -> None:
        self._driver = driver
        self._poller = SystemPoller()
        self._waiting: asyncio.Future[None] | None = None
        self.register = self._poller.register
        self.modify = self._poller.modify
        self.unregister = self._poller.unregister
        self.wakeup = self._poller.wakeup

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return what is ready now."""
        found = self._poller.poll(0.0)
        longest_ms = math.inf if timeout_ms is None else timeout_ms
        self._driver.note_poll(self, 0.0 if found else longest_ms)
        return found

    async def ready(self, timeout: float | None) -> None:
        """Wait up to `timeout` seconds until `poll` returns something, or for `wakeup`."""
        if self._waiting is not None:
            raise AssertionError("two callers wait for one poller")
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        descriptor = self._poller.fileno()
        loop.add_reader(descriptor, _finish, self._waiting)
        try:
            await asyncio.wait([self._waiting], timeout=timeout)
        finally:
            self._waiting = None
            loop.remove_reader(descriptor)

    def close(self) -> None:
        """Release the descriptors."""
        if self._waiting is not None:
            raise AssertionError("the poller is closed while a caller waits for it")
        self._poller.close()


class LoopCondition(StepCondition):
    """Condition of coroutines of one loop."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` coroutines."""
        while n > 0 and self._waiting:
            _finish(self._waiting.popleft())
            n -= 1

    def notify_all(self) -> None:
        """Wake every coroutine."""
        self.notify(len(self._waiting))

    async def notified(self, timeout: float | None) -> None:
        """Wait up to `timeout` seconds for a notification."""
        self.check_free()
        woken = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        try:
            await asyncio.wait([woken], timeout=timeout)
        finally:
            if woken in self._waiting:
                self._waiting.remove(woken)


class LoopTask:
    """Loop of steps that runs as an asyncio task.

    Attributes:
        task: The asyncio task.
    """

    def __init__(self, name: str, task: asyncio.Task[None]) -> None:
        self.name = name
        self.task = task

    def join(self, timeout: float | None = None) -> bool:
        """Return whether it has ended, if that needs no wait."""
        if not self.task.done() and timeout != 0:
            raise WouldBlockError(f"the end of {self.name} was awaited outside of steps")
        return self.task.done()

    def is_alive(self) -> bool:
        """Return whether it is still running."""
        return not self.task.done()

    def is_current(self) -> bool:
        """Return whether the caller runs in it."""
        return asyncio.current_task() is self.task


class LoopTasks:
    """Loops of steps as asyncio tasks; the caller of a client is a task as well."""

    def __init__(self, driver: LoopDriver) -> None:
        self._driver = driver

    def spawn(self, name: str, _step: Callable[[], bool]) -> Task:
        """Refuse a step that may block."""
        raise WouldBlockError(f"{name}: a loop that blocks was started")

    def run(self, name: str, steps: Steps[None], _clock: Clock) -> Task:
        """Run a loop of steps in an asyncio task."""
        return LoopTask(name, self._driver.start(self._driver.run(steps)))

    def condition(self) -> Condition:
        """Return a condition of coroutines."""
        return LoopCondition()

    def lock(self) -> Lock:
        """Return a lock that is always free."""
        return LoopCondition()

    def process_id(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def after_fork(self, _callback: Callable[[], None]) -> Callable[[], None]:
        """Register nothing: no program of the tests forks its loop."""
        return lambda: None

    def at_exit(self, _callback: Callable[[], None]) -> Callable[[], None]:
        """Register nothing: the program closes its clients before the loop ends."""
        return lambda: None

    def caller_id(self) -> int:
        """Return an id of the running asyncio task."""
        return id(asyncio.current_task())


class LoopNet:
    """Sockets of this machine, with pollers that do not wait and a resolver of coroutines."""

    def __init__(self, driver: LoopDriver, resolve: Resolve) -> None:
        self._driver = driver
        self._resolve = resolve
        self._net = SystemNet()
        self._look_ups: set[asyncio.Task[None]] = set()

    def resolve(self, host: str, port: int) -> list[Address]:
        """Refuse to block the loop."""
        raise WouldBlockError(f"{host}:{port} was looked up by a call that blocks")

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start to look a name up in a coroutine; an IP address is returned at once."""
        if _is_numeric(host):
            return self._net.look_up(host, port, on_done)
        look_up = NameLookUp(host, port)
        task = self._driver.start(self._look_up(look_up, on_done))
        self._look_ups.add(task)
        task.add_done_callback(self._look_ups.discard)
        return look_up

    async def cancel_look_ups(self) -> None:
        """Cancel the look-ups in progress."""
        for task in self._look_ups:
            task.cancel()
        await asyncio.gather(*self._look_ups, return_exceptions=True)

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start connecting."""
        return self._net.connect(address, send_buffer, receive_buffer)

    def listen(self, address: Address, backlog: int) -> Listener:
        """Bind and listen."""
        return self._net.listen(address, backlog)

    def poller(self) -> Poller:
        """Return a poller that does not wait."""
        return LoopPoller(self._driver)

    async def _look_up(self, look_up: NameLookUp, on_done: Callable[[], None]) -> None:
        try:
            found = await self._resolve(look_up.host)
        except OSError as error:
            look_up.end(error)
        else:
            look_up.end([(ip, look_up.port) for ip in found])
        on_done()


async def _no_names(host: str) -> list[str]:
    raise OSError(f"{host}: this driver was given no resolver")


def _is_numeric(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
