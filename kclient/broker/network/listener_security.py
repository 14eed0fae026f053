"""Security of one listener, as its settings resolve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kclient.common.secret import Secret
from kclient.network.endpoint import SecurityProtocol
from kclient.network.http_url import HttpUrl
from kclient.network.sasl.credentials import UserCredentials
from kclient.network.sasl.json_web_token import ClaimRules
from kclient.network.tls.cipher_suites import TlsVersions
from kclient.network.tls.tls_stores import TlsStores


class TokenSettings(NamedTuple):
    """Validation of the tokens of OAUTHBEARER.

    Attributes:
        setting: Name of the setting with the key set, for errors.
        keys: File or URL of the key set of the identity provider.
        refresh_ms: Time after which the keys of a URL are fetched again.
        authorities: PEM file with the authorities of the URL's certificate; None for those of the
            system.
        rules: What the claims of a token must have.
    """

    setting: str
    keys: str | HttpUrl
    refresh_ms: int
    authorities: str | None
    rules: ClaimRules


class MechanismSettings(NamedTuple):
    """Settings of a SASL mechanism of a listener.

    Attributes:
        max_reauth_ms: ``connections.max.reauth.ms``, the lifetime of a session; 0 for no limit.
        users: Passwords by user name, for PLAIN.
        tokens: Validation of tokens, for OAUTHBEARER.
        login: User and password with which this node connects to others; None if not given.
    """

    max_reauth_ms: int
    users: Mapping[str, Secret]
    tokens: TokenSettings | None
    login: UserCredentials | None = None


class TlsSettings(NamedTuple):
    """TLS of a listener.

    Attributes:
        stores: Certificate of the listener, and the authorities of client certificates.
        versions: Versions and cipher suites.
        client_auth: ``ssl.client.auth``: none, requested or required.
        principal_mapping_rules: ``ssl.principal.mapping.rules``.
    """

    stores: TlsStores
    versions: TlsVersions
    client_auth: str
    principal_mapping_rules: str


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """Security of a listener.

    Attributes:
        name: Name of the listener.
        protocol: Security protocol of its connections.
        tls: TLS of its connections, or None.
        mechanisms: Enabled SASL mechanisms by name.
        max_receive_size: ``sasl.server.max.receive.size``, in bytes.
        failed_authentication_delay_ms: ``connection.failed.authentication.delay.ms``.
        authentication_timeout_ms: ``authentication.timeout.ms``.
        max_unauthenticated: ``max.unauthenticated.connections``.
    """

    name: str
    protocol: SecurityProtocol
    tls: TlsSettings | None
    mechanisms: Mapping[str, MechanismSettings]
    max_receive_size: int
    failed_authentication_delay_ms: int
    authentication_timeout_ms: int
    max_unauthenticated: int

    @property
    def limits_sessions(self) -> bool:
        """Whether clients have to authenticate again on a connection (KIP-368)."""
        return any(
            each.max_reauth_ms > 0 or each.tokens is not None for each in self.mechanisms.values()
        )

    @property
    def authenticates(self) -> bool:
        """Whether a client has to prove its identity."""
        has_certificate = self.tls is not None and self.tls.client_auth == "required"
        return self.protocol.uses_sasl or has_certificate
