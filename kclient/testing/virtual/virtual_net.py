"""The network of a simulation: hosts, names, addresses, connections, and faults."""

import errno
import random
from collections.abc import Callable, Iterator
from typing import Protocol

from kclient.common.runtime import Address
from kclient.testing.virtual.trace import Trace
from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_socket import VirtualListener, VirtualSocket
from kclient.testing.virtual.virtual_stream import Latency, VirtualLink, VirtualStream

_FIRST_EPHEMERAL_PORT = 32768
_LAST_EPHEMERAL_PORT = 60999
LOOPBACK = "127.0.0.1"
ANY = "0.0.0.0"  # noqa: S104 (an address to recognise, not one to bind)


class VirtualHost:
    """A machine as the network sees it.

    Attributes:
        name: Name that resolves to it.
        ip: Its address.
        up: Whether it has power.
        listeners: Listeners by address.
    """

    def __init__(self, name: str, ip: str) -> None:
        self.name = name
        self.ip = ip
        self.up = True
        self.listeners: dict[Address, VirtualListener] = {}
        self._next_port = _FIRST_EPHEMERAL_PORT

    def has_address(self, ip: str) -> bool:
        """Return whether the address is one of this host."""
        return ip in {self.ip, LOOPBACK, ANY}

    def free_port(self) -> int:
        """Return a port that is neither listened on nor recently used."""
        while True:
            port = self._next_port
            self._next_port += 1
            if self._next_port > _LAST_EPHEMERAL_PORT:
                self._next_port = _FIRST_EPHEMERAL_PORT
            if not any(taken == port for _, taken in self.listeners):
                return port

    def is_taken(self, address: Address) -> bool:
        """Return whether a listener already uses the address."""
        ip, port = address
        return any(
            taken == port and (ip == other or ANY in (ip, other)) for other, taken in self.listeners
        )

    def remove(self, address: Address, listener: VirtualListener) -> None:
        """Remove a listener that was closed. Idempotent."""
        if self.listeners.get(address) is listener:
            del self.listeners[address]

    def listener(self, address: Address) -> VirtualListener | None:
        """Return the listener at an address, or None."""
        return self.listeners.get(address) or self.listeners.get((ANY, address[1]))


class Peer(Protocol):
    """A scripted peer of a connection, called at each arrival; it runs between the tasks."""

    def connected(self, end: VirtualSocket, /) -> None:
        """Accept a new connection."""
        ...

    def received(self, end: VirtualSocket, data: bytes, /) -> None:
        """Process bytes; respond by the socket's `deliver` and `end`."""
        ...


_PACKETS = 7  # after 0, 1, 3, 7, 15, 31 and 63 seconds; timeout after 127, as in Linux
_FIRST_RETRY_MS = 1000.0


class ConnectAttempt:
    """Retransmits the first packet of a connection until the peer responds.

    It is lost if the address is a black hole, the machine has no power, the link is blocked in
    either direction, or too many connections wait to be accepted.
    """

    def __init__(self, net: "VirtualNet", near: VirtualSocket, address: Address) -> None:
        self._net = net
        self._near = near
        self._address = address
        ip = near.host.ip if address[0] == LOOPBACK else address[0]
        self._there: VirtualLink = net.link(near.host, ip)
        self._back: VirtualLink = net.link(ip, near.host)
        self._ip = ip
        self._retry_ms = _FIRST_RETRY_MS
        self._left = _PACKETS

    def begin(self) -> None:
        """Send the packet."""
        if self._near.closed:
            return
        if self._left:
            self._left -= 1
            self._net.after(self._there.delay_ms(), self._arrive)
        else:
            self._near.fail(errno.ETIMEDOUT)

    def _arrive(self) -> None:
        near = self._near
        if near.closed:
            return
        if self._is_lost():
            self._net.after(self._retry_ms, self.begin)
            self._retry_ms *= 2
            return
        host = self._net.host_at(self._ip)
        listener = None if host is None else host.listener(self._address)
        peer = self._net.peer_at(self._address)
        if self._there.refusing or (listener is None and peer is None):
            near.fail(errno.ECONNREFUSED)
        elif listener is not None and host is not None:
            listener.arrived(self._net.accept(host, near, self._address))
        elif peer is not None:
            far_host = host or VirtualHost(self._ip, self._ip)
            serve(self._net.accept(far_host, near, self._address), peer())

    def _is_lost(self) -> bool:
        if self._address in self._net.black_holes or self._there.blocked or self._back.blocked:
            return True
        host = self._net.host_at(self._ip)
        if host is None:
            return False
        listener = host.listener(self._address)
        return not host.up or (listener is not None and listener.is_full())


def serve(far: VirtualSocket, peer: Peer) -> None:
    """Connect a scripted peer to one end of a connection."""

    def arrival() -> None:
        if far.incoming:
            peer.received(far, far.take_incoming())
        elif far.ended is not None:
            far.close()

    far.on_arrival = arrival
    peer.connected(far)


class VirtualNet:
    """Names, addresses, connections, and links.

    Faults take machines by name, by IP address, or as objects.

    Attributes:
        names: IP addresses by host name.
        peers: Makers of scripted peers by address.
        black_holes: Addresses that do not respond, not even with a refusal.
        connects: Every attempt to connect, with its time.
        resolved: Every resolved name.
        sendmsg_calls: Number of writes.
        open_sockets: Number of open sockets, those of peers included.
    """

    def __init__(
        self,
        clock: VirtualClock,
        lots: Callable[[str], random.Random],
        trace: Trace,
        latency_ms: Latency,
    ) -> None:
        self.clock = clock
        self.names: dict[str, list[str]] = {}
        self.peers: dict[Address, Callable[[], Peer]] = {}
        self.black_holes: set[Address] = set()
        self.connects: list[tuple[float, Address]] = []
        self.resolved: list[str] = []
        self.sendmsg_calls = 0
        self._lots = lots
        self._trace = trace
        self._latency_ms = latency_ms
        self._hosts: dict[str, VirtualHost] = {}
        self._links: dict[tuple[str, str], VirtualLink] = {}
        self._open: dict[VirtualSocket, None] = {}

    @property
    def open_sockets(self) -> int:
        """Number of open sockets, those of peers included."""
        return len(self._open)

    @property
    def latency_ms(self) -> Latency:
        """Latency of a segment, unless its link has another; setting it changes all links."""
        return self._latency_ms

    @latency_ms.setter
    def latency_ms(self, latency_ms: Latency) -> None:
        self._latency_ms = latency_ms
        for link in self._links.values():
            link.latency_ms = latency_ms

    # --- faults

    def link(self, source: object, target: object) -> VirtualLink:
        """Return the link from one machine to another, to set its faults."""
        key = (self._ip(source), self._ip(target))
        found = self._links.get(key)
        if found is None:
            lot = self._lots(f"link {key[0]}>{key[1]}")
            found = self._links[key] = VirtualLink(self.clock, lot, self._latency_ms)
        return found

    def partition(self, a: object, b: object, *, one_way: bool = False) -> None:
        """Lose all segments from `a` to `b`, and back unless `one_way`, without notification."""
        self.note("partition", f"{self._ip(a)} {self._ip(b)}")
        for link in self._both(a, b, one_way=one_way):
            link.blocked = True

    def heal(self, a: object = None, b: object = None) -> None:
        """Remove the faults of the links between two machines, or of all; the latency stays."""
        self.note("heal", "all" if a is None or b is None else f"{self._ip(a)} {self._ip(b)}")
        links = list(self._links.values()) if a is None or b is None else list(self._both(a, b))
        for link in links:
            link.heal()

    def slow(self, a: object, b: object, bytes_per_second: float) -> None:
        """Limit the bandwidth in both directions."""
        for link in self._both(a, b):
            link.bytes_per_second = bytes_per_second

    def rechunk(self, a: object, b: object, least: int = 1, most: int = 1) -> None:
        """Limit the bytes of each read and write between two machines, in both directions."""
        for link in self._both(a, b):
            link.chunk_bytes = (least, most)

    def refuse(self, a: object, b: object) -> None:
        """Refuse new connections from `a` to `b`; open ones are not affected."""
        self.link(a, b).refusing = True

    def cut(self, a: object, b: object, *, reset: bool = True) -> int:
        """End all connections between two machines, in the middle of bytes in flight.

        Args:
            a: A machine.
            b: Another.
            reset: Whether both ends see a reset, or an orderly end.

        Returns:
            Number of connections.
        """
        self.note("cut", f"{self._ip(a)} {self._ip(b)}")
        streams = list(self._streams(a, b))
        for stream in streams:
            stream.cut(errno.ECONNRESET if reset else 0)
        return len(streams) // 2

    def half_open(self, a: object, b: object) -> int:
        """Lose all segments of the open connections between two machines, without notification.

        Returns:
            Number of connections.
        """
        self.note("half-open", f"{self._ip(a)} {self._ip(b)}")
        streams = list(self._streams(a, b))
        for stream in streams:
            stream.severed = True
        return len(streams) // 2

    def hold(self, a: object, b: object) -> int:
        """Delay the segments of the open connections between two machines until `heal`.

        A peer that waits for them closes the connection; a new one is not affected. Segments
        arrive later even if their sender has closed the connection meanwhile.

        Returns:
            Number of connections.
        """
        self.note("hold", f"{self._ip(a)} {self._ip(b)}")
        streams = list(self._streams(a, b))
        for stream in streams:
            stream.link.hold(stream)
        return len(streams) // 2

    def stop(self, address: Address) -> None:
        """End the listener and the connections at an address, like those of a killed process."""
        self.peers.pop(address, None)
        host = self._hosts.get(address[0])
        listener = host.listeners.get(address) if host is not None else None
        if listener is not None:
            listener.close()
        for end in list(self._open):
            if end.local_address() == address and end.established:
                end.reset()

    # --- for machines and their processes

    def add_host(self, name: str, ip: str | None = None) -> VirtualHost:
        """Add a machine; without an address it gets the next free one of 10.0.0.0/16."""
        if name in self.names:
            raise ValueError(f"name: got {name!r}, expected one that no machine has")
        if ip is None:
            number = len(self._hosts) + 1
            ip = f"10.0.{number // 250}.{number % 250 + 1}"
        host = self._hosts[ip] = VirtualHost(name, ip)
        self.names[name] = [ip]
        return host

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return every address of a name; raise OSError if there is none."""
        self.resolved.append(host)
        known = self.names.get(host)
        if known is None and host == "localhost":
            known = [LOOPBACK]
        if known is None and host[:1].isdigit():
            known = [host]
        if not known:
            raise OSError(-2, "Name or service not known")
        return [(ip, port) for ip in known]

    def open(self, host: VirtualHost, address: Address) -> VirtualSocket:
        """Return a socket that starts to connect."""
        self.connects.append((self.clock.now_ms, address))
        ip = LOOPBACK if address[0] == LOOPBACK else host.ip
        near = VirtualSocket(self, host, (ip, host.free_port()), address)
        self._open[near] = None
        self.note("connect", repr(near))
        ConnectAttempt(self, near, address).begin()
        return near

    def accept(self, host: VirtualHost, near: VirtualSocket, address: Address) -> VirtualSocket:
        """Return the peer's end of a connection, connected with the near end."""
        far = VirtualSocket(self, host, address, near.local_address())
        self._open[far] = None
        there, back = self.link(near.host, host), self.link(host, near.host)
        far.establish(VirtualStream(self.clock, back, far, near))
        near.establish(VirtualStream(self.clock, there, near, far))
        self.note("established", repr(near))
        return far

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        """Call a function after a delay."""
        self.clock.after(delay_ms, act)

    def peer_at(self, address: Address) -> Callable[[], Peer] | None:
        """Return the maker of the scripted peers at an address, or None."""
        return self.peers.get(address)

    def host_at(self, ip: str) -> VirtualHost | None:
        """Return the machine with this address, or None."""
        return self._hosts.get(ip)

    def note(self, kind: str, who: str, data: bytes = b"") -> None:
        """Add an event to the trace."""
        self._trace.note(self.clock.now_ms, kind, who, data)

    def reachable_again(self, host: VirtualHost) -> None:
        """Resume segments to a machine that had no power."""
        for (_, target), link in self._links.items():
            if target == host.ip and not link.blocked:
                link.resume()

    def closed(self, end: VirtualSocket) -> None:
        """Note that a socket was closed."""
        self._open.pop(end, None)
        self.note("closed", repr(end))

    # --- inside

    def _both(self, a: object, b: object, *, one_way: bool = False) -> list[VirtualLink]:
        there = self.link(a, b)
        return [there] if one_way else [there, self.link(b, a)]

    def _streams(self, a: object, b: object) -> Iterator[VirtualStream]:
        wanted = {(self._ip(a), self._ip(b)), (self._ip(b), self._ip(a))}
        for end in self._open:
            if end.other is not None and (end.ip, end.other.ip) in wanted:
                yield end.stream

    def _ip(self, place: object) -> str:
        name = place if isinstance(place, str) else getattr(place, "ip", None)
        if not isinstance(name, str):
            raise TypeError(f"got {place!r}, expected a machine, its name or its IP address")
        if name in self._hosts:
            return name
        known = self.names.get(name)
        return known[0] if known else name
