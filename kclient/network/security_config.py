"""Configuration of the security of a client's connections: TLS and SASL."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from kclient.common.config_def import ConfigType, describe
from kclient.common.config_keys import key
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.secret import Secret
from kclient.network.endpoint import SecurityProtocol
from kclient.network.sasl.credentials import KerberosLogin
from kclient.network.sasl.jaas_config import JaasConfig, parse_jaas_config
from kclient.network.sasl.oidc_config import OidcConfig, OidcOptions
from kclient.network.tls.tls_config import cipher_suites

if TYPE_CHECKING:
    from ssl import SSLContext

_PROTOCOLS = tuple(SecurityProtocol.__members__)

SASL_MECHANISMS = ("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms of ``sasl.mechanism``."""


_CREDENTIALS = (
    "sasl_username",
    "sasl_password",
    "sasl_token_provider",
    "sasl_oauthbearer_token_endpoint_url",
    "sasl_kerberos_service_name",
)


def _security_protocol(raw: object) -> str:
    name = raw.upper() if isinstance(raw, str) else ""
    if name not in _PROTOCOLS:
        raise ValueError
    return name


def _mechanism(raw: object) -> str | None:
    if raw is None:
        return None
    name = raw.upper() if isinstance(raw, str) else ""
    if name in SASL_MECHANISMS:
        return name
    near = [each for each in SASL_MECHANISMS if _letters(each) == _letters(name)]
    raise ValueError(f"did you mean {near[0]!r}?" if near else "")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name))


def _jaas_config(raw: object) -> JaasConfig | None:
    if raw is None or isinstance(raw, JaasConfig):
        return raw
    if isinstance(raw, Secret):
        return parse_jaas_config(raw.reveal())
    if isinstance(raw, str):
        return parse_jaas_config(raw)
    raise TypeError


def _ssl_context(raw: object) -> object:
    # By name: the module is imported by clients that use TLS alone.
    if raw is None or any(
        (kind.__module__, kind.__name__) == ("ssl", "SSLContext") for kind in type(raw).__mro__
    ):
        return raw
    raise TypeError


TokenFunction = Callable[[], tuple[str, float]]
"""Function that returns a token for OAUTHBEARER, and its expiry in seconds since the Unix epoch."""


class TokenProvider(Protocol):
    """Object that returns tokens for OAUTHBEARER.

    It may have SASL extensions (KIP-342), a dict or a method that returns one, as ``extensions``.
    """

    def token(self) -> tuple[str, float]:
        """Return a token, and its expiry in seconds since the Unix epoch."""
        ...


def _text_or_callable(raw: object) -> object:
    if raw is None or callable(raw):
        return raw
    if not isinstance(raw, str):
        raise TypeError
    if not raw:
        raise ValueError
    return raw


def _secret_or_callable(raw: object) -> object:
    if isinstance(raw, Secret):
        return raw
    given = _text_or_callable(raw)
    return Secret(given) if isinstance(given, str) else given


def _service_name(raw: object) -> str | None:
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise TypeError
    if not raw or not raw.isprintable() or {"/", "@"}.intersection(raw):
        raise ValueError("the host name of the broker is added")
    return raw


def _token_provider(raw: object) -> object:
    if raw is None or callable(raw) or callable(getattr(raw, "token", None)):
        return raw
    raise TypeError


class SecurityConfig(OidcConfig):
    """How a client's connections are protected."""

    security_protocol: str = key(
        "security.protocol",
        ConfigType.STRING,
        _security_protocol,
        f"one of {', '.join(map(repr, _PROTOCOLS))}",
        "PLAINTEXT",
        "How connections are protected: by TLS (SSL), by authentication (SASL), or both.",
        choices=_PROTOCOLS,
    )
    sasl_mechanism: str | None = key(
        "sasl.mechanism",
        ConfigType.STRING,
        _mechanism,
        f"one of {', '.join(map(repr, SASL_MECHANISMS))}",
        None,
        "SASL mechanism; required with SASL_PLAINTEXT and SASL_SSL. Java's default is GSSAPI, which"
        " needs the extra gssapi here.",
    )
    sasl_username: str | Callable[[], str] | None = key(
        "sasl.username",
        ConfigType.STRING,
        _text_or_callable,
        "a non-empty str, or a callable that returns one",
        None,
        "User name of PLAIN and SCRAM, or a function that returns it, called for each connection."
        " Not a key of the Java client, which has it in sasl.jaas.config.",
    )
    sasl_password: Secret | Callable[[], str] | None = key(
        "sasl.password",
        ConfigType.PASSWORD,
        _secret_or_callable,
        "a non-empty str, or a callable that returns one",
        None,
        "Password of PLAIN and SCRAM, or a function that returns it, called for each connection."
        " Not a key of the Java client, likewise.",
        secret=True,
    )
    sasl_token_provider: TokenFunction | TokenProvider | None = key(
        "sasl.token.provider",
        ConfigType.UNKNOWN,
        _token_provider,
        "a callable that returns a token and its expiry, or an object with a method token",
        None,
        "Function that returns a token for OAUTHBEARER and its expiry in seconds since the Unix"
        " epoch; or an object with such a method token, and with SASL extensions as extensions."
        " Called in a thread of its own. Not a key of the Java client.",
        secret=True,
    )
    sasl_jaas_config: JaasConfig | None = key(
        "sasl.jaas.config",
        ConfigType.PASSWORD,
        _jaas_config,
        'one entry \'MODULE required username="..." password="...";\'',
        None,
        "User name and password in the form of the Java client, instead of sasl.username and"
        " sasl.password: an entry of PlainLoginModule or ScramLoginModule, for a delegation token"
        " with tokenauth=true. An entry of OAuthBearerLoginModule has clientId, clientSecret, scope"
        " and extension_NAME; one of Krb5LoginModule useKeyTab and keyTab, or useTicketCache.",
        secret=True,
    )
    sasl_kerberos_service_name: str | None = key(
        "sasl.kerberos.service.name",
        ConfigType.STRING,
        _service_name,
        "the first part of the brokers' principals, without '/' and '@'",
        None,
        "First part of the Kerberos principals of the brokers, often 'kafka'; required with GSSAPI,"
        " here or as serviceName in sasl.jaas.config.",
    )
    ssl_cipher_suites: tuple[str, ...] | None = cipher_suites(
        "; pass an ssl.SSLContext as ssl_context"
    )
    ssl_context: "SSLContext | None" = key(
        "ssl.context",
        ConfigType.UNKNOWN,
        _ssl_context,
        "an ssl.SSLContext",
        None,
        "Context of the module ssl, instead of all other ssl keys. Not a key of the Java client.",
    )

    @property
    def uses_ssl(self) -> bool:
        """Whether connections are encrypted."""
        return SecurityProtocol[self.security_protocol].uses_ssl

    @property
    def uses_sasl(self) -> bool:
        """Whether this client authenticates by SASL."""
        return SecurityProtocol[self.security_protocol].uses_sasl

    @property
    def has_fixed_credentials(self) -> bool:
        """Whether user name and password are values, and no function returns them."""
        given = (self.sasl_username, self.sasl_password)
        has_password = self.sasl_mechanism not in {"GSSAPI", "OAUTHBEARER"}
        return has_password and not any(map(callable, given))

    @property
    def kerberos_login(self) -> KerberosLogin:
        """Where tickets for GSSAPI come from."""
        jaas = self.sasl_jaas_config
        login = (jaas.kerberos if jaas else None) or KerberosLogin("", "", "", "")
        return login._replace(service_name=self.sasl_kerberos_service_name or login.service_name)

    @property
    def credentials(self) -> tuple[str, Secret]:
        """User name and password of this client.

        Raises:
            IllegalStateError: There are none: `check_security` was not called.
        """
        if self.sasl_jaas_config is not None:
            return self.sasl_jaas_config.username, self.sasl_jaas_config.password
        user, password = self.sasl_username, self.sasl_password
        if not isinstance(user, str) or not isinstance(password, Secret):
            raise IllegalStateError("the configuration was not checked: it has no credentials")
        return user, password

    @property
    def has_delegation_token(self) -> bool:
        """Whether `credentials` are those of a delegation token (KIP-48)."""
        return self.sasl_jaas_config is not None and self.sasl_jaas_config.tokenauth

    def check_security(self) -> None:
        """Check the values against each other.

        Raises:
            ConfigError: A value is missing, or has no effect with the others: settings of security
                are never ignored.
        """
        self._check_unused("ssl", used=self.uses_ssl, expected="SSL or SASL_SSL")
        self._check_unused("sasl", used=self.uses_sasl, expected="SASL_PLAINTEXT or SASL_SSL")
        if self.uses_sasl:
            self._check_sasl()
        self.check_token_endpoint()
        self._check_stores()
        self.tls_versions().check()

    def _check_unused(self, prefix: str, *, used: bool, expected: str) -> None:
        given = self._given(f"{prefix}_")
        if given and not used:
            raise ConfigError(
                f"security_protocol: got {self.security_protocol!r} with {given[0]}, expected"
                f" {expected}"
            )

    def _given(self, prefix: str) -> list[str]:
        """Return the keys of a prefix whose value is not the default."""
        return [
            name
            for name, row in SecurityConfig.CONFIG_KEYS.items()
            if name.startswith(prefix) and getattr(self, name) != row.default
        ]

    def _check_sasl(self) -> None:
        if self.sasl_mechanism is None:
            raise ConfigError(
                f"sasl_mechanism: got nothing with {self.security_protocol}, expected one of"
                f" {', '.join(SASL_MECHANISMS)}"
            )
        if self.sasl_jaas_config is not None:
            self._check_jaas_config(self.sasl_jaas_config)
        self._check_given_credentials()
        if self.has_fixed_credentials:
            self._check_credentials()

    def _check_given_credentials(self) -> None:
        """Check that exactly the credentials of the mechanism are given."""
        provider, endpoint = "sasl_token_provider", "sasl_oauthbearer_token_endpoint_url"
        needed: tuple[str, ...] = ("sasl_username", "sasl_password")
        if self.sasl_mechanism == "GSSAPI":
            needed = ("sasl_kerberos_service_name",)
        elif self.sasl_mechanism == "OAUTHBEARER":
            has_endpoint = self.sasl_oauthbearer_token_endpoint_url is not None
            needed = (endpoint,) if has_endpoint else (provider,)
        elif self.sasl_jaas_config is not None:
            needed = ()
        other = [name for name in _CREDENTIALS if name not in needed]
        has_service_name = self.sasl_mechanism == "GSSAPI" and self.kerberos_login.service_name
        for name in () if has_service_name else needed:
            if getattr(self, name) is None:
                hint = f"; or {endpoint}" if name == provider else ""
                raise ConfigError(
                    f"{name}: got nothing, expected it with {self.sasl_mechanism}{hint}"
                )
        for name in other:
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{name}: got it with {self.sasl_mechanism}, expected"
                    f" {' and '.join(needed) or 'sasl_jaas_config alone'}"
                )

    def _check_jaas_config(self, jaas: JaasConfig) -> None:
        for name in ("sasl_username", "sasl_password", "sasl_token_provider"):
            if getattr(self, name) is not None:
                raise ConfigError(f"sasl_jaas_config: got it with {name}, expected one of them")
        if jaas.kerberos is not None and self.sasl_kerberos_service_name is not None:
            given = jaas.kerberos.service_name
            if given not in {"", self.sasl_kerberos_service_name}:
                raise ConfigError(
                    f"sasl_kerberos_service_name: got {self.sasl_kerberos_service_name!r} and"
                    " another serviceName in sasl_jaas_config, expected one of them"
                )
        if self.sasl_mechanism not in jaas.mechanisms:
            raise ConfigError(
                f"sasl_mechanism: got {self.sasl_mechanism!r} with a module of"
                f" {', '.join(jaas.mechanisms)} in sasl_jaas_config, expected the same mechanism"
            )

    def _check_credentials(self) -> None:
        user, password = self.credentials
        names = "sasl_jaas_config" if self.sasl_jaas_config else "sasl_username, sasl_password"
        if self.sasl_mechanism != "PLAIN" and not user.isascii():
            shown = "a secret value" if self.sasl_jaas_config else describe(user)
            raise ConfigError(
                f"{names.partition(',')[0]}: got {shown}, expected an ASCII user name with"
                f" {self.sasl_mechanism}"
            )
        if "\0" in user or "\0" in password.reveal():
            raise ConfigError(f"{names}: got a NUL, expected text without one")

    def _check_stores(self) -> None:
        given = self._given("ssl_")
        if self.ssl_context is not None and len(given) > 1:
            other = next(name for name in given if name != "ssl_context")
            raise ConfigError(f"ssl_context: got it with {other}, expected one of them")
        self.tls_stores().check()


class SecurityOptions(OidcOptions, total=False):
    """Keyword options of the security of a client's connections."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    sasl_mechanism: (
        Literal["GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None
    )
    sasl_token_provider: TokenFunction | TokenProvider | None
    sasl_username: str | Callable[[], str] | None
    sasl_password: str | Callable[[], str] | None
    sasl_jaas_config: str | None
    sasl_kerberos_service_name: str | None
    ssl_truststore_location: str | None
    ssl_truststore_certificates: str | None
    ssl_truststore_type: Literal["PEM", "PKCS12"]
    ssl_truststore_password: str | None
    ssl_keystore_location: str | None
    ssl_keystore_key: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_type: Literal["PEM", "PKCS12"]
    ssl_keystore_password: str | None
    ssl_key_password: str | None
    ssl_endpoint_identification_algorithm: Literal["https", ""]
    ssl_enabled_protocols: str | Sequence[str]
    ssl_protocol: Literal["TLS", "TLSv1.2", "TLSv1.3"]
    ssl_cipher_suites: str | Sequence[str] | None
    ssl_context: "SSLContext | None"
