"""A host of the network: an address and its listeners."""

from kclient.common.runtime import Address
from kclient.testing.virtual.virtual_socket import VirtualListener

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

    def listener(self, address: Address) -> VirtualListener | None:
        """Return the listener at an address, or None."""
        return self.listeners.get(address) or self.listeners.get((ANY, address[1]))
