"""Security of a node's connections to a listener of other nodes, from the settings of its own.

The nodes of a cluster have the same listeners. A node thus connects with the key store and trust
store of its own listener, and with user and password of its login module (Kafka: ChannelBuilders).
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kclient.broker.network.listener_security import ListenerSecurity
from kclient.broker.server.listener_keys import ListenerKeys, prefix_of
from kclient.common.errors import ConfigError
from kclient.network.sasl.credentials import UserCredentials
from kclient.network.sasl.plain import PLAIN
from kclient.network.sasl.scram import SCRAM_MECHANISMS
from kclient.network.security_config import SecurityConfig
from kclient.network.tls.tls_config import TlsConfig

INTER_BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"

BROKER_MECHANISMS: Final = (PLAIN, *SCRAM_MECHANISMS)
"""Mechanisms of connections between brokers."""
CONTROLLER_MECHANISMS: Final = (PLAIN,)
"""Mechanisms of connections to controllers.

Credentials of SCRAM are in the metadata log, which is known when a controller leads. A controller
is elected by connections between controllers, so that no election could end.
"""


class PeerSecurity(NamedTuple):
    """A listener of other nodes, and the security of connections to it."""

    listener: str
    security: SecurityConfig


class MechanismSetting(NamedTuple):
    """Setting of the mechanism of connections between nodes.

    Attributes:
        name: Name of the setting.
        value: Its value, or None.
        possible: Mechanisms that it may have.
    """

    name: str
    value: str | None
    possible: Sequence[str]


def peer_security(
    listener: ListenerSecurity, values: ListenerKeys, mechanism: MechanismSetting
) -> PeerSecurity:
    """Return the security of connections to a listener.

    Args:
        listener: Security of the listener of this node.
        values: Values that are in force for the listener.
        mechanism: Mechanism for a listener with SASL.

    Raises:
        ConfigError: The mechanism is missing, or cannot be used, or has no user and password.
    """
    given: dict[str, Any] = {"security_protocol": listener.protocol.name}
    if listener.protocol.uses_ssl:
        given |= {name: getattr(values, name) for name in TlsConfig.CONFIG_KEYS}
    if listener.protocol.uses_sasl:
        name, login = _login(listener, mechanism)
        given |= {
            "sasl_mechanism": name,
            "sasl_username": login.user,
            "sasl_password": login.password,
        }
    security = SecurityConfig(**given)
    try:
        security.check_security()
    except ConfigError as error:
        raise ConfigError(f"connections to the listener {listener.name}: {error}") from None
    return PeerSecurity(listener.name, security)


def _login(listener: ListenerSecurity, mechanism: MechanismSetting) -> tuple[str, UserCredentials]:
    """Return the mechanism, with user and password of this node."""
    setting, name, possible = mechanism
    if name is None or name not in possible or name not in listener.mechanisms:
        usable = [each for each in possible if each in listener.mechanisms]
        raise ConfigError(
            f"{setting}: got {'nothing' if name is None else repr(name)} with the listener"
            f" {listener.name} of {listener.protocol.name}, expected"
            f" {_expected(usable, possible, listener)}{_hint(name, possible)}"
        )
    login = listener.mechanisms[name].login
    if login is None:
        raise ConfigError(
            f"{prefix_of(listener.name)}{name.lower()}.sasl.jaas.config: got a module without"
            f" username and password with {setting}={name}, expected those of this node"
        )
    return name, login


def _expected(usable: Sequence[str], possible: Sequence[str], listener: ListenerSecurity) -> str:
    if usable:
        return f"one of {', '.join(usable)}"
    return (
        f"one of {', '.join(possible)}, also among the sasl.enabled.mechanisms of the listener:"
        f" {', '.join(listener.mechanisms)}"
    )


def _hint(name: str | None, possible: Sequence[str]) -> str:
    if name not in SCRAM_MECHANISMS or name in possible:
        return ""
    return (
        "; users of SCRAM are in the metadata, which controllers know after they connected to each"
        " other"
    )
