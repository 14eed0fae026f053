"""The network as seen by one process; its sockets end with the process."""

import errno
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.common.runtime import Address, Listener, LookUp, Poller, StreamSocket
from kclient.network.name_resolver import NameLookUp
from kclient.testing.virtual.virtual_host import ANY, VirtualHost
from kclient.testing.virtual.virtual_inode import failure
from kclient.testing.virtual.virtual_net import VirtualNet
from kclient.testing.virtual.virtual_poller import VirtualPoller
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler
from kclient.testing.virtual.virtual_socket import VirtualListener, VirtualSocket

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_process import VirtualProcess


class VirtualProcessNet:
    """Opens and polls the connections of one process.

    Attributes:
        socket_limit: Number of sockets it may have; more fail with EMFILE. None for no limit.
        resolve_ms: Duration of a name look-up; infinity for a resolver that never responds.
    """

    def __init__(
        self,
        process: "VirtualProcess",
        net: VirtualNet,
        host: VirtualHost,
        scheduler: VirtualScheduler,
    ) -> None:
        self.socket_limit: int | None = None
        self.resolve_ms = 0.0
        self._process = process
        self._net = net
        self._host = host
        self._scheduler = scheduler
        self._sockets: dict[VirtualSocket, None] = {}
        self._listeners: list[VirtualListener] = []

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return every address of a name, in the resolver's order; raise OSError if none."""
        self._process.gate()
        if self.resolve_ms > 0.0:
            self._scheduler.park(self.resolve_ms, f"the address of {host}")
        return self._net.resolve(host, port)

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start a name look-up; an IP address needs no resolver."""
        self._process.gate()
        if self.resolve_ms <= 0.0 or host[:1].isdigit():
            return NameLookUp.ended(host, port, self._outcome(host, port))
        look_up = NameLookUp(host, port)

        def end() -> None:
            if self._process.alive:
                look_up.end(self._outcome(host, port))
                on_done()

        if self.resolve_ms < math.inf:
            self._net.clock.after(self.resolve_ms, end)
        return look_up

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start to connect; the socket becomes writable when the attempt has ended."""
        self._process.gate()
        self._check_limit()
        made = self._net.open(self._host, address)
        made.set_buffers(send_buffer, receive_buffer)
        self._own(made)
        return made

    def listen(self, address: Address, backlog: int) -> Listener:
        """Bind and listen; port 0 takes a free port.

        Raises:
            OSError: The address is in use, or not one of this machine's.
        """
        self._process.gate()
        self._check_limit()
        ip, port = address
        bound = (ip, port or self._host.free_port())
        if not self._host.has_address(ip) and ip != ANY:
            raise failure(errno.EADDRNOTAVAIL)
        if self._host.is_taken(bound):
            raise failure(errno.EADDRINUSE)
        made = VirtualListener(self._host, bound, backlog)
        made.gate = self._accept_gate
        made.on_accept = self._own
        self._host.listeners[bound] = made
        self._listeners.append(made)
        self._net.note("listen", repr(made))
        return made

    def poller(self) -> Poller:
        """Return a new poller."""
        self._process.gate()
        return VirtualPoller(self._process, self._scheduler)

    def sockets(self) -> list[VirtualSocket]:
        """Return the open sockets, the oldest first."""
        return list(self._sockets)

    def end(self, *, notify: bool) -> None:
        """Close all sockets; without power the peers are not notified."""
        for listener in self._listeners:
            if not notify:
                listener.waiting.clear()
            listener.close()
        for end in self.sockets():
            if notify:
                end.reset()
            else:
                end.vanish()

    def _outcome(self, host: str, port: int) -> list[Address] | OSError:
        try:
            return self._net.resolve(host, port)
        except OSError as error:
            return error

    def _accept_gate(self) -> None:
        self._process.gate()
        self._check_limit()

    def _check_limit(self) -> None:
        if self.socket_limit is not None and len(self._sockets) >= self.socket_limit:
            raise failure(errno.EMFILE)

    def _own(self, end: VirtualSocket) -> None:
        self._sockets[end] = None
        end.gate = self._process.gate
        end.on_close = lambda closed: self._sockets.pop(closed, None)
