"""Keys of the security of listeners, and their values for one listener.

A key may have another value for a listener, as ``listener.name.NAME.KEY`` with the name in lower
case, and some keys for a mechanism of a listener, as ``listener.name.NAME.MECHANISM.KEY``. The most
specific value is in force (Kafka: ListenerName.configPrefix, SaslChannelBuilder).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kclient.broker.network.listener_security import (
    ListenerSecurity,
    MechanismSettings,
    TlsSettings,
    TokenSettings,
)
from kclient.broker.server.broker_keys import names, number, string
from kclient.common.config_def import ConfigKey, ConfigType
from kclient.common.config_keys import key
from kclient.common.errors import ConfigError
from kclient.common.secret import Secret
from kclient.network.endpoint import Endpoint, SecurityProtocol
from kclient.network.http_url import HttpUrl, parse_http_url
from kclient.network.sasl.jaas_config import ServerJaasConfig, parse_server_jaas_config
from kclient.network.sasl.json_web_token import ClaimRules
from kclient.network.sasl.oauthbearer import OAUTHBEARER
from kclient.network.sasl.scram import SCRAM_MECHANISMS
from kclient.network.tls.ssl_principal_mapper import SslPrincipalMapper
from kclient.network.tls.tls_config import TlsConfig

SERVER_MECHANISMS: Final = ("PLAIN", *SCRAM_MECHANISMS, OAUTHBEARER)
"""Mechanisms of ``sasl.enabled.mechanisms``."""

_PREFIX = "listener.name."
_JAAS = "sasl.jaas.config"
_KEY_SET = "sasl.oauthbearer.jwks.endpoint.url"
_VALIDATOR = "sasl.server.callback.handler.class"
_VALIDATORS = tuple(
    f"org.apache.kafka.common.security.oauthbearer{package}.OAuthBearerValidatorCallbackHandler"
    for package in ("", ".secured")
)
_CLIENT_AUTH = "ssl.client.auth"
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


def _key_set(raw: object) -> str | HttpUrl | None:
    """Return the path of a file: URL, or another URL."""
    if raw is None or isinstance(raw, HttpUrl):
        return raw
    if not isinstance(raw, str):
        raise TypeError
    if not raw.startswith("file:"):
        return parse_http_url(raw)
    path = raw.removeprefix("file:")
    path = path.removeprefix("//") if path.startswith("///") else path
    if not path.startswith("/") or path.startswith("//") or "%" in path:
        raise ValueError("a file: URL has an absolute path without %")
    return path


def _validator_class(raw: object) -> object:
    if raw is None or raw in _VALIDATORS:
        return raw
    raise ValueError("classes are not loaded by name here")


def _mapping_rules(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError
    SslPrincipalMapper(raw)
    return raw


class ListenerKeys(TlsConfig):
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
    authentication_timeout_ms: int = number(
        "authentication.timeout.ms",
        ConfigType.INT,
        10000,
        "Time until a new connection is authenticated, whatever it sends. Not a key of Kafka.",
        low=1,
    )
    max_unauthenticated_connections: int = number(
        "max.unauthenticated.connections",
        ConfigType.INT,
        1000,
        "Connections of a listener that are not authenticated yet; beyond it the oldest is closed."
        " Not a key of Kafka.",
        low=1,
    )
    connections_max_reauth_ms: int = number(
        _MAX_REAUTH,
        ConfigType.LONG,
        0,
        "Time until a client must authenticate again on its connection; 0: never.",
    )

    sasl_oauthbearer_jwks_endpoint_url: str | HttpUrl | None = key(
        _KEY_SET,
        ConfigType.STRING,
        _key_set,
        "a file: or https: URL of a JSON Web Key Set",
        None,
        "Keys that tokens of OAUTHBEARER are signed by; a file is read again if it has changed.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = number(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        ConfigType.LONG,
        3_600_000,
        "Time after which keys of an https: URL are fetched again.",
        low=1,
    )
    https_ca_location: str | None = string(
        "https.ca.location",
        None,
        "PEM file with the authorities of the certificate of an https: URL; those of the system by"
        " default. Not a key of Kafka.",
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = names(
        "sasl.oauthbearer.expected.audience", (), "Accepted audiences of tokens; any by default."
    )
    sasl_oauthbearer_expected_issuer: str | None = string(
        "sasl.oauthbearer.expected.issuer", None, "Accepted issuer of tokens; any by default."
    )
    sasl_oauthbearer_clock_skew_seconds: int = number(
        "sasl.oauthbearer.clock.skew.seconds",
        ConfigType.INT,
        30,
        "Tolerated difference from the clock of the identity provider.",
    )
    sasl_oauthbearer_sub_claim_name: str = string(
        "sasl.oauthbearer.sub.claim.name", "sub", "Claim with the name of the principal."
    )
    ssl_client_auth: str = string(
        _CLIENT_AUTH,
        "none",
        "Whether clients show a certificate; for SASL_SSL only as listener.name.NAME.KEY.",
        values=("none", "requested", "required"),
    )
    ssl_principal_mapping_rules: str = key(
        "ssl.principal.mapping.rules",
        ConfigType.STRING,
        _mapping_rules,
        "rules RULE:PATTERN/REPLACEMENT/[LU] and DEFAULT, separated by commas",
        "DEFAULT",
        "How names of principals are made from subjects of client certificates (KIP-371).",
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
_VALIDATOR_KEY: ConfigKey = key(  # type: ignore[assignment]  # likewise
    _VALIDATOR,
    ConfigType.CLASS,
    _validator_class,
    f"{_VALIDATORS[0]!r} with OAUTHBEARER",
    None,
    "Accepted without effect: it is what this broker does.",
)
_OF_MECHANISM = {
    _JAAS: _JAAS_KEY,
    _VALIDATOR: _VALIDATOR_KEY,
    _MAX_REAUTH: _OF_LISTENER[_MAX_REAUTH],
}


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
    prefix = prefix_of(endpoint.name)
    own = _own(overrides, endpoint.name)
    values = values_of(config, overrides, endpoint.name)
    protocol = endpoint.security_protocol
    if protocol is SecurityProtocol.SASL_SSL and _CLIENT_AUTH not in own:
        values = values.with_values(ssl_client_auth="none")  # as in Kafka
    security = ListenerSecurity(
        name=endpoint.name,
        protocol=protocol,
        tls=_tls(endpoint.name, values) if protocol.uses_ssl else None,
        mechanisms={
            name: _mechanism(prefix, name, own, values) for name in values.sasl_enabled_mechanisms
        }
        if protocol.uses_sasl
        else {},
        max_receive_size=values.sasl_server_max_receive_size,
        failed_authentication_delay_ms=values.connection_failed_authentication_delay_ms,
        authentication_timeout_ms=values.authentication_timeout_ms,
        max_unauthenticated=values.max_unauthenticated_connections,
    )
    if protocol.uses_sasl and not security.mechanisms:
        raise ConfigError(
            f"sasl.enabled.mechanisms: got nothing for the listener {endpoint.name}, expected some"
            f" of {', '.join(SERVER_MECHANISMS)}"
        )
    return security


def prefix_of(listener: str) -> str:
    """Return the start of the names of the values for a listener."""
    return f"{_PREFIX}{listener.lower()}."


def values_of(config: ListenerKeys, overrides: Mapping[str, object], listener: str) -> ListenerKeys:
    """Return the values that are in force for a listener."""
    own = _own(overrides, listener)
    return config.with_values(
        **{_OF_LISTENER[name].keyword: value for name, value in own.items() if name in _OF_LISTENER}
    )


def _own(overrides: Mapping[str, object], listener: str) -> dict[str, object]:
    prefix = prefix_of(listener)
    return {
        name.removeprefix(prefix): value
        for name, value in overrides.items()
        if name.startswith(prefix)
    }


def _tls(listener: str, values: ListenerKeys) -> TlsSettings:
    stores = values.tls_stores(f"listener {listener}: ", ".")
    stores.check()
    if stores.keystore_location is None and stores.keystore_key is None:
        raise ConfigError(
            f"{stores.named('keystore', 'location')}: got nothing, expected a file with the private"
            " key and the certificate chain of the listener"
        )
    has_authorities = stores.truststore_location or stores.truststore_certificates
    if values.ssl_client_auth != "none" and not has_authorities:
        raise ConfigError(
            f"{stores.named('truststore', 'location')}: got nothing with {_CLIENT_AUTH}"
            f"={values.ssl_client_auth}, expected a file with the authorities of client"
            " certificates"
        )
    versions = values.tls_versions(stores.owner, stores.separator)
    versions.check()
    return TlsSettings(stores, versions, values.ssl_client_auth, values.ssl_principal_mapping_rules)


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
        max_reauth_ms=lifetime if isinstance(lifetime, int) else 0,
        users=jaas.users,
        tokens=_tokens(prefix, values) if name == OAUTHBEARER else None,
        login=jaas.login,
    )


def _tokens(prefix: str, values: ListenerKeys) -> TokenSettings:
    """Return how tokens are validated; without keys a broker would accept those of anyone."""
    keys = values.sasl_oauthbearer_jwks_endpoint_url
    if keys is None:
        raise ConfigError(
            f"{prefix}{_KEY_SET}: got nothing with OAUTHBEARER, expected"
            f" {_OF_LISTENER[_KEY_SET].expected}"
        )
    rules = ClaimRules(
        audiences=values.sasl_oauthbearer_expected_audience,
        issuer=values.sasl_oauthbearer_expected_issuer,
        clock_skew_s=values.sasl_oauthbearer_clock_skew_seconds,
        subject_claim=values.sasl_oauthbearer_sub_claim_name,
    )
    return TokenSettings(
        f"{prefix}{_KEY_SET}",
        keys,
        values.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        values.https_ca_location,
        rules,
    )
