"""Keys about versions and cipher suites of TLS, of clients and of listeners."""

from functools import partial

from kclient.common.config_def import ConfigType
from kclient.common.config_keys import key
from kclient.network.tls.cipher_suites import (
    CIPHER_SUITES_1_2,
    CIPHER_SUITES_1_3,
    TLS_PROTOCOLS,
    TLS_VERSIONS,
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


def enabled_protocols() -> tuple[str, ...]:
    """Declare ``ssl.enabled.protocols``."""
    return key(
        "ssl.enabled.protocols",
        ConfigType.LIST,
        _tls_versions,
        f"a list of {' and '.join(map(repr, TLS_VERSIONS))}",
        TLS_VERSIONS,
        "Versions of TLS that may be used.",
    )


def highest_protocol() -> str:
    """Declare ``ssl.protocol``."""
    return key(
        "ssl.protocol",
        ConfigType.STRING,
        _tls_protocol,
        f"one of {', '.join(map(repr, TLS_PROTOCOLS))}",
        "TLSv1.3",
        "Highest version of TLS that may be used; 'TLS' for the highest that is enabled.",
        choices=TLS_PROTOCOLS,
    )


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
