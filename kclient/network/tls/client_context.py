"""TLS context of a client, from its configuration."""

import ssl

from kclient.network.security_config import SecurityConfig
from kclient.network.tls.store_loading import (
    load_key_store,
    load_trust_store,
    read_pem,
    trust,
)
from kclient.network.tls.version_limits import limit_versions


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
    limit_versions(context, config.tls_versions())
    context.check_hostname = config.ssl_endpoint_identification_algorithm == "https"
    stores = config.tls_stores()
    if not load_trust_store(context, stores):
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    load_key_store(context, stores)
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
        trust(context, name, read_pem(name, location))
    return context


def _verifying_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context
