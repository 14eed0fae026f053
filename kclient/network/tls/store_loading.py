"""Loading of PEM stores into a TLS context."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kclient.common.errors import ConfigError
from kclient.common.secret import Secret
from kclient.network.tls.pkcs12 import pem_of_pkcs12
from kclient.network.tls.tls_stores import PKCS12, TlsStores

_JAVA_KEYSTORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER = b"\x30"
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_PRIVATE_KEY = "PRIVATE KEY-----"
_ENCRYPTED = ("ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED")


def load_trust_store(context: ssl.SSLContext, stores: TlsStores) -> bool:
    """Load the trusted certificates; return whether there are any.

    Raises:
        ConfigError: The file cannot be read, or has another form.
    """
    if stores.truststore_certificates is not None:
        name = stores.named("truststore", "certificates")
        pem = stores.truststore_certificates
    elif stores.truststore_location is not None:
        name = stores.named("truststore", "location")
        setting, password = stores.named("truststore", "password"), stores.truststore_password
        path = stores.truststore_location
        pem = _read_store(name, path, stores.truststore_type, setting, password)
    else:
        return False
    trust(context, name, pem)
    return True


def trust(context: ssl.SSLContext, name: str, pem: str) -> None:
    """Trust certificates; `name` is their setting.

    Raises:
        ConfigError: The text is not PEM with certificates.
    """
    if _CERTIFICATE not in pem:
        raise ConfigError(f"{name}: got no certificate, expected PEM with {_CERTIFICATE!r}")
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as error:
        raise ConfigError(f"{name}: got a damaged certificate: {_reason(error)}") from None


def load_key_store(context: ssl.SSLContext, stores: TlsStores) -> bool:
    """Load the private key with its certificate; return whether there is one.

    Raises:
        ConfigError: The file cannot be read or has another form, the password is missing or wrong,
            or the key does not belong to its certificate.
    """
    if stores.keystore_location is not None:
        name = stores.named("keystore", "location")
        setting, password = stores.named("keystore", "password"), stores.keystore_password
        path = stores.keystore_location
        pem = _read_store(name, path, stores.keystore_type, setting, password)
    elif stores.keystore_key is not None and stores.keystore_certificate_chain is not None:
        name = stores.named("keystore", "key")
        pem = f"{stores.keystore_key.reveal()}\n{stores.keystore_certificate_chain}"
    else:
        return False
    password, setting = stores.key_password, stores.named("key", "password")
    _check_key_store(name, pem, password, setting)
    with pem_file(pem) as path:
        try:
            # Without a callable, the library asks for a password on the terminal.
            context.load_cert_chain(path, password=lambda: password.reveal() if password else "")
        except ssl.SSLError as error:
            problem = _key_store_problem(error, password, setting)
            raise ConfigError(f"{name}: got {problem}") from None
    return True


def _check_key_store(name: str, pem: str, password: Secret | None, setting: str) -> None:
    certificates = pem.count(_CERTIFICATE)
    has_key = _PRIVATE_KEY in pem
    if not certificates or not has_key:
        found = f"{certificates} certificates and {'a' if has_key else 'no'} private key"
        raise ConfigError(
            f"{name}: got {found}, expected PEM with a private key and its certificate chain"
        )
    if password is None and any(mark in pem for mark in _ENCRYPTED):
        raise ConfigError(f"{name}: got an encrypted private key, expected {setting} too")


def _key_store_problem(error: ssl.SSLError, password: Secret | None, setting: str) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "a private key that does not belong to the first certificate"
    if password is not None:
        return f"a private key that {setting} does not open, or damaged PEM"
    return f"damaged PEM: {_reason(error)}"


def _read_store(
    name: str, path: str, kind: str, password_name: str, password: Secret | None
) -> str:
    """Return the content of a store as PEM text."""
    if kind != PKCS12:
        return read_pem(name, path)
    return pem_of_pkcs12(f"{name}: got {path!r:.200}", password_name, _read(name, path), password)


def read_pem(name: str, path: str) -> str:
    """Return the text of a PEM file; `name` is the setting with its path.

    Raises:
        ConfigError: The file cannot be read, or has another form.
    """
    data = _read(name, path)
    if data.startswith(_DER):
        raise ConfigError(
            f"{name}: got {path!r:.200}, a PKCS12 or DER file, expected PEM; set"
            f" {name.replace('location', 'type')}={PKCS12!r}"
        )
    return data.decode("utf-8", "replace")


def _read(name: str, path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: got {path!r:.200}, which cannot be read: {error}") from None
    if data.startswith(_JAVA_KEYSTORES):
        raise ConfigError(
            f"{name}: got {path!r:.200}, a Java keystore, expected PEM or PKCS12; convert it with"
            " keytool -importkeystore -deststoretype PKCS12"
        )
    return data


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
