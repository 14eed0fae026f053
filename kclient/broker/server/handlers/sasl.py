"""SaslHandshake, versions 0-1, and SaslAuthenticate, versions 0-2, of clients that need none.

Their listener has no SASL, or they are authenticated: `SaslServerAuthenticator` handles the
requests before that.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import IllegalSaslStateError
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

_ILLEGAL_STATE = IllegalSaslStateError.code or 0


def handle_handshake(
    _services: BrokerServices, _request: Request, _body: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Refuse every mechanism."""
    return SaslHandshakeResponse(error_code=_ILLEGAL_STATE)


def handle_authenticate(
    _services: BrokerServices, _request: Request, _body: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse every token."""
    return SaslAuthenticateResponse(
        error_code=_ILLEGAL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


APIS = (
    ServedApi(SaslHandshakeRequest, handle_handshake),
    ServedApi(SaslAuthenticateRequest, handle_authenticate),
)
