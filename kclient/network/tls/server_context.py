"""TLS context of a listener."""

import ssl

from kclient.network.tls.cipher_suites import TlsVersions
from kclient.network.tls.store_loading import load_key_store, load_trust_store
from kclient.network.tls.tls_stores import TlsStores
from kclient.network.tls.version_limits import limit_versions

_VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(stores: TlsStores, versions: TlsVersions, client_auth: str) -> ssl.SSLContext:
    """Return a context without renegotiation, compression and tickets.

    Args:
        stores: Certificate of the listener, and the authorities of client certificates; those of
            the system are not trusted, since they would accept the certificate of anyone.
        versions: Versions and cipher suites of the listener.
        client_auth: ``ssl.client.auth``: none, requested or required.

    Raises:
        ConfigError: A store cannot be read, or has another form.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    limit_versions(context, versions)
    context.options |= (
        ssl.OP_NO_RENEGOTIATION
        | ssl.OP_NO_COMPRESSION
        | ssl.OP_NO_TICKET
        | ssl.OP_CIPHER_SERVER_PREFERENCE
    )
    context.num_tickets = 0
    load_key_store(context, stores)
    load_trust_store(context, stores)
    context.verify_mode = _VERIFY_MODES[client_auth]
    return context
