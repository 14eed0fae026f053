"""Versions and cipher suites of TLS, by the names that Java has."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kclient.common.errors import ConfigError

TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
TLS_VERSIONS = (TLS_1_2, TLS_1_3)
"""Versions of ``ssl.enabled.protocols``; earlier ones are not secure (RFC 8996)."""

TLS_PROTOCOLS = ("TLS", TLS_1_2, TLS_1_3)
"""Values of ``ssl.protocol``."""

CIPHER_SUITES_1_3 = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)

_AUTHENTICATED = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_CHAINED = {"AES_128_CBC_SHA256": "AES128-SHA256", "AES_256_CBC_SHA384": "AES256-SHA384"}

CIPHER_SUITES_1_2: Mapping[str, str] = {
    f"TLS_{exchange}_WITH_{cipher}": f"{exchange.replace('_', '-')}-{name}"
    for exchange, ciphers in (
        ("ECDHE_ECDSA", _AUTHENTICATED | _CHAINED),
        ("ECDHE_RSA", _AUTHENTICATED | _CHAINED),
        ("DHE_RSA", _AUTHENTICATED),
    )
    for cipher, name in ciphers.items()
}
"""OpenSSL's name of each cipher suite of TLS 1.2 with forward secrecy."""


class TlsVersions(NamedTuple):
    """Versions and cipher suites of a client or a listener, as configured.

    Attributes:
        owner: Start of the names of settings in errors, such as ``listener IN: ``.
        separator: ``.`` or ``_`` in the names of settings in errors.
        enabled: Versions of ``ssl.enabled.protocols``.
        protocol: Value of ``ssl.protocol``: the highest version, as in Kafka.
        suites: Cipher suites; None for the default ones.
    """

    owner: str
    separator: str
    enabled: Collection[str]
    protocol: str
    suites: Collection[str] | None

    def in_use(self) -> Sequence[str]:
        """Return the versions that all settings allow, the lowest first."""
        versions = self._without_suites()
        if self.suites is None:
            return versions
        of_1_3 = CIPHER_SUITES_1_3.intersection(self.suites)
        has_suites = {TLS_1_2: len(of_1_3) < len(set(self.suites)), TLS_1_3: bool(of_1_3)}
        return [version for version in versions if has_suites[version]]

    def check(self) -> None:
        """Check the settings against each other.

        Raises:
            ConfigError: No version is left.
        """
        if not self._without_suites():
            raise ConfigError(
                f"{self._named('enabled', 'protocols')}: got {', '.join(self.enabled)} with"
                f" ssl{self.separator}protocol {self.protocol}, expected a common version"
            )
        if not self.in_use():
            raise ConfigError(
                f"{self._named('cipher', 'suites')}: got no suite of {', '.join(self.enabled)},"
                " expected one of each version that is enabled"
            )

    def _without_suites(self) -> Sequence[str]:
        highest = TLS_1_2 if self.protocol == TLS_1_2 else TLS_1_3
        return [each for each in TLS_VERSIONS if each in self.enabled and each <= highest]

    def _named(self, *words: str) -> str:
        return self.owner + self.separator.join(("ssl", *words))
