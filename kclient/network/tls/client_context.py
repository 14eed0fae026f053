"""TLS context of a client, from its configuration."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kclient.common.errors import ConfigError
from kclient.common.secret import Secret
from kclient.network.security_config import SecurityConfig
from kclient.network.tls.cipher_suites import (
    CIPHER_SUITES_1_2,
    TLS_1_2,
    TLS_1_3,
    versions_in_use,
)

_JAVA_KEYSTORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER = b"\x30"
_CONVERSION = "openssl pkcs12 -in STORE.p12 -out STORE.pem"
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_PRIVATE_KEY = "PRIVATE KEY-----"
_ENCRYPTED = ("ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED")


def client_context(config: SecurityConfig) -> ssl.SSLContext:
    """Return the context of a configuration: the user's own, or one of TLS 1.2 and 1.3.

    Without a trust store it trusts the certificate authorities of the system.

    Raises:
        ConfigError: A file cannot be read or has another form, a password is missing or wrong, or a
            private key does not belong to its certificate.
    """
    if config.ssl_context is not None:
        return config.ssl_context
    context = _verifying_context()
    _restrict(context, config)
    context.check_hostname = config.ssl_endpoint_identification_algorithm == "https"
    _load_trust_store(context, config)
    _load_key_store(context, config)
    return context


def https_context(name: str, location: str | None) -> ssl.SSLContext:
    """Return the context of requests over HTTPS, which trusts the authorities of a file.

    Args:
        name: Option with the location, for errors.
        location: PEM file; None for the authorities of the system.

    Raises:
        ConfigError: The file cannot be read, or has no certificates.
    """
    context = _verifying_context()
    if location is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, name, _pem_of(name, location))
    return context


def _verifying_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def _restrict(context: ssl.SSLContext, config: SecurityConfig) -> None:
    """Set the versions and the cipher suites."""
    suites = config.ssl_cipher_suites
    versions = versions_in_use(config.ssl_enabled_protocols, config.ssl_protocol, suites)
    known = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
    context.minimum_version, context.maximum_version = known[versions[0]], known[versions[-1]]
    names = [CIPHER_SUITES_1_2[name] for name in suites or () if name in CIPHER_SUITES_1_2]
    if names:
        context.set_ciphers(":".join(names))


def _load_trust_store(context: ssl.SSLContext, config: SecurityConfig) -> None:
    if config.ssl_truststore_certificates is not None:
        _trust(context, "ssl_truststore_certificates", config.ssl_truststore_certificates)
    elif config.ssl_truststore_location is not None:
        name = "ssl_truststore_location"
        _trust(context, name, _pem_of(name, config.ssl_truststore_location))
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)


def _trust(context: ssl.SSLContext, name: str, pem: str) -> None:
    if _CERTIFICATE not in pem:
        raise ConfigError(f"{name}: got no certificate, expected PEM with {_CERTIFICATE!r}")
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as error:
        raise ConfigError(f"{name}: got a damaged certificate: {_reason(error)}") from None


def _load_key_store(context: ssl.SSLContext, config: SecurityConfig) -> None:
    """Load this client's own certificate, if there is one."""
    if config.ssl_keystore_location is not None:
        name = "ssl_keystore_location"
        pem = _pem_of(name, config.ssl_keystore_location)
    elif config.ssl_keystore_key is not None and config.ssl_keystore_certificate_chain is not None:
        name = "ssl_keystore_key"
        pem = f"{config.ssl_keystore_key.reveal()}\n{config.ssl_keystore_certificate_chain}"
    else:
        return
    _check_key_store(name, pem, config.ssl_key_password)
    password = config.ssl_key_password
    with pem_file(pem) as path:
        try:
            # Without a callable, the library asks for a password on the terminal.
            context.load_cert_chain(path, password=lambda: password.reveal() if password else "")
        except ssl.SSLError as error:
            raise ConfigError(f"{name}: got {_key_store_problem(error, password)}") from None


def _check_key_store(name: str, pem: str, password: Secret | None) -> None:
    certificates = pem.count(_CERTIFICATE)
    has_key = _PRIVATE_KEY in pem
    if not certificates or not has_key:
        found = f"{certificates} certificates and {'a' if has_key else 'no'} private key"
        raise ConfigError(
            f"{name}: got {found}, expected PEM with a private key and its certificate chain"
        )
    if password is None and any(mark in pem for mark in _ENCRYPTED):
        raise ConfigError(f"{name}: got an encrypted private key, expected ssl_key_password too")


def _key_store_problem(error: ssl.SSLError, password: Secret | None) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "a private key that does not belong to the first certificate"
    if password is not None:
        return "a private key that ssl_key_password does not open, or damaged PEM"
    return f"damaged PEM: {_reason(error)}"


def _pem_of(name: str, path: str) -> str:
    """Return the text of a PEM file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: got {path!r:.200}, which cannot be read: {error}") from None
    if data.startswith(_JAVA_KEYSTORES):
        raise ConfigError(
            f"{name}: got {path!r:.200}, a Java keystore, expected PEM; convert it with keytool"
            f" -importkeystore -deststoretype PKCS12, then with {_CONVERSION}"
        )
    if data.startswith(_DER):
        raise ConfigError(
            f"{name}: got {path!r:.200}, a PKCS12 or DER file, expected PEM; convert it with"
            f" {_CONVERSION}"
        )
    return data.decode("utf-8", "replace")


@contextlib.contextmanager
def pem_file(pem: str) -> Iterator[str]:
    """Provide a path of PEM text: the TLS library loads private keys from files alone.

    Where the system has files in memory, nothing is written to a disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("keystore")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(suffix=".pem")  # readable by this user alone
    try:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(pem)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            Path(path).unlink()


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "no reason").replace("_", " ").lower()
