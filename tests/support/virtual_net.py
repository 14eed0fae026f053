"""An in-memory network in virtual time: sockets, names, refusals, silence; one thread, no waiting.

`VirtualClock` holds what is to happen and when; a poll that finds nothing ready moves the time on
to the next of these events. Peers are plain objects that are told of bytes and answer at will.
"""

import errno
import heapq
import itertools
import random
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from kclient.common.runtime import (
    READABLE,
    WRITABLE,
    Address,
    Condition,
    Listener,
    Lock,
    Poller,
    Runtime,
    StreamSocket,
    Task,
)
from kclient.common.system_files import SystemFiles


class VirtualClock:
    """Time that passes only when somebody waits."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = 1000.0
        self._wall_offset = wall_ms - int(self.now_ms)
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return self._wall_offset + int(self.now_ms)

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000

    def after(self, delay_ms: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._order), event))

    def run_due(self) -> None:
        while self._events and self._events[0][0] <= self.now_ms:
            heapq.heappop(self._events)[2]()

    def advance_to(self, deadline_ms: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let events happen in order until `done` or the deadline."""
        self.run_due()
        while not done() and self._events and self._events[0][0] <= deadline_ms:
            self.now_ms = max(self.now_ms, self._events[0][0])
            self.run_due()
        if not done():
            self.now_ms = max(self.now_ms, deadline_ms)

    def sleep(self, duration_ms: float) -> None:
        self.advance_to(self.now_ms + duration_ms)


class VirtualSocket:
    """One end of a connection."""

    def __init__(self, net: "VirtualNet", local: Address, peer: Address) -> None:
        self.incoming = bytearray()
        self.ended: int | None = None  # errno of the end; 0 for a clean end of the stream
        self.established = False
        self.closed = False
        self.other: VirtualSocket | None = None
        self.on_arrival: Callable[[], None] = lambda: None
        self.capacity = 1 << 30  # bytes taken by sendmsg in total before it blocks
        self._net = net
        self._local = local
        self._peer = peer

    def fileno(self) -> int:
        return -1

    def readiness(self) -> int:
        ready = READABLE if self.established and (self.incoming or self.ended is not None) else 0
        if self.ended or (self.established and self.capacity > 0):
            ready |= WRITABLE
        return ready

    def recv_into(self, buffer: memoryview, /) -> int:
        if not self.incoming:
            if self.ended is None:
                raise BlockingIOError
            if self.ended:
                raise OSError(self.ended, "connection broken")
            return 0
        count = min(len(buffer), len(self.incoming), self._net.max_chunk())
        buffer[:count] = self.incoming[:count]
        del self.incoming[:count]
        return count

    def sendmsg(self, buffers: Sequence[bytes | bytearray | memoryview], /) -> int:
        if self.ended:
            raise OSError(self.ended, "connection broken")
        data = b"".join(bytes(part) for part in buffers)
        data = data[: min(self.capacity, self._net.max_chunk())]
        if not data:
            raise BlockingIOError
        self.capacity -= len(data)
        self._net.sendmsg_calls += 1
        self.deliver(data)
        return len(data)

    def deliver(self, data: bytes, delay_ms: float | None = None) -> None:
        """Let bytes arrive at the other end."""
        other = self.other
        if other is None:
            raise OSError(errno.ENOTCONN, "not connected")

        def arrive() -> None:
            if other.ended is None and not other.closed:
                other.incoming += data
                other.on_arrival()

        self._net.clock.after(self._net.latency_ms if delay_ms is None else delay_ms, arrive)

    def end(self, failure: int = 0) -> None:
        """End the stream towards the other end: cleanly, or with an errno."""
        other = self.other

        def arrive() -> None:
            if other is not None and other.ended is None:
                if failure:
                    other.incoming.clear()
                other.ended = failure
                other.on_arrival()

        self._net.clock.after(self._net.latency_ms, arrive)

    def connect_error(self) -> int:
        return self.ended or 0

    def peer_address(self) -> Address:
        return self._peer

    def local_address(self) -> Address:
        return self._local

    def close(self) -> None:
        self._close(0)

    def reset(self) -> None:
        self._close(errno.ECONNRESET)

    def _close(self, failure: int) -> None:
        if not self.closed:
            self.closed = True
            self._net.open_sockets -= 1
            self.end(failure)


class Peer(Protocol):
    """The far end of a connection, told of each arrival."""

    def connected(self, socket: VirtualSocket) -> None: ...
    def received(self, socket: VirtualSocket, data: bytes) -> None: ...


class VirtualListener:
    """A listening address."""

    def __init__(self, net: "VirtualNet", address: Address) -> None:
        self.waiting: list[VirtualSocket] = []
        self._net = net
        self._address = address

    def fileno(self) -> int:
        return -1

    def readiness(self) -> int:
        return READABLE if self.waiting else 0

    def accept(self) -> StreamSocket:
        if not self.waiting:
            raise BlockingIOError
        return self.waiting.pop(0)

    def local_address(self) -> Address:
        return self._address

    def close(self) -> None:
        self._net.listeners.pop(self._address, None)


class VirtualPoller:
    """Readiness of virtual sockets; waiting moves the clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._watched: dict[int, tuple[VirtualSocket | VirtualListener, int, object]] = {}
        self._woken = False

    def register(self, source: StreamSocket | Listener, events: int, data: object) -> None:
        assert isinstance(source, VirtualSocket | VirtualListener)
        assert id(source) not in self._watched
        self._watched[id(source)] = (source, events, data)

    def modify(self, source: StreamSocket | Listener, events: int) -> None:
        known, _, data = self._watched[id(source)]
        self._watched[id(source)] = (known, events, data)

    def unregister(self, source: StreamSocket | Listener) -> None:
        del self._watched[id(source)]

    def poll(self, timeout_ms: float | None) -> list[tuple[object, int]]:
        assert timeout_ms is not None, "a wait without an end"
        self._clock.advance_to(
            self._clock.now_ms + timeout_ms, lambda: self._woken or bool(self._ready())
        )
        self._woken = False
        return self._ready()

    def _ready(self) -> list[tuple[object, int]]:
        found: list[tuple[object, int]] = []
        for source, events, data in self._watched.values():
            ready = source.readiness() & events
            if ready:
                found.append((data, ready))
        return found

    def wakeup(self) -> None:
        self._woken = True

    def close(self) -> None:
        self._watched.clear()


class VirtualNet:
    """Names, addresses and what answers at them."""

    def __init__(self, clock: VirtualClock, latency_ms: float = 1.0) -> None:
        self.clock = clock
        self.latency_ms = latency_ms
        self.names: dict[str, list[str]] = {}
        self.peers: dict[Address, Callable[[], Peer]] = {}
        self.listeners: dict[Address, VirtualListener] = {}
        self.black_holes: set[Address] = set()
        self.connects: list[tuple[float, Address]] = []
        self.resolved: list[str] = []
        self.sendmsg_calls = 0
        self.open_sockets = 0
        self.max_chunk: Callable[[], int] = lambda: 1 << 30
        self._ports = itertools.count(40000)
        self._far: list[VirtualSocket] = []

    def resolve(self, host: str, port: int) -> list[Address]:
        self.resolved.append(host)
        known = self.names.get(host)
        if known is None and host[0].isdigit():
            known = [host]
        if not known:
            raise OSError(-2, "Name or service not known")
        return [(ip, port) for ip in known]

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        self.connects.append((self.clock.now_ms, address))
        local = ("10.9.9.9", next(self._ports))
        near = VirtualSocket(self, local, address)
        self.open_sockets += 1
        if address not in self.black_holes:
            self.clock.after(self.latency_ms, lambda: self._arrive(near, address))
        return near

    def _arrive(self, near: VirtualSocket, address: Address) -> None:
        if near.closed:
            return
        if address not in self.peers and address not in self.listeners:
            near.ended = errno.ECONNREFUSED
            return
        far = VirtualSocket(self, address, near.local_address())
        self._far.append(far)
        self.open_sockets += 1
        near.other, far.other = far, near
        near.established = far.established = True
        if address in self.listeners:
            self.listeners[address].waiting.append(far)
        else:
            _serve(far, self.peers[address]())

    def listen(self, address: Address, backlog: int) -> Listener:
        host, port = address
        bound = (host, port or next(self._ports))
        self.listeners[bound] = VirtualListener(self, bound)
        return self.listeners[bound]

    def poller(self) -> Poller:
        return VirtualPoller(self.clock)

    def stop(self, address: Address) -> None:
        """Let what answers at an address end, as a process does that is killed."""
        self.peers.pop(address, None)
        self.listeners.pop(address, None)
        for far in self._far:
            if far.local_address() == address and not far.closed:
                far.end(errno.ECONNRESET)
                far.close()


def _serve(socket: VirtualSocket, peer: Peer) -> None:
    def arrival() -> None:
        if socket.incoming:
            data = bytes(socket.incoming)
            socket.incoming.clear()
            peer.received(socket, data)
        elif socket.ended is not None:
            socket.close()

    socket.on_arrival = arrival
    peer.connected(socket)


class VirtualCondition:
    """A condition of a single thread: waiting moves the clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._notified = False

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None: ...

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "a wait without an end"
        self._notified = False
        self._clock.advance_to(self._clock.now_ms + timeout * 1000, lambda: self._notified)
        return self._notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        assert timeout is not None, "a wait without an end"
        self._clock.advance_to(self._clock.now_ms + timeout * 1000, predicate)
        return predicate()

    def notify(self, n: int = 1) -> None:
        self._notified = True

    def notify_all(self) -> None:
        self._notified = True


class VirtualTasks:
    """No threads: tests call the step functions themselves."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        raise AssertionError(f"{name}: nothing here starts a thread")

    def condition(self) -> Condition:
        return VirtualCondition(self._clock)

    def lock(self) -> Lock:
        return VirtualCondition(self._clock)

    def process_id(self) -> int:
        return 1

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def caller_id(self) -> int:
        return threading.get_ident()


def virtual_runtime(seed: int = 0, latency_ms: float = 1.0) -> tuple[Runtime, VirtualNet]:
    """Return a runtime in virtual time, and its network to script."""
    clock = VirtualClock()
    net = VirtualNet(clock, latency_ms)
    return (
        Runtime(clock, random.Random(seed), VirtualTasks(clock), net, SystemFiles()),
        net,
    )
