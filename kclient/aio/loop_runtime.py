"""Runtime of clients on an asyncio event loop: nothing of it blocks, and no client has a thread."""

import math
from collections.abc import Callable
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kclient.common.errors import IllegalStateError
from kclient.common.runtime import (
    Address,
    Clock,
    Condition,
    Lock,
    Net,
    Poller,
    Task,
    Tasks,
)
from kclient.common.waiting import Steps

if TYPE_CHECKING:
    from kclient.aio.loop_driver import LoopDriver
    from kclient.aio.loop_turns import LoopWait


@runtime_checkable
class WatchedPoller(Poller, Protocol):
    """Poller whose descriptor an event loop watches: of the system, or of a simulation."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while `poll` would return at once."""
        ...


class LoopCondition:
    """Condition of one event loop, where no other code runs between two waits.

    Its lock is always free. `LoopDriver` adds the waits.

    Attributes:
        waits: Waits that have not ended, the oldest first.
    """

    __slots__ = ("waits",)

    def __init__(self) -> None:
        self.waits: list[LoopWait] = []

    def __enter__(self) -> bool:
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        pass

    def wait(self, timeout: float | None = None) -> bool:
        """Refuse to block the loop.

        Raises:
            IllegalStateError: Always.
        """
        raise IllegalStateError(f"a client of an event loop waited {timeout} s outside of steps")

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Return `predicate()`; refuse to wait for it.

        Raises:
            IllegalStateError: It is false, and `timeout` is not 0.
        """
        met = predicate()
        return met if met or timeout == 0 else self.wait(timeout)

    def notify(self, n: int = 1) -> None:
        """End up to `n` waits that are met."""
        for each in self.waits[:n]:
            if not each.check():
                each.check_later()  # the caller may change more before it returns to the loop

    def notify_all(self) -> None:
        """End every wait that is met."""
        self.notify(len(self.waits))


class LoopPoller:
    """Poller that never waits; it notes how long the caller would have waited.

    Attributes:
        wait_ms: How long the last `poll` would have waited; 0 if it returned events.
    """

    def __init__(self, driver: "LoopDriver", poller: WatchedPoller) -> None:
        """Poll another poller for a driver."""
        self._driver = driver
        self._poller = poller
        self.wait_ms = 0.0
        self.register = poller.register
        self.modify = poller.modify
        self.unregister = poller.unregister
        self.fileno = poller.fileno
        self.wakeup = driver.wakeup

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return what is ready now."""
        found = self._poller.poll(0)
        if found:
            self._driver.received()
        self.wait_ms = 0.0 if found else math.inf if timeout_ms is None else timeout_ms
        return found

    def close(self) -> None:
        """Release the descriptors, after the loop has stopped watching them."""
        self._driver.poller_closes()
        self._poller.close()


class LoopNet:
    """Network of a runtime, with a poller that does not wait."""

    def __init__(self, net: Net, poller: LoopPoller) -> None:
        self._poller = poller
        self.look_up = net.look_up
        self.connect = net.connect
        self.listen = net.listen

    def resolve(self, host: str, port: int) -> list[Address]:
        """Refuse to block the loop.

        Raises:
            IllegalStateError: Always.
        """
        raise IllegalStateError(f"{host}:{port} was looked up by a call that blocks")

    def poller(self, *, waits: bool = True) -> Poller:
        """Return a poller that does not wait."""
        return self._poller


def watched_poller(net: Net) -> WatchedPoller:
    """Return a poller that an event loop can watch.

    Raises:
        IllegalStateError: The runtime has none.
    """
    poller = net.poller(waits=False)
    if not isinstance(poller, WatchedPoller):
        raise IllegalStateError(f"{type(poller).__name__}: an event loop cannot watch it")
    return poller


class LoopTasks:
    """Loops of steps as callbacks of the event loop; the callers of a client are its tasks."""

    def __init__(self, driver: "LoopDriver", tasks: Tasks) -> None:
        self._driver = driver
        self.process_id = tasks.process_id
        self.after_fork = tasks.after_fork

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Refuse a loop that may block.

        Raises:
            IllegalStateError: Always.
        """
        raise IllegalStateError(f"{name}: {step} may block, and cannot run in an event loop")

    def run(self, name: str, steps: Steps[None], clock: Clock) -> Task:
        """Run a loop of steps in callbacks, as soon as the client is bound to a loop."""
        return self._driver.start(name, steps)

    def run_shared(
        self,
        name: str,
        steps: Steps[None],
        clock: Clock,
        wakeup: Callable[[], None],
        has_work: Callable[[], bool],
    ) -> Task:
        """Run a loop of steps in callbacks, as `run` does: all run in one thread."""
        return self.run(name, steps, clock)

    def condition(self) -> Condition:
        """Return a condition without a lock of the system."""
        return LoopCondition()

    def lock(self) -> Lock:
        """Return a lock that is always free, of the kind that compiled code acquires itself."""
        return RLock()

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Register nothing: the event loop that `callback` needs has ended at that time."""
        return _nothing

    def caller_id(self) -> int:
        """Return an id of the running loop of steps; all tasks of the event loop have one id.

        Between two waits no other task runs, so that their calls may be in progress together.
        """
        return id(self._driver.running or self._driver)


def _nothing() -> None:
    return
