"""Authentication of a client by SASL before the first request of a connection."""

import itertools
import math
from collections.abc import Callable, Generator
from typing import NamedTuple, TypeVar

from kclient.common.broker_errors import (
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
    error_for_code,
)
from kclient.common.errors import (
    AuthenticationError,
    DisconnectedError,
    IllegalStateError,
    ProtocolError,
)
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.network.authenticator import (
    ANONYMOUS,
    FIRST_RESERVED_CORRELATION_ID,
    KafkaPrincipal,
)
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend
from kclient.network.sasl.credentials import CredentialsSource
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

_CORRELATION_IDS = range(FIRST_RESERVED_CORRELATION_ID, 2**31)
_HANDSHAKE_VERSION = 1
_MAX_ROUNDS = 10
# Shares of the lifetime of a session, as in Kafka.
_CREDENTIALS = 0.8  # when other credentials are requested, which may take a while
_EARLIEST, _LATEST = 0.85, 0.95
_CREDENTIALS_BACKOFF_MS = 1000.0


class _VersionedRequest(NamedTuple):
    request: Request
    version: int


R = TypeVar("R", bound=Response)

Exchange = Generator[_VersionedRequest, Response, None]


class SaslClientAuthenticator:
    """SASL exchange of a client (Kafka: SaslClientAuthenticator).

    ApiVersions in version 0 comes first, for the version of SaslAuthenticate; then SaslHandshake
    selects the mechanism, and SaslAuthenticate carries the mechanism's tokens.

    A broker may limit the lifetime of a session. The exchange is then repeated on the connection
    before the next request, from 85 to 95 % of that time on (KIP-368). The channel reads its
    responses, since responses to earlier requests come first.

    Attributes:
        reauthenticating: Whether such a later exchange is in progress.
        failure_delay_ms: 0, since a client closes the channel at once.
        session_expires_at_ms: Infinite, since the broker alone ends a session.
    """

    def __init__(
        self,
        channel_id: str,
        transport: TransportLayer,
        new_client: Callable[[], SaslClient],
        credentials: CredentialsSource,
        client_id: str,
        runtime: Runtime,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Create an authenticator.

        Args:
            channel_id: Name of the channel.
            transport: Transport layer of the channel.
            new_client: Returns the mechanism's part of an exchange, with the current credentials.
            credentials: Credentials, which are requested again before a session is renewed.
            client_id: Client id of the requests.
            runtime: Clock and random numbers.
            log_context: Prefix of the client's log lines.
        """
        self._log = log_context.logger(__name__)
        self.reauthenticating = False
        self.failure_delay_ms = 0.0
        self.session_expires_at_ms = math.inf
        self._channel_id = channel_id
        self._transport = transport
        self._new_client: Callable[[], SaslClient] | None = new_client
        self._credentials = credentials
        self._credentials_requested = False
        self._client_id = client_id
        self._clock = runtime.clock
        self._random = runtime.random
        self._request_credentials_at_ms = math.inf
        self._reauthenticate_at_ms = math.inf
        self._version = 0
        self._correlation_ids = itertools.cycle(_CORRELATION_IDS)
        self._exchange = self._first_steps(new_client())
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
        while not self._complete:
            self.write()
            receive = self._receiving
            if self._sending is not None or receive is None:
                return
            receive.read_from(self._transport)
            if not receive.completed:
                return
            self.handle_response(receive.payload)

    def write(self) -> None:
        """Write what the transport accepts of the request."""
        if self._sending is not None:
            self._sending.write_to(self._transport)
            if self._sending.completed:
                self._sending = None

    def must_reauthenticate(self) -> bool:
        """Return whether the session must be renewed before the next request."""
        if self._reauthenticate_at_ms == math.inf:
            return False
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._request_credentials_at_ms and not self._credentials_requested:
            self._credentials_requested = True
            self._credentials.request(_nothing)
        # Requests continue until the credentials are there, or the session has ended.
        if now_ms < self._reauthenticate_at_ms or not self._credentials.done():
            return False
        if self._credentials.failure() is None:
            return True
        if self._credentials_requested:
            self._credentials_requested = False
            self._request_credentials_at_ms = now_ms + _CREDENTIALS_BACKOFF_MS
        return False

    def start_reauthentication(self) -> None:
        """Start another exchange on the connection."""
        if self._new_client is None:
            raise IllegalStateError("the authenticator was closed")
        self.reauthenticating = True
        self._credentials_requested = False
        self._exchange = self._later_steps(self._new_client())
        self._ask(next(self._exchange))

    def begin_server_reauthentication(self, handshake: memoryview) -> bool:
        """Return False: this is the client."""
        return False

    def handle_response(self, payload: memoryview) -> None:
        """Handle the response to the request, and prepare the next one; raises as `authenticate`.

        Raises:
            DisconnectedError: The broker does not re-authenticate on this connection.
        """
        try:
            following = self._exchange.send(self._decoded(payload))
        except StopIteration:
            self._sending = self._receiving = None
            self._complete = True
            if self.reauthenticating:
                self._log.debug("channel %s: renewed the session", self._channel_id)
            self.reauthenticating = False
        else:
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
        self._new_client = None
        self._sending = self._receiving = None
        self._exchange.close()

    def _first_steps(self, client: SaslClient) -> Exchange:
        """Yield each request of the first exchange, and receive its response."""
        versions = yield from _call(ApiVersionsRequest(), 0, ApiVersionsResponse)
        self._version = _authenticate_version(versions)
        yield from self._steps(client)

    def _later_steps(self, client: SaslClient) -> Exchange:
        """Yield each request of another exchange on the connection."""
        try:
            yield from self._steps(client)
        except (UnsupportedSaslMechanismError, IllegalSaslStateError) as error:
            # The first exchange succeeded with this mechanism, so that a new connection will.
            raise DisconnectedError(f"the broker does not re-authenticate: {error}") from error

    def _steps(self, client: SaslClient) -> Exchange:
        request = SaslHandshakeRequest(mechanism=client.mechanism)
        handshake = yield from _call(request, _HANDSHAKE_VERSION, SaslHandshakeResponse)
        _check_handshake(handshake, client.mechanism)
        # Tokens are in no local variable, since error trackers store those of a traceback.
        following: SaslAuthenticateRequest | None = SaslAuthenticateRequest(
            auth_bytes=client.initial_response()
        )
        for _ in range(_MAX_ROUNDS):
            if following is None:
                return
            response = yield from _call(following, self._version, SaslAuthenticateResponse)
            _check_authenticated(response, client)
            self._limit_session(response.session_lifetime_ms)
            following = _next_request(client, response)
        raise SaslAuthenticationError(
            f"{client.mechanism}: the exchange has not ended after {_MAX_ROUNDS} rounds"
        )

    def _ask(self, asked: _VersionedRequest) -> None:
        self._asked = asked
        self._correlation_id = next(self._correlation_ids)
        parts = encode_request(asked.request, asked.version, self._correlation_id, self._client_id)
        self._sending = NetworkSend(self._channel_id, parts)
        self._receiving = NetworkReceive(self._channel_id, MAX_RECEIVE_SIZE, UnlimitedMemoryPool())

    def _limit_session(self, lifetime_ms: int) -> None:
        """Set when to re-authenticate; a lifetime of 0 is unlimited."""
        share = _EARLIEST + self._random.random() * (_LATEST - _EARLIEST)
        now_ms = self._clock.monotonic_ms()
        self._request_credentials_at_ms = now_ms + lifetime_ms * _CREDENTIALS
        self._reauthenticate_at_ms = now_ms + lifetime_ms * share if lifetime_ms > 0 else math.inf

    def _decoded(self, payload: memoryview) -> Response:
        """Return the response to the request."""
        asked = self._asked
        if asked is None or self._sending is not None:
            raise ProtocolError("SASL: got a response before the request was written")
        kind = asked.request.response_type
        correlation_id, response = decode_response(payload, kind, asked.version)
        if correlation_id != self._correlation_id:
            raise ProtocolError(
                f"correlation id: got {correlation_id}, expected {self._correlation_id} of the"
                f" {asked.request.api_key.name} request"
            )
        return response


def _nothing() -> None:
    return


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


def _next_request(
    client: SaslClient, response: SaslAuthenticateResponse
) -> SaslAuthenticateRequest | None:
    """Return the request with the next token, or None after the last one."""
    token = client.evaluate_challenge(response.auth_bytes)
    return None if token is None else SaslAuthenticateRequest(auth_bytes=token)


def _check_authenticated(response: SaslAuthenticateResponse, client: SaslClient) -> None:
    error = error_for_code(response.error_code, response.error_message)
    if isinstance(error, SaslAuthenticationError):
        raise SaslAuthenticationError(
            f"the broker refused {client.identity} by {client.mechanism}: {error}; {client.hint}"
        )
    if error is not None:
        raise AuthenticationError(f"SaslAuthenticate failed with {error}")
