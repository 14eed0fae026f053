"""The network of a virtual world: names, addresses, what answers there, and what goes wrong."""

import errno
import random
from collections.abc import Callable, Iterator
from typing import Protocol

from kclient.common.runtime import Address
from kclient.testing.virtual.connect_attempt import ConnectAttempt
from kclient.testing.virtual.trace import Trace
from kclient.testing.virtual.virtual_clock import VirtualClock
from kclient.testing.virtual.virtual_host import LOOPBACK, VirtualHost
from kclient.testing.virtual.virtual_link import Latency, VirtualLink
from kclient.testing.virtual.virtual_socket import VirtualSocket
from kclient.testing.virtual.virtual_stream import VirtualStream


class Peer(Protocol):
    """A scripted far end of a connection, told of each arrival; it runs between the tasks."""

    def connected(self, end: VirtualSocket, /) -> None:
        """Hear of a new connection."""
        ...

    def received(self, end: VirtualSocket, data: bytes, /) -> None:
        """Hear of bytes; answer by the socket's `deliver` and `end`."""
        ...


class VirtualNet:
    """Names, addresses, connections, and the links they go over.

    Machines are named in faults by name, by IP address, or by themselves.

    Attributes:
        names: IP addresses by host name.
        peers: Makers of scripted peers by address.
        black_holes: Addresses that answer nothing, not even that there is nobody.
        connects: Every attempt to connect, with its time.
        resolved: Every name that was looked up.
        sendmsg_calls: How many writes there were.
        open_sockets: How many sockets are open, far ends included.
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
        """How many sockets are open, far ends included."""
        return len(self._open)

    @property
    def latency_ms(self) -> Latency:
        """How long a segment takes, unless its link says otherwise; set, it is so for all links."""
        return self._latency_ms

    @latency_ms.setter
    def latency_ms(self, latency_ms: Latency) -> None:
        self._latency_ms = latency_ms
        for link in self._links.values():
            link.latency_ms = latency_ms

    # --- faults

    def link(self, source: object, target: object) -> VirtualLink:
        """Return the way from one machine to another, to set what is wrong with it."""
        key = (self._ip(source), self._ip(target))
        found = self._links.get(key)
        if found is None:
            lot = self._lots(f"link {key[0]}>{key[1]}")
            found = self._links[key] = VirtualLink(self.clock, lot, self._latency_ms)
        return found

    def partition(self, a: object, b: object, *, one_way: bool = False) -> None:
        """Let nothing through from `a` to `b`, nor back unless it is `one_way`; nobody is told."""
        self.note("partition", f"{self._ip(a)} {self._ip(b)}")
        for link in self._both(a, b, one_way=one_way):
            link.blocked = True

    def heal(self, a: object = None, b: object = None) -> None:
        """Undo what is wrong with the links between two machines, or with all; not the latency."""
        self.note("heal", "all" if a is None or b is None else f"{self._ip(a)} {self._ip(b)}")
        links = list(self._links.values()) if a is None or b is None else list(self._both(a, b))
        for link in links:
            link.heal()

    def slow(self, a: object, b: object, bytes_per_second: float) -> None:
        """Let only so much through, each way."""
        for link in self._both(a, b):
            link.bytes_per_second = bytes_per_second

    def rechunk(self, a: object, b: object, least: int = 1, most: int = 1) -> None:
        """Let each read and write between two machines move only so many bytes, each way."""
        for link in self._both(a, b):
            link.chunk_bytes = (least, most)

    def refuse(self, a: object, b: object) -> None:
        """Turn away new connections from `a` to `b`; those that exist live on."""
        self.link(a, b).refusing = True

    def cut(self, a: object, b: object, *, reset: bool = True) -> int:
        """End all connections between two machines, in the middle of what is on its way.

        Args:
            a: A machine.
            b: Another.
            reset: Whether both ends see a reset, or an orderly end where none was meant.

        Returns:
            How many there were.
        """
        self.note("cut", f"{self._ip(a)} {self._ip(b)}")
        streams = list(self._streams(a, b))
        for stream in streams:
            stream.cut(errno.ECONNRESET if reset else 0)
        return len(streams) // 2

    def half_open(self, a: object, b: object) -> int:
        """Let all present connections between two machines die without anybody being told.

        Returns:
            How many there were.
        """
        self.note("half-open", f"{self._ip(a)} {self._ip(b)}")
        streams = list(self._streams(a, b))
        for stream in streams:
            stream.severed = True
        return len(streams) // 2

    def hold(self, a: object, b: object) -> int:
        """Let what present connections between two machines carry arrive late, after `heal`.

        Whoever waits for it takes the connection for dead; a new one is not touched. What was sent
        arrives all the same, even when its sender has closed the connection meanwhile.

        Returns:
            How many there were.
        """
        self.note("hold", f"{self._ip(a)} {self._ip(b)}")
        streams = list(self._streams(a, b))
        for stream in streams:
            stream.link.hold(stream)
        return len(streams) // 2

    def stop(self, address: Address) -> None:
        """Let what answers at an address end, as a process does that is killed."""
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
        """Add a machine; without an address it takes the next of 10.0.0.0/16 that is free."""
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
        """Return a socket that begins to connect."""
        self.connects.append((self.clock.now_ms, address))
        ip = LOOPBACK if address[0] == LOOPBACK else host.ip
        near = VirtualSocket(self, host, (ip, host.free_port()), address)
        self._open[near] = None
        self.note("connect", repr(near))
        ConnectAttempt(self, near, address).begin()
        return near

    def accept(self, host: VirtualHost, near: VirtualSocket, address: Address) -> VirtualSocket:
        """Return the far end of a connection, connected with the near one."""
        far = VirtualSocket(self, host, address, near.local_address())
        self._open[far] = None
        there, back = self.link(near.host, host), self.link(host, near.host)
        far.establish(VirtualStream(self.clock, back, far, near))
        near.establish(VirtualStream(self.clock, there, near, far))
        self.note("established", repr(near))
        return far

    def host_at(self, ip: str) -> VirtualHost | None:
        """Return the machine with this address, if there is one."""
        return self._hosts.get(ip)

    def note(self, kind: str, who: str, data: bytes = b"") -> None:
        """Take something down in the trace."""
        self._trace.note(self.clock.now_ms, kind, who, data)

    def reachable_again(self, host: VirtualHost) -> None:
        """Let through what was sent to a machine while it had no power."""
        for (_, target), link in self._links.items():
            if target == host.ip and not link.blocked:
                link.resume()

    def closed(self, end: VirtualSocket) -> None:
        """Hear that a socket was closed."""
        self._open.pop(end, None)
        self.note("closed", repr(end))

    # --- inside

    def _both(self, a: object, b: object, *, one_way: bool = False) -> list[VirtualLink]:
        there = self.link(a, b)
        return [there] if one_way else [there, self.link(b, a)]

    def _streams(self, a: object, b: object) -> Iterator[VirtualStream]:
        wanted = {(self._ip(a), self._ip(b)), (self._ip(b), self._ip(a))}
        for end in self._open:
            if end.other is not None and (end.host.ip, end.other.host.ip) in wanted:
                yield end.stream

    def _ip(self, place: object) -> str:
        name = place if isinstance(place, str) else getattr(place, "ip", None)
        if not isinstance(name, str):
            raise TypeError(f"got {place!r}, expected a machine, its name or its IP address")
        if name in self._hosts:
            return name
        known = self.names.get(name)
        return known[0] if known else name
