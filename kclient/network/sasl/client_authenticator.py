"""Authentication of a client by SASL before the first request of a connection."""

import itertools
from collections.abc import Generator
from typing import NamedTuple, TypeVar

from kclient.common.broker_errors import (
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
    error_for_code,
)
from kclient.common.errors import AuthenticationError, IllegalStateError, ProtocolError
from kclient.network.authenticator import ANONYMOUS, KafkaPrincipal
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend
from kclient.network.sasl.mechanism import SaslClient
from kclient.network.transport_layer import TransportLayer
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_response, encode_request
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

MAX_RECEIVE_SIZE = 512 * 1024
"""Largest frame of an exchange, in bytes (Kafka: sasl.server.max.receive.size)."""

# The last ones of an int32 are reserved for requests of authenticators, as in Kafka: a response to
# another request is never taken for the response to one of these.
_CORRELATION_IDS = range(2**31 - 8, 2**31)
_HANDSHAKE_VERSION = 1
_MAX_ROUNDS = 10


class _VersionedRequest(NamedTuple):
    request: Request
    version: int


R = TypeVar("R", bound=Response)

Exchange = Generator[_VersionedRequest, Response, None]


class SaslClientAuthenticator:
    """SASL exchange of a client (Kafka: SaslClientAuthenticator).

    ApiVersions in version 0 comes first, for the version of SaslAuthenticate; then SaslHandshake
    selects the mechanism, and SaslAuthenticate carries the mechanism's tokens.

    Attributes:
        session_lifetime_ms: Time after which the broker closes the connection; 0 for no limit.
    """

    def __init__(
        self, channel_id: str, transport: TransportLayer, client: SaslClient, client_id: str
    ) -> None:
        self.session_lifetime_ms = 0
        self._channel_id = channel_id
        self._transport = transport
        self._client: SaslClient | None = client
        self._client_id = client_id
        self._correlation_ids = itertools.cycle(_CORRELATION_IDS)
        self._exchange = self._steps(client)
        self._asked: _VersionedRequest | None = None
        self._correlation_id = -1
        self._sending: NetworkSend | None = None
        self._receiving: NetworkReceive | None = None
        self._complete = False

    def authenticate(self) -> None:
        """Run the next steps of the exchange with the bytes that have arrived.

        Raises:
            AuthenticationError: The broker refused the mechanism or the credentials, or could not
                prove its own knowledge of them.
            ProtocolError: A response is malformed.
        """
        if self._asked is None:
            self._ask(next(self._exchange))
        while self._written():
            response = self._received()
            if response is None:
                return
            try:
                following = self._exchange.send(response)
            except StopIteration:
                self._complete = True
                self.close()
                return
            self._ask(following)

    def complete(self) -> bool:
        """Return whether the authentication has succeeded."""
        return self._complete

    def principal(self) -> KafkaPrincipal:
        """Return ANONYMOUS: a broker's principal is not known to its clients."""
        return ANONYMOUS

    def wants_write(self) -> bool:
        """Return whether bytes of a request are waiting to be written."""
        return self._sending is not None

    def close(self) -> None:
        """Discard the credentials; idempotent."""
        self._client = None
        self._sending = self._receiving = None
        self._exchange.close()

    def _steps(self, client: SaslClient) -> Exchange:
        """Yield each request, and receive its response."""
        versions = yield from _call(ApiVersionsRequest(), 0, ApiVersionsResponse)
        version = _authenticate_version(versions)
        request = SaslHandshakeRequest(mechanism=client.mechanism)
        handshake = yield from _call(request, _HANDSHAKE_VERSION, SaslHandshakeResponse)
        _check_handshake(handshake, client.mechanism)
        token: bytes | None = client.initial_response()
        for _ in range(_MAX_ROUNDS):
            if token is None:
                return
            next_token = SaslAuthenticateRequest(auth_bytes=token)
            response = yield from _call(next_token, version, SaslAuthenticateResponse)
            _check_authenticated(response, client)
            self.session_lifetime_ms = response.session_lifetime_ms
            token = client.evaluate_challenge(response.auth_bytes)
        raise SaslAuthenticationError(
            f"{client.mechanism}: the exchange has not ended after {_MAX_ROUNDS} rounds"
        )

    def _ask(self, asked: _VersionedRequest) -> None:
        self._asked = asked
        self._correlation_id = next(self._correlation_ids)
        parts = encode_request(asked.request, asked.version, self._correlation_id, self._client_id)
        self._sending = NetworkSend(self._channel_id, parts)
        self._receiving = NetworkReceive(self._channel_id, MAX_RECEIVE_SIZE, UnlimitedMemoryPool())

    def _written(self) -> bool:
        """Write what the transport accepts of the request; return whether it is complete."""
        if self._sending is not None:
            self._sending.write_to(self._transport)
            if not self._sending.completed:
                return False
            self._sending = None
        return True

    def _received(self) -> Response | None:
        """Return the response to the request; None if it has not arrived completely."""
        asked, receive = self._asked, self._receiving
        if asked is None or receive is None:
            return None
        receive.read_from(self._transport)
        if not receive.completed:
            return None
        kind = asked.request.response_type
        correlation_id, response = decode_response(receive.payload, kind, asked.version)
        if correlation_id != self._correlation_id:
            raise ProtocolError(
                f"correlation id: got {correlation_id}, expected {self._correlation_id} of the"
                f" {asked.request.api_key.name} request"
            )
        return response


def _call(
    request: Request, version: int, kind: type[R]
) -> Generator[_VersionedRequest, Response, R]:
    """Yield a request, and return its response."""
    response = yield _VersionedRequest(request, version)
    if not isinstance(response, kind):
        raise IllegalStateError(f"{request.api_key.name}: got a {type(response).__name__}")
    return response


def _authenticate_version(versions: ApiVersionsResponse) -> int:
    """Return the version of SaslAuthenticate that both sides support."""
    error = error_for_code(versions.error_code)
    if error is not None:
        raise AuthenticationError(f"ApiVersions failed with {error}")
    offered = {row.api_key: row for row in versions.api_keys}
    row = offered.get(ApiKey.SASL_AUTHENTICATE)
    if row is None:
        raise AuthenticationError(
            "SASL: the broker does not offer SaslAuthenticate, expected Kafka 1.0 or later"
        )
    return min(row.max_version, SaslAuthenticateRequest.max_version)


def _check_handshake(response: SaslHandshakeResponse, mechanism: str) -> None:
    error = error_for_code(response.error_code)
    if error is None:
        return
    enabled = ", ".join(sorted(response.mechanisms))
    if isinstance(error, UnsupportedSaslMechanismError):
        raise UnsupportedSaslMechanismError(
            f"sasl.mechanism: got {mechanism}, the listener has enabled {enabled or 'none'}"
        )
    if isinstance(error, IllegalSaslStateError):
        raise IllegalSaslStateError(
            "the listener takes no SASL; security.protocol should be PLAINTEXT or SSL"
        )
    raise AuthenticationError(f"SaslHandshake failed with {error}")


def _check_authenticated(response: SaslAuthenticateResponse, client: SaslClient) -> None:
    error = error_for_code(response.error_code, response.error_message)
    if isinstance(error, SaslAuthenticationError):
        raise SaslAuthenticationError(
            f"the broker refused user {client.user!r} by {client.mechanism}: {error};"
            " check user and password, and that credentials exist for this mechanism"
        )
    if error is not None:
        raise AuthenticationError(f"SaslAuthenticate failed with {error}")
