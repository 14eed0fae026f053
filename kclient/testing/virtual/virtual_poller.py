"""Readiness of the sockets of a virtual network."""

from typing import TYPE_CHECKING

from kclient.common.interrupts import signals_take_effect
from kclient.common.runtime import Listener, StreamSocket
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler
from kclient.testing.virtual.virtual_socket import VirtualListener, VirtualSocket
from kclient.testing.virtual.virtual_task import VirtualTask

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_process import VirtualProcess

Source = VirtualSocket | VirtualListener


class VirtualPoller:
    """Readiness of many virtual sockets.

    They are returned in random order, like real ones; in the order of registration without a seed.
    """

    def __init__(
        self, process: "VirtualProcess", scheduler: VirtualScheduler, *, waits: bool = True
    ) -> None:
        self._process = process
        self._scheduler = scheduler
        self._watched: dict[Source, tuple[int, object]] = {}
        self._waiting: list[VirtualTask] = []
        self._woken = False
        self._number = process.add_poller(self)
        self._waits = waits

    def fileno(self) -> int:
        """Return the descriptor by which an event loop of the process watches it."""
        return self._number

    def watch(self, task: VirtualTask) -> bool:
        """Wake a task when a poll would return something; return whether one would now."""
        if self._ready():
            return True
        self._waiting.append(task)
        return False

    def is_ready(self) -> bool:
        """Return whether a poll would return something now."""
        return bool(self._ready())

    def unwatch(self, task: VirtualTask) -> None:
        """Stop waking a task."""
        if task in self._waiting:
            self._waiting.remove(task)

    def __repr__(self) -> str:
        return f"sockets of {self._process.name}: {list(self._watched)}"

    def register(self, source: StreamSocket | Listener, events: int, data: object) -> None:
        """Watch `source` for `events`, a sum of READABLE and WRITABLE; 0 watches for nothing."""
        self._process.gate()
        known = _virtual(source)
        if known in self._watched:
            raise KeyError(f"{known} is registered already")
        self._watched[known] = (events, data)
        known.pollers[self] = None
        self._ring_if_ready(known, events)

    def modify(self, source: StreamSocket | Listener, events: int) -> None:
        """Watch for other events."""
        known = _virtual(source)
        self._watched[known] = (events, self._watched[known][1])
        self._ring_if_ready(known, events)

    def unregister(self, source: StreamSocket | Listener) -> None:
        """Stop watching."""
        known = _virtual(source)
        del self._watched[known]
        known.pollers.pop(self, None)

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        """Return (data, ready events) pairs, waiting at most `timeout_ms`; None for no limit."""
        self._process.gate()
        ready = self._ready()
        if not ready and not self._woken and self._waits:
            task = self._scheduler.current
            self._waiting.append(task)
            try:
                self._park(timeout_ms)
            finally:
                self._waiting.remove(task)
            ready = self._ready()
        self._woken = False
        return ready

    def _park(self, timeout_ms: float | None) -> None:
        if timeout_ms == 0:
            self._scheduler.park(timeout_ms, self)
        else:
            with signals_take_effect():
                self._scheduler.park(timeout_ms, self)

    def wakeup(self) -> None:
        """Make the current or the next `poll` return at once."""
        if self._process.alive:
            self._woken = True
            self._wake()

    def close(self) -> None:
        """Stop watching all sources; idempotent."""
        for source in self._watched:
            source.pollers.pop(self, None)
        self._watched.clear()

    def ring(self, source: Source) -> None:
        """Check a source whose readiness may have changed."""
        if self._waiting:
            self._ring_if_ready(source, self._watched[source][0])

    def _ring_if_ready(self, source: Source, events: int) -> None:
        if self._waiting and source.readiness() & events:
            self._wake()

    def _wake(self) -> None:
        for task in self._waiting:
            self._scheduler.wake(task)

    def _ready(self) -> list[tuple[object, int]]:
        found: list[tuple[object, int]] = []
        for source, (events, data) in self._watched.items():
            ready = source.readiness() & events
            if ready:
                found.append((data, ready))
        if len(found) > 1:
            self._scheduler.shuffle(found)
        return found


def _virtual(source: StreamSocket | Listener) -> Source:
    if not isinstance(source, VirtualSocket | VirtualListener):
        raise TypeError(f"source: got {type(source).__name__}, expected a socket of this network")
    return source
