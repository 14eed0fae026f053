"""Security of one listener, as its settings resolve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kclient.common.secret import Secret
from kclient.network.endpoint import SecurityProtocol


class MechanismSettings(NamedTuple):
    """Settings of a SASL mechanism of a listener.

    Attributes:
        max_reauth_ms: ``connections.max.reauth.ms``, the lifetime of a session; 0 for no limit.
        users: Passwords by user name, for PLAIN.
    """

    max_reauth_ms: int
    users: Mapping[str, Secret]


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """Security of a listener.

    Attributes:
        name: Name of the listener.
        protocol: Security protocol of its connections.
        mechanisms: Enabled SASL mechanisms by name.
        max_receive_size: ``sasl.server.max.receive.size``, in bytes.
        failed_authentication_delay_ms: ``connection.failed.authentication.delay.ms``.
    """

    name: str
    protocol: SecurityProtocol
    mechanisms: Mapping[str, MechanismSettings]
    max_receive_size: int
    failed_authentication_delay_ms: int

    @property
    def uses_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self.protocol in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    @property
    def uses_ssl(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def limits_sessions(self) -> bool:
        """Whether clients have to authenticate again on a connection (KIP-368)."""
        return any(each.max_reauth_ms > 0 for each in self.mechanisms.values())

    @property
    def authenticates(self) -> bool:
        """Whether a client has to prove its identity."""
        return self.uses_sasl
