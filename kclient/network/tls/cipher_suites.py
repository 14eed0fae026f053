"""Versions and cipher suites of TLS, by the names that Java has."""

from collections.abc import Collection, Mapping, Sequence

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


def versions_in_use(
    enabled: Collection[str], protocol: str, suites: Collection[str] | None
) -> Sequence[str]:
    """Return the versions that all settings allow, the lowest first.

    Args:
        enabled: Versions of ``ssl.enabled.protocols``.
        protocol: Value of ``ssl.protocol``: the highest version, as in Kafka.
        suites: Cipher suites; None for the default ones.
    """
    versions = [version for version in TLS_VERSIONS if version in enabled]
    if protocol == TLS_1_2:
        versions = [version for version in versions if version == TLS_1_2]
    if suites is not None:
        of_1_3 = CIPHER_SUITES_1_3.intersection(suites)
        has_suites = {TLS_1_2: len(of_1_3) < len(set(suites)), TLS_1_3: bool(of_1_3)}
        versions = [version for version in versions if has_suites[version]]
    return versions
