"""Errors of TLS handshakes, with their probable cause and remedy."""

import ssl
from collections.abc import Mapping
from typing import Any

from kclient.common.errors import (
    AuthenticationError,
    DisconnectedError,
    KafkaError,
    SslAuthenticationError,
)

_EXPIRED, _NOT_YET_VALID = 10, 9
_SELF_SIGNED = frozenset({18, 19})
_UNKNOWN_ISSUER = frozenset({2, 20, 21})
_OTHER_HOST, _OTHER_IP = 62, 64

_CLIENT_CERTIFICATE_ALERTS = ("CERTIFICATE_REQUIRED", "ALERT_BAD_CERTIFICATE")
_UNTRUSTED_ALERTS = (
    "ALERT_UNKNOWN_CA",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_CERTIFICATE_EXPIRED",
)
_NO_COMMON = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "ALERT_HANDSHAKE_FAILURE", "NO_SHARED")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


def handshake_failure(
    error: ssl.SSLError, session: ssl.SSLObject | ssl.SSLSocket, host: str
) -> KafkaError:
    """Return the error of a handshake that failed.

    Args:
        error: What the TLS library raised.
        session: The session, for the certificate of the peer.
        host: Host name that was verified; empty if none was.
    """
    failure: KafkaError
    if isinstance(error, ssl.SSLCertVerificationError):
        text = _verification_failure(error, _peer_certificate(session), host)
        failure = SslAuthenticationError(f"TLS handshake: {text}")
    elif isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        failure = closed_in_handshake()
    else:
        refusal = _refusal_by_client if session.server_side else _refusal
        failure = SslAuthenticationError(f"TLS handshake: {refusal(error)}")
    failure.__cause__ = error
    return failure


def refused_after_handshake(error: ssl.SSLError) -> AuthenticationError:
    """Return the error of an alert that came before the first data.

    With TLS 1.3 the handshake of a client ends before the peer has checked its certificate.
    """
    failure = SslAuthenticationError(f"TLS: {_refusal(error)}")
    failure.__cause__ = error
    return failure


def closed_in_handshake() -> DisconnectedError:
    """Return the error of a peer that ended the connection within the handshake."""
    return DisconnectedError(
        "the peer closed the connection in the TLS handshake; the port may be one without TLS"
    )


def _refusal_by_client(error: ssl.SSLError) -> str:
    """Return why a handshake failed, as the broker sees it."""
    reason = error.reason or str(error)
    if any(alert in reason for alert in _UNTRUSTED_ALERTS):
        return f"the client does not trust the certificate of this listener ({reason})"
    if "DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return f"the client has no certificate, and ssl.client.auth is required ({reason})"
    if "HTTP_REQUEST" in reason:
        return f"the client speaks HTTP, and this listener TLS ({reason})"
    if any(word in reason for word in _NO_COMMON):
        return f"no TLS version or cipher suite in common with the client ({reason})"
    if any(word in reason for word in _NO_TLS):
        return f"the client does not speak TLS ({reason})"
    return reason


def _refusal(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if any(alert in reason for alert in _CLIENT_CERTIFICATE_ALERTS):
        return f"the peer requires a client certificate that it trusts ({reason}); set ssl.keystore"
    if "UNKNOWN_CA" in reason or "CERTIFICATE_UNKNOWN" in reason:
        return f"the peer does not trust this client's certificate ({reason})"
    if "CERTIFICATE_EXPIRED" in reason:
        return f"this client's certificate has expired ({reason})"
    if any(word in reason for word in _NO_COMMON):
        return f"no TLS version or cipher suite in common with the peer ({reason})"
    if any(word in reason for word in _NO_TLS):
        return f"the peer does not speak TLS ({reason}); check security.protocol and the port"
    return reason


def _verification_failure(
    error: ssl.SSLCertVerificationError, certificate: Mapping[str, Any], host: str
) -> str:
    code = error.verify_code
    if code in {_OTHER_HOST, _OTHER_IP}:
        names = ", ".join(f"{kind}:{name}" for kind, name in certificate.get("subjectAltName", ()))
        return (
            f"the certificate is not valid for {host!r}; its names are {names or 'unknown'};"
            " connect by one of these names"
        )
    if code in _SELF_SIGNED:
        return (
            f"the certificate{_named(certificate, 'subject')} or that of its issuer is self-signed"
            " and not trusted; add it to ssl.truststore"
        )
    if code in _UNKNOWN_ISSUER:
        return (
            f"the certificate is signed by an unknown issuer{_named(certificate, 'issuer')}; add"
            " the issuer to ssl.truststore, or let the broker send its intermediate certificates"
        )
    if code == _EXPIRED:
        return f"the certificate expired on {certificate.get('notAfter', 'an unknown date')}"
    if code == _NOT_YET_VALID:
        return f"the certificate is valid from {certificate.get('notBefore', 'an unknown date')}"
    return f"the certificate was not accepted: {error.verify_message}"


def _named(certificate: Mapping[str, Any], field: str) -> str:
    """Return the common name of subject or issuer; empty if it is unknown."""
    for part in certificate.get(field, ()):
        for key, value in part:
            if key == "commonName":
                return f" {value!r:.80}"
    return ""


def _peer_certificate(session: ssl.SSLObject | ssl.SSLSocket) -> Mapping[str, Any]:
    """Return the certificate that was not accepted, which has no public accessor before 3.13.

    It serves error texts alone, and is empty where the interpreter does not return it.
    """
    inner = getattr(session, "_sslobj", None)
    try:
        chain = inner.get_unverified_chain() if inner is not None else None
        return dict(chain[0].get_info()) if chain else {}
    except (AttributeError, ValueError, ssl.SSLError):
        return {}
