"""Loop of a fault proxy: its ports, its connections, and the polling of their sockets."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kclient.common.runtime import READABLE, Address, Listener, Runtime, StreamSocket
from kclient.testing.fault_link import FaultLink, Shape, Side
from kclient.testing.fault_rule import Ending

_log = logging.getLogger(__name__)

_BACKLOG = 128
_IDLE_MS = 1000.0


@dataclass(slots=True, eq=False)
class Door:
    """A port of the proxy.

    Attributes:
        target: The broker that its connections lead to.
        address: Address for clients.
        listener: The listening socket; None while connections are refused.
    """

    target: Address
    address: Address
    listener: Listener | None = None


class FaultLoop:
    """Accepts connections, and reads, shapes and writes frames. Thread-safe: `wakeup` only.

    Attributes:
        links: Open connections.
        accepted: Number of connections accepted so far.
        is_swallowing: Whether new connections are black holes.
        is_held: Whether no bytes are passed on.
        lifetime_ms: Returns the lifetime of a new connection.
        idle_ms: Time without traffic after which a connection is left half-open.
        failure: First error of a fault.
    """

    def __init__(self, runtime: Runtime, shape: Shape, host: str) -> None:
        self.links: list[FaultLink] = []
        self.accepted = 0
        self.is_swallowing = False
        self.is_held = False
        self.lifetime_ms: Callable[[], float] = lambda: float("inf")
        self.idle_ms = float("inf")
        self.failure: Exception | None = None
        self._clock = runtime.clock
        self._net = runtime.net
        self._shape = shape
        self._host = host
        self._poller = runtime.net.poller()
        self._doors: list[Door] = []

    def turn(self, timeout_ms: float = _IDLE_MS) -> None:
        """Write what is due, then wait for the next event and process it."""
        now_ms = self._clock.monotonic_ms()
        wait_ms = timeout_ms
        for link in self.links:
            with self._surviving(link):
                wait_ms = min(wait_ms, link.step(now_ms, self.idle_ms))
        self.links = [link for link in self.links if not link.is_over]
        ready = self._poller.poll(wait_ms)
        now_ms = self._clock.monotonic_ms()
        for source, events in ready:
            if isinstance(source, Side):
                self._serve(source, events, now_ms)
            elif isinstance(source, Door):
                self._accept(source, now_ms)

    def wakeup(self) -> None:
        """End the current wait; thread-safe."""
        self._poller.wakeup()

    def open_door(self, target: Address, port: int = 0) -> Door:
        """Listen for a broker.

        Raises:
            OSError: The address is in use, or not one of this machine's.
        """
        door = Door(target, (self._host, port))
        self._listen(door)
        self._doors.append(door)
        return door

    def address_for(self, broker: Address) -> Address:
        """Return the address for clients of a broker; opens a port if it has none."""
        for door in self._doors:
            if broker in (door.target, door.address):
                return door.address
        return self.open_door(broker).address

    def refuse(self) -> None:
        """Stop listening."""
        for door in self._doors:
            listener, door.listener = door.listener, None
            if listener is not None:
                self._poller.unregister(listener)
                listener.close()

    def hold(self, *, held: bool) -> None:
        """Pass no bytes on, or continue to do so."""
        self.is_held = held
        for link in self.links:
            link.is_held = held

    def swallow(self) -> None:
        """Turn every connection, present and future, into a black hole."""
        self.is_swallowing = True
        for link in self.links:
            link.is_silent = True

    def end_all(self, ending: Ending) -> None:
        """End every connection."""
        for link in self.links:
            link.end(ending)
        self.links = [link for link in self.links if not link.is_over]

    def heal(self) -> None:
        """Remove every fault of connections."""
        self.lifetime_ms = lambda: float("inf")
        self.idle_ms = float("inf")
        self.is_swallowing = False
        self.hold(held=False)
        for link in self.links:
            link.dies_at_ms = float("inf")
            if link.is_silent:
                link.end(Ending.RESET)
        for door in self._doors:
            if door.listener is None:
                self._listen(door)

    def close(self) -> None:
        """Reset every connection and stop listening."""
        self.end_all(Ending.RESET)
        self.refuse()
        self._poller.close()

    def _listen(self, door: Door) -> None:
        listener = self._net.listen(door.address, _BACKLOG)
        self._poller.register(listener, READABLE, door)
        door.listener = listener
        door.address = self._host, listener.local_address()[1]

    def _serve(self, side: Side, events: int, now_ms: float) -> None:
        with self._surviving(side.link):
            side.link.ready(side, events, now_ms)

    @contextmanager
    def _surviving(self, link: FaultLink) -> Iterator[None]:
        """Close only the connection of a fault whose function raises."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (raised when the proxy is closed)
            _log.exception("connection %d: a fault failed; the connection is reset", link.number)
            self.failure = self.failure or error
            link.end(Ending.RESET)

    def _accept(self, door: Door, now_ms: float) -> None:
        if door.listener is None:
            return
        try:
            client = door.listener.accept()
        except OSError as error:
            _log.info("could not accept a connection: %s", error)
            return
        self._take(client, door.target, now_ms)

    def _take(self, client: StreamSocket, target: Address, now_ms: float) -> None:
        self.accepted += 1
        link = FaultLink(self.accepted, client, self._poller, self._shape)
        link.is_held = self.is_held
        link.is_silent = self.is_swallowing
        link.dies_at_ms = now_ms + self.lifetime_ms()
        link.active_ms = now_ms
        if not link.is_silent:
            link.connect(self._net, target)
        self.links.append(link)
