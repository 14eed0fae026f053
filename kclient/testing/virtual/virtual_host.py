"""A place on the network: an address, and what listens there."""

from kclient.common.runtime import Address
from kclient.testing.virtual.virtual_socket import VirtualListener

_FIRST_EPHEMERAL_PORT = 32768
_LAST_EPHEMERAL_PORT = 60999
LOOPBACK = "127.0.0.1"
ANY = "0.0.0.0"  # noqa: S104 (an address to recognise, not one to bind)


class VirtualHost:
    """What the network knows of a machine.

    Attributes:
        name: Name that resolves to it.
        ip: Its address.
        up: Whether it has power.
        listeners: What listens, by address.
    """

    def __init__(self, name: str, ip: str) -> None:
        self.name = name
        self.ip = ip
        self.up = True
        self.listeners: dict[Address, VirtualListener] = {}
        self._next_port = _FIRST_EPHEMERAL_PORT

    def has_address(self, ip: str) -> bool:
        """Return whether something may listen there."""
        return ip in {self.ip, LOOPBACK, ANY}

    def free_port(self) -> int:
        """Return a port that nothing listens on and no connection began at lately."""
        while True:
            port = self._next_port
            self._next_port += 1
            if self._next_port > _LAST_EPHEMERAL_PORT:
                self._next_port = _FIRST_EPHEMERAL_PORT
            if not any(taken == port for _, taken in self.listeners):
                return port

    def is_taken(self, address: Address) -> bool:
        """Return whether something listens where this address would."""
        ip, port = address
        return any(
            taken == port and (ip == other or ANY in (ip, other)) for other, taken in self.listeners
        )

    def listener(self, address: Address) -> VirtualListener | None:
        """Return what listens at an address, if anything does."""
        return self.listeners.get(address) or self.listeners.get((ANY, address[1]))
