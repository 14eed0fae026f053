"""Configuration of tokens from an OIDC token endpoint (KIP-768)."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypedDict

from kclient.common.config_def import ConfigType
from kclient.common.config_keys import INT_MAX, key, password, switch, text, whole_number
from kclient.common.errors import ConfigError
from kclient.common.secret import Secret
from kclient.network.http_url import HttpUrl, parse_http_url
from kclient.network.sasl.credentials import is_extension
from kclient.network.sasl.jaas_config import JaasConfig
from kclient.network.tls.tls_config import TlsConfig

_HANDLERS = tuple(
    f"org.apache.kafka.common.security.oauthbearer{package}.OAuthBearerLoginCallbackHandler"
    for package in ("", ".secured")
)
_TIMEOUT_MS = 10_000


class TokenRequest(NamedTuple):
    """Request for a token.

    Attributes:
        url: Token endpoint.
        client_id: Id of the client at the identity provider.
        client_secret: Its secret.
        scope: Scope of the token; None to leave it to the provider.
        extensions: SASL extensions (KIP-342), which are sent to the broker with the token.
    """

    url: HttpUrl
    client_id: str
    client_secret: Secret
    scope: str | None
    extensions: Mapping[str, str]


def _url(raw: object) -> HttpUrl | None:
    if raw is None or isinstance(raw, HttpUrl):
        return raw
    if not isinstance(raw, str):
        raise TypeError
    return parse_http_url(raw)


def _extensions(raw: object) -> Mapping[str, str] | None:
    if raw is None or isinstance(raw, Mapping):
        return raw
    if not isinstance(raw, str):
        raise TypeError
    pairs = [pair.partition("=") for pair in raw.split(",")]
    if not all(is_extension(name.strip(), value) for name, _, value in pairs):
        raise ValueError
    return {name.strip(): value for name, _, value in pairs}


def _handler(raw: object) -> str | None:
    if raw is None or raw in _HANDLERS:
        return raw if isinstance(raw, str) else None
    raise ValueError("classes are not loaded by name here")


class OidcConfig(TlsConfig):
    """Where a client gets its tokens for OAUTHBEARER, after the keys of TLS."""

    sasl_jaas_config: JaasConfig | None

    sasl_oauthbearer_token_endpoint_url: HttpUrl | None = key(
        "sasl.oauthbearer.token.endpoint.url",
        ConfigType.STRING,
        _url,
        "an https URL, or http of this machine",
        None,
        "Token endpoint of an OIDC identity provider, from which a client with OAUTHBEARER gets its"
        " tokens by client credentials (KIP-768).",
        secret=True,
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = text(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        "Id of this client at the identity provider.",
    )
    sasl_oauthbearer_client_credentials_client_secret: Secret | None = password(
        "sasl.oauthbearer.client.credentials.client.secret",
        "Secret of this client at the identity provider.",
    )
    sasl_oauthbearer_scope: str | None = text(
        "sasl.oauthbearer.scope", None, "Scope of the tokens; none by default."
    )
    sasl_oauthbearer_extensions: Mapping[str, str] | None = key(
        "sasl.oauthbearer.extensions",
        ConfigType.STRING,
        _extensions,
        "'NAME=VALUE[,NAME=VALUE]', with names of letters",
        None,
        "SASL extensions (KIP-342) that are sent with a token of the endpoint, as some services"
        " need. Not a key of the Java client, which has them in sasl.jaas.config.",
    )
    sasl_oauthbearer_header_urlencode: bool = switch(
        "sasl.oauthbearer.header.urlencode",
        "Whether client id and secret are URL-encoded in the request, as RFC 6749 requires and some"
        " identity providers do not expect.",
        default=False,
    )
    sasl_login_connect_timeout_ms: int = whole_number(
        "sasl.login.connect.timeout.ms",
        _TIMEOUT_MS,
        "Time to connect to the token endpoint. The Java client has no limit by default.",
        low=1,
        high=INT_MAX,
    )
    sasl_login_read_timeout_ms: int = whole_number(
        "sasl.login.read.timeout.ms",
        _TIMEOUT_MS,
        "Time for the response of the token endpoint. The Java client has no limit by default.",
        low=1,
        high=INT_MAX,
    )
    sasl_login_retry_backoff_ms: int = whole_number(
        "sasl.login.retry.backoff.ms",
        100,
        "Time before the first retry of a request to the token endpoint; it doubles with each.",
        low=1,
    )
    sasl_login_retry_backoff_max_ms: int = whole_number(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        "Time for which a request to the token endpoint is retried.",
    )
    sasl_login_callback_handler_class: str | None = key(
        "sasl.login.callback.handler.class",
        ConfigType.CLASS,
        _handler,
        "the class with which the Java client uses sasl.oauthbearer.token.endpoint.url",
        None,
        "Has no effect; it is accepted for configurations of the Java client.",
        choices=_HANDLERS,
    )
    https_ca_location: str | None = text(
        "https.ca.location",
        None,
        "PEM file with the authorities that are trusted for the token endpoint; without one, the"
        " system's are. Not a key of the Java client.",
    )

    @property
    def token_request(self) -> TokenRequest | None:
        """Request for a token at the endpoint; None if there is no endpoint."""
        url = self.sasl_oauthbearer_token_endpoint_url
        if url is None:
            return None
        jaas = self.sasl_jaas_config
        return TokenRequest(
            url,
            self.sasl_oauthbearer_client_credentials_client_id or (jaas.username if jaas else ""),
            self.sasl_oauthbearer_client_credentials_client_secret
            or (jaas.password if jaas else Secret("")),
            self.sasl_oauthbearer_scope or (jaas.scope if jaas else "") or None,
            self.sasl_oauthbearer_extensions or (jaas.extensions if jaas else {}),
        )

    def check_token_endpoint(self) -> None:
        """Check the values about the endpoint against each other.

        Raises:
            ConfigError: Client id or secret is missing, or given twice, or no endpoint needs them.
        """
        request = self.token_request
        if request is None:
            given = [
                name
                for name, row in OidcConfig.CONFIG_KEYS.items()
                if name not in TlsConfig.CONFIG_KEYS and getattr(self, name) != row.default
            ]
            if given:
                raise ConfigError(
                    f"{given[0]}: got it without sasl_oauthbearer_token_endpoint_url, expected both"
                    " or none"
                )
            return
        self._check_given_once()
        for part, value in (
            ("id", request.client_id),
            ("secret", request.client_secret.reveal()),
        ):
            if not value:
                raise ConfigError(
                    f"sasl_oauthbearer_client_credentials_client_{part}: got nothing, expected it"
                    " with sasl_oauthbearer_token_endpoint_url"
                )

    def _check_given_once(self) -> None:
        jaas = self.sasl_jaas_config
        if jaas is None:
            return
        for name, other in (
            ("client_credentials_client_id", jaas.username),
            ("client_credentials_client_secret", jaas.password.reveal()),
            ("scope", jaas.scope),
            ("extensions", jaas.extensions),
        ):
            if other and getattr(self, f"sasl_oauthbearer_{name}") is not None:
                raise ConfigError(
                    f"sasl_oauthbearer_{name}: got it with the same in sasl_jaas_config, expected"
                    " one of them"
                )


class OidcOptions(TypedDict, total=False):
    """Keyword options of tokens from an OIDC token endpoint."""

    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_extensions: str | None
    sasl_oauthbearer_header_urlencode: bool
    sasl_login_connect_timeout_ms: int
    sasl_login_read_timeout_ms: int
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_login_callback_handler_class: (
        Literal[
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
        ]
        | None
    )
    https_ca_location: str | None
