"""Single steps of a connection, for tools that look for the one that fails."""

import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kclient.common.runtime import Address
from kclient.network.security_config import SecurityConfig
from kclient.network.tls.client_context import client_context
from kclient.network.tls.handshake_failures import closed_in_handshake, handshake_failure


class TlsSession(NamedTuple):
    """Outcome of a TLS handshake.

    Attributes:
        version: Version of the protocol, such as ``TLSv1.3``.
        cipher: Name of the cipher suite.
        names: Host names and addresses of the peer's certificate; empty if it was not verified.
        expiry: End of its validity; None if it was not verified.
    """

    version: str
    cipher: str
    names: tuple[str, ...]
    expiry: datetime | None


def check_connect(address: Address, timeout: float) -> None:
    """Open a TCP connection and close it.

    Args:
        address: IP address and port.
        timeout: Longest wait, seconds.

    Raises:
        OSError: It cannot be opened.
    """
    socket.create_connection(address, timeout).close()


def check_handshake(
    address: Address, host: str, security: SecurityConfig, timeout: float
) -> TlsSession:
    """Open a connection, make a TLS handshake, and close it.

    Args:
        address: IP address and port.
        host: Host name, which is sent to the peer and verified.
        security: Trusted and own certificates, versions, and whether the host name is verified.
        timeout: Longest wait, seconds.

    Raises:
        SslAuthenticationError: The handshake failed; the text has the cause.
        DisconnectedError: The peer closed the connection or did not respond.
        ConfigError: A certificate or a key cannot be loaded.
    """
    context = client_context(security)
    verified = host if context.check_hostname else ""
    try:
        with (
            socket.create_connection(address, timeout) as stream,
            context.wrap_socket(
                stream, server_hostname=host, do_handshake_on_connect=False
            ) as secured,
        ):
            try:
                secured.do_handshake()
            except ssl.SSLError as error:
                raise handshake_failure(error, secured, verified) from error
            return _session(secured)
    except OSError as error:
        raise closed_in_handshake() from error


def _session(secured: ssl.SSLSocket) -> TlsSession:
    name, *_ = secured.cipher() or ("unknown",)
    certificate: Mapping[str, Any] = secured.getpeercert() or {}
    expiry = certificate.get("notAfter")
    return TlsSession(
        secured.version() or "unknown",
        name,
        tuple(name for _, name in certificate.get("subjectAltName", ())),
        None if expiry is None else datetime.fromtimestamp(ssl.cert_time_to_seconds(expiry), UTC),
    )
