"""SaslHandshake (17) and SaslAuthenticate (36): authentication of a connection (KIP-43, KIP-152).

The header of a SaslHandshake request is never flexible.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import array, binary, int16, int64, string
from kclient.protocol.message import Request, Response


class SaslHandshakeResponse(Response, versions="0-1"):
    """Error of the requested mechanism, and the mechanisms that the listener has enabled."""

    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")


class SaslHandshakeRequest(
    Request,
    api_key=ApiKey.SASL_HANDSHAKE,
    response=SaslHandshakeResponse,
    versions="0-1",
):
    """Choice of a SASL mechanism; tokens follow in SaslAuthenticate requests from version 1 on."""

    mechanism: str = string("0+")


class SaslAuthenticateResponse(Response, versions="0-2", flexible="2+"):
    """Next token of the server; a session lifetime of 0 is unlimited (KIP-368)."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = binary("0+", secret=True)
    session_lifetime_ms: int = int64("1+", ignorable=True)


class SaslAuthenticateRequest(
    Request,
    api_key=ApiKey.SASL_AUTHENTICATE,
    response=SaslAuthenticateResponse,
    versions="0-2",
    flexible="2+",
):
    """Next token of the client."""

    auth_bytes: bytes = binary("0+", secret=True)
