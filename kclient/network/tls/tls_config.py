"""Configuration of TLS: the keys that clients and listeners share."""

from functools import partial

from kclient.common.config_def import Config, ConfigType
from kclient.common.config_keys import key, password, text
from kclient.common.secret import Secret
from kclient.network.tls.cipher_suites import (
    CIPHER_SUITES_1_2,
    CIPHER_SUITES_1_3,
    TLS_PROTOCOLS,
    TLS_VERSIONS,
    TlsVersions,
)
from kclient.network.tls.tls_stores import PKCS12, TlsStores

_STORE_TYPES = ("PEM", PKCS12)


def _known_store_type(raw: object) -> str:
    if isinstance(raw, str) and raw.upper() in _STORE_TYPES:
        return raw.upper()
    raise ValueError("convert other stores with keytool")


def _store_type(name: str) -> str:
    return key(
        name,
        ConfigType.STRING,
        _known_store_type,
        "'PEM' or 'PKCS12'",
        "PEM",
        "Format of the store; PKCS12 needs the extra pkcs12. Java's default is JKS.",
        choices=_STORE_TYPES,
    )


def _names(raw: object) -> tuple[str, ...]:
    """Return the names of a list, or of a str with commas."""
    names = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError
    if not names:
        raise ValueError
    return tuple(name.strip() for name in names)


def _tls_versions(raw: object) -> tuple[str, ...]:
    known = {version.lower(): version for version in TLS_VERSIONS}
    found = [known.get(name.lower()) for name in _names(raw)]
    versions = tuple(version for version in found if version is not None)
    if len(versions) < len(found):
        raise ValueError("earlier versions are not secure")
    return versions


def _tls_protocol(raw: object) -> str:
    if raw not in TLS_PROTOCOLS:
        raise ValueError
    return str(raw)


def _endpoint_algorithm(raw: object) -> str:
    if isinstance(raw, str) and raw.lower() in {"https", ""}:
        return raw.lower()
    raise ValueError


def _cipher_suites(hint: str, raw: object) -> tuple[str, ...] | None:
    if raw is None:
        return None
    names = _names(raw)
    for name in names:
        if name not in CIPHER_SUITES_1_2 and name not in CIPHER_SUITES_1_3:
            raise ValueError(f"{name!r:.80} is none of its names{hint}")
    if CIPHER_SUITES_1_3.intersection(names) not in (frozenset(), CIPHER_SUITES_1_3):
        raise ValueError("name all three suites of TLS 1.3, or none of them")
    return names


def cipher_suites(hint: str = "") -> tuple[str, ...] | None:
    """Declare ``ssl.cipher.suites``; `hint` is the end of the error about an unknown suite."""
    return key(
        "ssl.cipher.suites",
        ConfigType.LIST,
        partial(_cipher_suites, hint),
        "a list of IANA names of cipher suites of TLS 1.2 and 1.3, with forward secrecy",
        None,
        "Cipher suites that may be used. Those of TLS 1.3 can be used all or not at all.",
    )


class TlsConfig(Config):
    """Stores, and versions of TLS."""

    ssl_truststore_location: str | None = text(
        "ssl.truststore.location",
        None,
        "File with the certificates of trusted authorities. Without one, a client trusts the"
        " system's; a listener needs one for client certificates.",
    )
    ssl_truststore_certificates: str | None = text(
        "ssl.truststore.certificates", None, "The same as PEM text instead of a file (KIP-651)."
    )
    ssl_truststore_type: str = _store_type("ssl.truststore.type")
    ssl_truststore_password: Secret | None = password(
        "ssl.truststore.password", "Password of a PKCS12 store."
    )
    ssl_keystore_location: str | None = text(
        "ssl.keystore.location",
        None,
        "File with private key and certificate chain: of a listener, or of a client of brokers that"
        " require one.",
    )
    ssl_keystore_key: Secret | None = password(
        "ssl.keystore.key", "Private key as PEM text instead of a file (KIP-651)."
    )
    ssl_keystore_certificate_chain: str | None = text(
        "ssl.keystore.certificate.chain", None, "Certificate chain of ssl.keystore.key as PEM text."
    )
    ssl_keystore_type: str = _store_type("ssl.keystore.type")
    ssl_keystore_password: Secret | None = password(
        "ssl.keystore.password", "Password of a PKCS12 store."
    )
    ssl_key_password: Secret | None = password(
        "ssl.key.password", "Password of an encrypted private key."
    )
    ssl_enabled_protocols: tuple[str, ...] = key(
        "ssl.enabled.protocols",
        ConfigType.LIST,
        _tls_versions,
        f"a list of {' and '.join(map(repr, TLS_VERSIONS))}",
        TLS_VERSIONS,
        "Versions of TLS that may be used.",
    )
    ssl_protocol: str = key(
        "ssl.protocol",
        ConfigType.STRING,
        _tls_protocol,
        f"one of {', '.join(map(repr, TLS_PROTOCOLS))}",
        "TLSv1.3",
        "Highest version of TLS that may be used; 'TLS' for the highest that is enabled.",
        choices=TLS_PROTOCOLS,
    )
    ssl_endpoint_identification_algorithm: str = key(
        "ssl.endpoint.identification.algorithm",
        ConfigType.STRING,
        _endpoint_algorithm,
        "'https' or ''",
        "https",
        "Whether the host name must be in the broker's certificate; '' accepts any name.",
    )
    ssl_cipher_suites: tuple[str, ...] | None = cipher_suites()

    def tls_stores(self, owner: str = "", separator: str = "_") -> TlsStores:
        """Return key store and trust store; the arguments are for names of settings in errors."""
        return TlsStores(
            owner=owner,
            separator=separator,
            truststore_type=self.ssl_truststore_type,
            truststore_location=self.ssl_truststore_location,
            truststore_password=self.ssl_truststore_password,
            truststore_certificates=self.ssl_truststore_certificates,
            keystore_type=self.ssl_keystore_type,
            keystore_location=self.ssl_keystore_location,
            keystore_password=self.ssl_keystore_password,
            keystore_key=self.ssl_keystore_key,
            keystore_certificate_chain=self.ssl_keystore_certificate_chain,
            key_password=self.ssl_key_password,
        )

    def tls_versions(self, owner: str = "", separator: str = "_") -> TlsVersions:
        """Return versions and cipher suites; the arguments are those of `tls_stores`."""
        return TlsVersions(
            owner=owner,
            separator=separator,
            enabled=self.ssl_enabled_protocols,
            protocol=self.ssl_protocol,
            suites=self.ssl_cipher_suites,
        )
