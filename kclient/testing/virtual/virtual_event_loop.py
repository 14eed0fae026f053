"""asyncio event loop of a virtual process, in virtual time."""

import asyncio
import selectors
from asyncio.events import _set_running_loop
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any, NoReturn, TypeVarTuple, Unpack

from kclient.common.runtime import Clock
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler
from kclient.testing.virtual.virtual_task import ProcessKilledError, SimulationError, VirtualTask

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_process import VirtualProcess

Ts = TypeVarTuple("Ts")

# Loops of dead processes. If they were freed, the ``finally`` blocks of their coroutines would run.
_dead: list["VirtualEventLoop"] = []


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """Event loop whose time is that of a virtual machine, and which watches virtual pollers.

    It has no descriptor and no thread of the system: `run_in_executor` and transports are refused.
    """

    def __init__(self, process: "VirtualProcess", scheduler: VirtualScheduler) -> None:
        self._waiting = _VirtualSelector(self, process, scheduler)
        self._clock: Clock = process.machine.clock
        super().__init__(self._waiting)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._clock.monotonic_ms() / 1000.0

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call a function in the next iteration; another task of the process may ask for it."""
        handle = super().call_soon(callback, *args, context=context)
        self._waiting.wake()
        return handle

    def run_in_executor(self, executor: object, func: object, *args: object) -> NoReturn:
        """Refuse to start a thread.

        Raises:
            SimulationError: Always.
        """
        raise SimulationError(f"{func}: threads have no virtual time")

    def _make_self_pipe(self) -> None:
        """Create no sockets of the system."""

    def _close_self_pipe(self) -> None:
        """Close nothing."""

    def _write_to_self(self) -> None:
        self._waiting.wake()


class _VirtualSelector(selectors.BaseSelector):
    """Waits in virtual time until a poller of the process is ready."""

    def __init__(
        self, loop: VirtualEventLoop, process: "VirtualProcess", scheduler: VirtualScheduler
    ) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}  # by descriptor
        self._loop = loop
        self._process = process
        self._scheduler = scheduler
        self._parked: VirtualTask | None = None  # the task of the loop, while it waits

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch the poller with a descriptor."""
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, fileobj, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Stop watching."""
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return the keys by descriptor."""
        return self._keys

    def wake(self) -> None:
        """End the present wait."""
        if self._parked is not None:
            self._scheduler.wake(self._parked)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the keys that are ready; other tasks of the simulation run meanwhile."""
        keys = list(self._keys.values())
        pollers = [self._process.poller_of(key.fd) for key in keys]
        task = self._parked = self._scheduler.current
        ready = [poller.watch(task) for poller in pollers]
        # Time passes for a loop that is busy, too.
        wait_ms = 0.0 if any(ready) else None if timeout is None else timeout * 1000.0
        _set_running_loop(None)  # the tasks of other processes run in the same thread
        try:
            self._scheduler.park(wait_ms, f"the event loop of {self._process.name}")
        finally:
            _set_running_loop(self._loop)
            self._parked = None
            for poller in pollers:
                poller.unwatch(task)
        found = [key for key, poller in zip(keys, pollers, strict=True) if poller.is_ready()]
        return [(key, key.events) for key in found]


def run_in_virtual_loop(
    process: "VirtualProcess",
    scheduler: VirtualScheduler,
    main: Coroutine[Any, Any, object],
) -> object:
    """Run a coroutine in a new event loop, and close the loop; return its result."""
    loop = VirtualEventLoop(process, scheduler)
    try:
        result = loop.run_until_complete(main)
    except ProcessKilledError:
        _dead.append(loop)
        raise
    finally:
        if loop not in _dead:
            loop.close()
    return result
