"""Authentication of a client by SASL before the first request of its connection."""

import enum
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from kclient.common.broker_errors import (
    NONE,
    IllegalSaslStateError,
    InvalidRequestError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    code_of,
)
from kclient.common.errors import IllegalStateError, InvalidReceiveError, ProtocolError
from kclient.common.files import WirePart
from kclient.common.runtime import Clock
from kclient.network.authenticator import ANONYMOUS, KafkaPrincipal
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.network_send import NetworkSend
from kclient.network.sasl.server_mechanism import NO_EXPIRY, SaslServer, shown_name
from kclient.network.transport_layer import TransportLayer
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader, decode_request_header, encode_response
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kclient.protocol.registry import REQUESTS

_MIN_REAUTHENTICATION_INTERVAL_MS = 1000.0
_MAX_REFUSED_VERSIONS = 2
_LONGEST_NAME = 80

R = TypeVar("R", bound=Request)


class SaslState(enum.Enum):
    """State of an exchange (Kafka: SaslServerAuthenticator.SaslState)."""

    HANDSHAKE_OR_VERSIONS_REQUEST = enum.auto()
    HANDSHAKE_REQUEST = enum.auto()
    AUTHENTICATE = enum.auto()
    COMPLETE = enum.auto()
    FAILED = enum.auto()
    REAUTH_PROCESS_HANDSHAKE = enum.auto()
    REAUTH_BAD_MECHANISM = enum.auto()


class SaslEvent(enum.Enum):
    """Event of an exchange."""

    VERSIONS_RETURNED = enum.auto()
    MECHANISM_ACCEPTED = enum.auto()
    MECHANISM_CHANGED = enum.auto()
    EXCHANGE_COMPLETED = enum.auto()
    REAUTHENTICATION_STARTED = enum.auto()


_S = SaslState
_E = SaslEvent

SASL_TRANSITIONS: dict[tuple[SaslState, SaslEvent], SaslState] = {
    (_S.HANDSHAKE_OR_VERSIONS_REQUEST, _E.VERSIONS_RETURNED): _S.HANDSHAKE_REQUEST,
    (_S.HANDSHAKE_OR_VERSIONS_REQUEST, _E.MECHANISM_ACCEPTED): _S.AUTHENTICATE,
    (_S.HANDSHAKE_REQUEST, _E.MECHANISM_ACCEPTED): _S.AUTHENTICATE,
    (_S.AUTHENTICATE, _E.EXCHANGE_COMPLETED): _S.COMPLETE,
    (_S.COMPLETE, _E.REAUTHENTICATION_STARTED): _S.REAUTH_PROCESS_HANDSHAKE,
    (_S.REAUTH_PROCESS_HANDSHAKE, _E.MECHANISM_ACCEPTED): _S.AUTHENTICATE,
    (_S.REAUTH_PROCESS_HANDSHAKE, _E.MECHANISM_CHANGED): _S.REAUTH_BAD_MECHANISM,
}
"""Transitions of an exchange; each failure leads to FAILED."""

EXPECTED_REQUESTS: dict[SaslState, frozenset[ApiKey]] = {
    _S.HANDSHAKE_OR_VERSIONS_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    _S.HANDSHAKE_REQUEST: frozenset({ApiKey.SASL_HANDSHAKE}),
    _S.REAUTH_PROCESS_HANDSHAKE: frozenset({ApiKey.SASL_HANDSHAKE}),
}
"""Requests before the mechanism is known; another one closes the connection without a response."""


class BrokerResponses(NamedTuple):
    """Responses that an authenticator needs from the request handlers.

    Attributes:
        versions: Returns the response to an ApiVersions request of a version, which is None if the
            version is not served.
        error: Returns the response to a request that failed with an error code, or None if the
            request cannot have one.
    """

    versions: Callable[[int, ApiVersionsRequest | None], ApiVersionsResponse]
    error: Callable[[Request, int], Response | None]


class ServerMechanism(NamedTuple):
    """Enabled mechanism of a listener.

    Attributes:
        new_server: Returns the mechanism's part of an exchange.
        max_reauth_ms: Longest lifetime of a session; 0 for no limit.
    """

    new_server: Callable[[], SaslServer]
    max_reauth_ms: int


class SaslServerAuthenticator:
    """SASL exchange of a listener (Kafka: SaslServerAuthenticator).

    A client selects a mechanism by SaslHandshake, possibly after ApiVersions, and sends the
    mechanism's tokens in SaslAuthenticate requests; after SaslHandshake in version 0 it sends
    frames with bare tokens. The state is checked before the body of a request is decoded. An
    exchange has few steps, since a network thread handles all that have arrived.

    Attributes:
        reauthenticating: False: requests are not delayed by the exchange of a server.
        failure_delay_ms: ``connection.failed.authentication.delay.ms``.
        session_expires_at_ms: Monotonic end of the session.
    """

    def __init__(
        self,
        channel_id: str,
        transport: TransportLayer,
        mechanisms: Mapping[str, ServerMechanism],
        responses: BrokerResponses,
        clock: Clock,
        *,
        max_receive_size: int,
        failure_delay_ms: float,
    ) -> None:
        self.reauthenticating = False
        self.failure_delay_ms = failure_delay_ms
        self.session_expires_at_ms = math.inf
        self._channel_id = channel_id
        self._transport = transport
        self._mechanisms = mechanisms
        self._responses = responses
        self._clock = clock
        self._max_receive_size = max_receive_size
        self._state = SaslState.HANDSHAKE_OR_VERSIONS_REQUEST
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._bare_tokens = False
        self._refused_versions = 0
        self._principal: KafkaPrincipal | None = None
        self._reauthentication_started_ms = -math.inf
        self._receiving: NetworkReceive | None = None
        self._sending: NetworkSend | None = None

    def authenticate(self) -> None:
        """Handle the requests that have arrived, one after the other.

        Raises:
            AuthenticationError: The client failed to authenticate; `write` sends the response.
            KafkaError: The client sent a request that is not expected; it gets no response.
        """
        while True:
            self.write()
            if self._sending is not None or self._state is SaslState.COMPLETE:
                return
            receive = self._receive()
            if receive is None:
                return
            try:
                self._handle(receive.payload)
            except BaseException:
                self._state = SaslState.FAILED
                raise

    def _receive(self) -> NetworkReceive | None:
        receive = self._receiving
        if receive is None:
            receive = self._receiving = NetworkReceive(
                self._channel_id, self._max_receive_size, UnlimitedMemoryPool()
            )
        try:
            receive.read_from(self._transport)
        except InvalidReceiveError as error:
            raise SaslAuthenticationError(
                f"Failing SASL authentication due to invalid receive size: {error}"
            ) from error
        if not receive.completed:
            return None
        self._receiving = None
        return receive

    def _handle(self, payload: memoryview) -> None:
        if self._state is SaslState.REAUTH_BAD_MECHANISM:
            raise SaslAuthenticationError("the mechanism was changed during re-authentication")
        if self._state is SaslState.AUTHENTICATE:
            if self._bare_tokens:
                self._handle_bare_token(bytes(payload))
            else:
                self._handle_token(payload)
            return
        key = int.from_bytes(payload[:2], "big", signed=True)
        if key not in EXPECTED_REQUESTS[self._state]:
            raise InvalidRequestError(
                f"authentication: got a request of API key {key}, expected"
                f" {' or '.join(sorted(each.name for each in EXPECTED_REQUESTS[self._state]))};"
                " the client's security.protocol may lack SASL"
            )
        header, position = decode_request_header(payload)
        if key == ApiKey.API_VERSIONS:
            self._handle_versions(header, payload[position:])
        else:
            self._handle_handshake(
                header, _decoded(SaslHandshakeRequest, header, payload[position:])
            )

    def _handle_versions(self, header: RequestHeader, body: memoryview) -> None:
        is_known = header.api_version <= ApiVersionsRequest.max_version
        request = _decoded(ApiVersionsRequest, header, body) if is_known else None
        response = self._responses.versions(header.api_version, request)
        if response.error_code != NONE:
            self._count_refused_versions()
        self._respond(header, response, header.api_version if is_known else 0)
        if response.error_code == NONE:
            self._apply(SaslEvent.VERSIONS_RETURNED)

    def _count_refused_versions(self) -> None:
        """Limit the repetition of a step that does not change the state."""
        self._refused_versions += 1
        if self._refused_versions > _MAX_REFUSED_VERSIONS:
            raise InvalidRequestError(
                "authentication: got another ApiVersions request that is not valid, expected at"
                f" most {_MAX_REFUSED_VERSIONS}"
            )

    def _handle_handshake(self, header: RequestHeader, body: SaslHandshakeRequest) -> None:
        mechanism = body.mechanism
        enabled = list(self._mechanisms)
        if mechanism not in self._mechanisms:
            error = UnsupportedSaslMechanismError(
                f"SaslHandshake: got {mechanism!r:.{_LONGEST_NAME}}, the listener has enabled"
                f" {', '.join(enabled)}"
            )
            self._respond(
                header, SaslHandshakeResponse(error_code=code_of(error), mechanisms=enabled)
            )
            raise error
        self._bare_tokens = header.api_version == 0
        self._respond(header, SaslHandshakeResponse(mechanisms=enabled))
        if self._mechanism not in ("", mechanism):
            self._apply(SaslEvent.MECHANISM_CHANGED)
            return
        self._mechanism = mechanism
        self._server = self._mechanisms[mechanism].new_server()
        self._apply(SaslEvent.MECHANISM_ACCEPTED)

    def _handle_bare_token(self, token: bytes) -> None:
        """Handle a token without a header; a failure has no response."""
        server = self._required_server()
        try:
            following = server.evaluate_response(token)
        except ProtocolError as error:
            raise SaslAuthenticationError(str(error)) from error
        self._send([following])
        if server.complete:
            self._complete(server)

    def _handle_token(self, payload: memoryview) -> None:
        header, position = decode_request_header(payload)
        if header.api_key is not ApiKey.SASL_AUTHENTICATE:
            self._refuse_request(header, payload[position:])
        request = _decoded(SaslAuthenticateRequest, header, payload[position:])
        server = self._required_server()
        try:
            token = server.evaluate_response(request.auth_bytes)
            lifetime_ms = self._complete(server) if server.complete else 0
        except SaslAuthenticationError as error:
            self._respond_failed(header, str(error))
            raise
        except ProtocolError as error:
            during = "authentication" if self._principal is None else "re-authentication"
            text = (
                f"Authentication failed during {during} due to invalid credentials with SASL"
                f" mechanism {self._mechanism}"
            )
            self._respond_failed(header, text)
            raise SaslAuthenticationError(f"{text}: {error}") from error
        self._respond(
            header, SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        )

    def _refuse_request(self, header: RequestHeader, body: memoryview) -> None:
        """Respond to another request than SaslAuthenticate with an error, and fail."""
        error = IllegalSaslStateError(
            f"Unexpected Kafka request of type {header.api_key.name} during SASL authentication."
        )
        if header.api_version <= REQUESTS[header.api_key].max_version:
            request = REQUESTS[header.api_key].decode(body, header.api_version)
            response = self._responses.error(request, code_of(error))
            if response is not None:
                self._respond(header, response)
        raise error

    def _complete(self, server: SaslServer) -> int:
        """End the exchange; return the lifetime of the session, or 0 if it is unlimited.

        Raises:
            SaslAuthenticationError: A re-authentication has another principal.
        """
        principal = KafkaPrincipal("User", server.authorization_id)
        before = self._principal
        if before not in (None, principal):
            raise SaslAuthenticationError(
                "Cannot change principals during re-authentication from"
                f" {_named(before)}: {_named(principal)}"
            )
        self._principal = principal
        self._apply(SaslEvent.EXCHANGE_COMPLETED)
        return self._limit_session(server.expires_at_ms)

    def _limit_session(self, expires_at_ms: float) -> int:
        limits = []
        if expires_at_ms != NO_EXPIRY:
            limits.append(expires_at_ms - self._clock.wall_ms())
        max_reauth_ms = self._mechanisms[self._mechanism].max_reauth_ms
        if max_reauth_ms > 0:
            limits.append(max_reauth_ms)
        lifetime_ms = max(0, int(min(limits))) if limits else 0
        self.session_expires_at_ms = (
            self._clock.monotonic_ms() + lifetime_ms if limits else math.inf
        )
        return lifetime_ms

    def begin_server_reauthentication(self, handshake: memoryview) -> bool:
        """Start another exchange, if sessions are limited and the last began a second ago."""
        if self.session_expires_at_ms == math.inf:
            return False
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._reauthentication_started_ms < _MIN_REAUTHENTICATION_INTERVAL_MS:
            return False
        self._reauthentication_started_ms = now_ms
        self._apply(SaslEvent.REAUTHENTICATION_STARTED)
        self._handle(handshake)
        return True

    def _apply(self, event: SaslEvent) -> None:
        following = SASL_TRANSITIONS.get((self._state, event))
        if following is None:
            raise IllegalStateError(f"SASL: {event.name} is not allowed in {self._state.name}")
        self._state = following

    def _respond(
        self, header: RequestHeader, response: Response, version: int | None = None
    ) -> None:
        chosen = header.api_version if version is None else version
        self._send(encode_response(response, chosen, header.correlation_id))

    def _respond_failed(self, header: RequestHeader, text: str) -> None:
        code = code_of(SaslAuthenticationError())
        self._respond(header, SaslAuthenticateResponse(error_code=code, error_message=text))

    def _send(self, parts: list[WirePart]) -> None:
        self._sending = NetworkSend(self._channel_id, parts)

    def _required_server(self) -> SaslServer:
        if self._server is None:
            raise IllegalStateError("SASL: got a token before a mechanism was selected")
        return self._server

    def complete(self) -> bool:
        """Return whether the client is authenticated and has the response."""
        return self._state is SaslState.COMPLETE and self._sending is None

    def principal(self) -> KafkaPrincipal:
        """Return the principal of the client."""
        return ANONYMOUS if self._principal is None else self._principal

    def wants_write(self) -> bool:
        """Return whether bytes of a response are waiting to be written."""
        return self._sending is not None

    def write(self) -> None:
        """Write what the transport accepts of the response."""
        if self._sending is not None:
            self._sending.write_to(self._transport)
            if self._sending.completed:
                self._sending = None

    def must_reauthenticate(self) -> bool:
        """Return False: clients start exchanges."""
        return False

    def start_reauthentication(self) -> None:
        """Do nothing: clients start exchanges."""

    def handle_response(self, payload: memoryview) -> None:
        """Do nothing: the server receives requests."""

    def close(self) -> None:
        """Discard the state of the exchange; idempotent."""
        self._server = None
        self._receiving = self._sending = None


def _decoded(kind: type[R], header: RequestHeader, body: memoryview) -> R:
    if header.api_version not in kind.valid_versions:
        raise UnsupportedVersionError(
            f"{header.api_key.name}: got version {header.api_version}, expected"
            f" {kind.valid_versions}"
        )
    return kind.decode(body, header.api_version)


def _named(principal: KafkaPrincipal | None) -> str:
    """Return a principal as Kafka's error about a changed one has it."""
    kind, name = principal or ANONYMOUS
    return f"{kind}.{shown_name(name)}"
