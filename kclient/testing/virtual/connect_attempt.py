"""An attempt to connect, with its retransmissions and its timeout."""

import errno
from typing import TYPE_CHECKING

from kclient.common.runtime import Address
from kclient.testing.virtual.virtual_host import LOOPBACK, VirtualHost
from kclient.testing.virtual.virtual_link import VirtualLink
from kclient.testing.virtual.virtual_socket import VirtualSocket

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_net import Peer, VirtualNet

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
            self._net.clock.after(self._there.delay_ms(), self._arrive)
        else:
            self._near.fail(errno.ETIMEDOUT)

    def _arrive(self) -> None:
        near = self._near
        if near.closed:
            return
        if self._is_lost():
            self._net.clock.after(self._retry_ms, self.begin)
            self._retry_ms *= 2
            return
        host = self._net.host_at(self._ip)
        listener = None if host is None else host.listener(self._address)
        peer = self._net.peers.get(self._address)
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


def serve(far: VirtualSocket, peer: "Peer") -> None:
    """Connect a scripted peer to one end of a connection."""

    def arrival() -> None:
        if far.incoming:
            peer.received(far, far.take_incoming())
        elif far.ended is not None:
            far.close()

    far.on_arrival = arrival
    peer.connected(far)
