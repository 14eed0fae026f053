"""Listener of a broker, parsed from Kafka's listener notation."""

import ipaddress
from typing import NamedTuple

from kclient.common.errors import ConfigError

PLAINTEXT = "PLAINTEXT"


class Endpoint(NamedTuple):
    """One listener (Kafka: EndPoint)."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def address(self) -> str:
        """``host:port`` that a client connects to."""
        return str(self).partition("://")[2]

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can reach the listener."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_endpoint(option: str, given: str) -> Endpoint:
    """Return the listener written as ``NAME://host:port`` or ``host:port``.

    Raises:
        ConfigError: The text has another form, or names a protocol that is not served.
    """
    name, separator, rest = given.partition("://")
    if not separator:
        name, rest = PLAINTEXT, given
    host, colon, port = rest.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{option}: got {given!r:.80}, expected 'host:port'")
    if name != PLAINTEXT:
        raise ConfigError(f"{option}: got {given!r:.80}, expected a PLAINTEXT listener")
    return Endpoint(name, host or "0.0.0.0", int(port))  # noqa: S104 (named so by Kafka; refused unless allowed)
