"""Keys of the security of listeners, and their values for one listener.

A key may have another value for a listener, as ``listener.name.NAME.KEY`` with the name in lower
case, and some keys for a mechanism of a listener, as ``listener.name.NAME.MECHANISM.KEY``. The most
specific value is in force (Kafka: ListenerName.configPrefix, SaslChannelBuilder).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kclient.broker.network.listener_security import ListenerSecurity, MechanismSettings
from kclient.broker.server.broker_keys import names, number
from kclient.common.config_def import Config, ConfigKey, ConfigType
from kclient.common.config_keys import key
from kclient.common.errors import ConfigError
from kclient.common.secret import Secret
from kclient.network.endpoint import Endpoint
from kclient.network.sasl.jaas_config import ServerJaasConfig, parse_server_jaas_config

SERVER_MECHANISMS: Final = ("PLAIN",)
"""Mechanisms of ``sasl.enabled.mechanisms``."""

_PREFIX = "listener.name."
_JAAS = "sasl.jaas.config"
_MAX_REAUTH = "connections.max.reauth.ms"
_NAME = re.compile(r"listener\.name\.(?P<listener>[^.A-Z]+)\.(?P<key>[a-z0-9.-]+)", re.ASCII)


def _jaas_config(raw: object) -> ServerJaasConfig | None:
    if raw is None or isinstance(raw, ServerJaasConfig):
        return raw
    if isinstance(raw, Secret):
        return parse_server_jaas_config(raw.reveal())
    if isinstance(raw, str):
        return parse_server_jaas_config(raw)
    raise TypeError


class ListenerKeys(Config):
    """Keys that can have another value for a listener."""

    sasl_enabled_mechanisms: tuple[str, ...] = names(
        "sasl.enabled.mechanisms",
        (),
        "SASL mechanisms of listeners with SASL; Kafka's default is GSSAPI.",
        values=SERVER_MECHANISMS,
    )
    sasl_server_max_receive_size: int = number(
        "sasl.server.max.receive.size",
        ConfigType.INT,
        524288,
        "Largest request before a client is authenticated, in bytes.",
        low=1,
    )
    connection_failed_authentication_delay_ms: int = number(
        "connection.failed.authentication.delay.ms",
        ConfigType.INT,
        100,
        "Delay of the response to a client that failed to authenticate.",
    )
    connections_max_reauth_ms: int = number(
        _MAX_REAUTH,
        ConfigType.LONG,
        0,
        "Time until a client must authenticate again on its connection; 0: never.",
    )


_OF_LISTENER = {row.name: row for row in ListenerKeys.CONFIG_KEYS.values()}

_JAAS_KEY: ConfigKey = key(  # type: ignore[assignment]  # declared as its value, for attributes
    _JAAS,
    ConfigType.PASSWORD,
    _jaas_config,
    "one entry 'MODULE required OPTIONS;'",
    None,
    "Login module of a mechanism; users of PLAIN are its options user_NAME.",
    secret=True,
)
_OF_MECHANISM = {_JAAS: _JAAS_KEY, _MAX_REAUTH: _OF_LISTENER[_MAX_REAUTH]}


def override_key(name: str) -> ConfigKey | None:
    """Return the key of a value for one listener, or None if the name has another form.

    Raises:
        ConfigError: A listener or a mechanism has no such key.
    """
    if not name.startswith(_PREFIX):
        return None
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"unknown option {name!r:.120} for the broker; expected {_PREFIX}NAME.KEY or"
            f" {_PREFIX}NAME.MECHANISM.KEY, in lower case"
        )
    mechanism, rest = _split_mechanism(match["key"])
    known = _OF_LISTENER if mechanism is None else _OF_MECHANISM
    row = known.get(rest)
    if row is None:
        owner = "a listener" if mechanism is None else f"the mechanism {mechanism} of a listener"
        hint = (
            f"; set {_PREFIX}{match['listener']}.MECHANISM.{rest}" if rest in _OF_MECHANISM else ""
        )
        raise ConfigError(
            f"unknown option {name!r:.120} for the broker; {rest} is no option of {owner}{hint}"
        )
    return row._replace(name=name)


def _split_mechanism(rest: str) -> tuple[str | None, str]:
    """Split the first word off, if it is the name of a mechanism."""
    first, _, following = rest.partition(".")
    return (first, following) if first.upper() in SERVER_MECHANISMS else (None, rest)


def resolve(
    config: ListenerKeys, overrides: Mapping[str, object], listeners: Iterable[Endpoint]
) -> tuple[ListenerSecurity, ...]:
    """Return the security of each listener, from the values of the broker and the overrides.

    Raises:
        ConfigError: A value is missing, contradicts another, or is that of an unknown listener.
    """
    endpoints = tuple(listeners)
    known = {f"{_PREFIX}{endpoint.name.lower()}" for endpoint in endpoints}
    for name in overrides:
        if ".".join(name.split(".", 3)[:3]) not in known:
            raise ConfigError(
                f"{name}: got a value for an unknown listener, expected one of"
                f" {', '.join(sorted(known))}"
            )
    return tuple(_resolve_one(config, overrides, endpoint) for endpoint in endpoints)


def _resolve_one(
    config: ListenerKeys, overrides: Mapping[str, object], endpoint: Endpoint
) -> ListenerSecurity:
    prefix = f"{_PREFIX}{endpoint.name.lower()}."
    own = {
        name.removeprefix(prefix): value
        for name, value in overrides.items()
        if name.startswith(prefix)
    }
    values = config.with_values(
        **{_OF_LISTENER[name].keyword: value for name, value in own.items() if name in _OF_LISTENER}
    )
    security = ListenerSecurity(
        name=endpoint.name,
        protocol=endpoint.security_protocol,
        mechanisms={
            name: _mechanism(prefix, name, own, values) for name in values.sasl_enabled_mechanisms
        }
        if endpoint.security_protocol.name.startswith("SASL_")
        else {},
        max_receive_size=values.sasl_server_max_receive_size,
        failed_authentication_delay_ms=values.connection_failed_authentication_delay_ms,
    )
    if security.uses_sasl and not security.mechanisms:
        raise ConfigError(
            f"sasl.enabled.mechanisms: got nothing for the listener {endpoint.name}, expected some"
            f" of {', '.join(SERVER_MECHANISMS)}"
        )
    return security


def _mechanism(
    prefix: str, name: str, own: Mapping[str, object], values: ListenerKeys
) -> MechanismSettings:
    jaas_name = f"{name.lower()}.{_JAAS}"
    jaas = own.get(jaas_name)
    if not isinstance(jaas, ServerJaasConfig):
        raise ConfigError(
            f"{prefix}{jaas_name}: got nothing with the mechanism {name} of the listener, expected"
            f" {_JAAS_KEY.expected}"
        )
    if name not in jaas.mechanisms:
        raise ConfigError(
            f"{prefix}{jaas_name}: got a module of {', '.join(jaas.mechanisms)}, expected one of"
            f" {name}"
        )
    lifetime = own.get(f"{name.lower()}.{_MAX_REAUTH}", values.connections_max_reauth_ms)
    return MechanismSettings(
        max_reauth_ms=lifetime if isinstance(lifetime, int) else 0, users=jaas.users
    )
