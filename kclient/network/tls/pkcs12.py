"""PKCS12 stores as PEM text, which the TLS library loads."""

from importlib import import_module
from typing import Any

from kclient.common.errors import ConfigError
from kclient.common.extras import missing_package
from kclient.common.secret import Secret

_DER = b"\x30"
_PEM = b"-----BEGIN "


def pem_of_pkcs12(store: str, password_name: str, data: bytes, password: Secret | None) -> str:
    """Return private key and certificates of a store, with that of the key first.

    Args:
        store: Name of the store in errors: ``option: got path``.
        password_name: Option with the password, for errors.
        data: Content of the file.
        password: Password of the store.

    Raises:
        ConfigError: The password is missing or wrong, the store is damaged or has another form, or
            the package that reads it is missing.
    """
    if not data.startswith(_DER):
        found = "a PEM file" if data.startswith(_PEM) else "a file of another form"
        raise ConfigError(f"{store}, {found}, expected PKCS12")
    try:
        pkcs12: Any = import_module("cryptography.hazmat.primitives.serialization.pkcs12")
    except ImportError as error:
        raise ConfigError(missing_package("PKCS12 stores", "cryptography", "pkcs12")) from error
    try:
        found = pkcs12.load_pkcs12(data, password and password.reveal().encode())
    except (ValueError, TypeError):
        if password is None:
            raise ConfigError(
                f"{store}, a PKCS12 store with a password, expected {password_name} too"
            ) from None
        raise ConfigError(
            f"{store}, which {password_name} does not open, or damaged PKCS12"
        ) from None
    return _pem_text(found)


def _pem_text(store: Any) -> str:
    serialization: Any = import_module("cryptography.hazmat.primitives.serialization")
    encoding = serialization.Encoding.PEM
    first = [] if store.cert is None else [store.cert]
    parts = [each.certificate.public_bytes(encoding) for each in (*first, *store.additional_certs)]
    if store.key is not None:
        form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        parts.insert(0, store.key.private_bytes(encoding, form, encryption))
    return b"".join(parts).decode()
