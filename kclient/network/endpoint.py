"""Addresses of a broker's listeners, and the security protocols they can have."""

import ipaddress
from enum import IntEnum
from typing import NamedTuple


class SecurityProtocol(IntEnum):
    """Security protocol of a listener, by its id in metadata records (Kafka: SecurityProtocol)."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_ssl(self) -> bool:
        """Whether connections are encrypted."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def uses_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


def is_loopback(host: str) -> bool:
    """Return whether a host name or an IP address is one of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Endpoint(NamedTuple):
    """Address of one listener, as bound or as advertised (Kafka: Endpoint).

    Attributes:
        name: Name of the listener, in upper case.
        host: Host name or IP address, without brackets.
        port: Port; 0 means any free port, until the listener is bound.
        security_protocol: Protocol of its connections.
    """

    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def address(self) -> str:
        """``host:port`` that a client connects to."""
        return str(self).partition("://")[2]

    @property
    def ip_version(self) -> int | None:
        """4 or 6 for an IP address, None for a host name."""
        try:
            return ipaddress.ip_address(self.host).version
        except ValueError:
            return None

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can reach the listener."""
        return is_loopback(self.host)

    @property
    def is_any_address(self) -> bool:
        """Whether the host means all interfaces, so that no client can connect to it."""
        return self.ip_version is not None and ipaddress.ip_address(self.host).is_unspecified
