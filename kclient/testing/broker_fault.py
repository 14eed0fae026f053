"""A fault of a broker: the calls that it affects, and its effect on a request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from kclient.broker.network.request_channel import Charge, Request
from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_response, encode_correlation_id
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.registry import REQUESTS


@dataclass(slots=True)
class Fate:
    """Effects of the faults on one request.

    Attributes:
        delay_ms: Delay before it is handled.
        response_delay_ms: Delay of its response.
        error_code: Error code of the response; None for the handler's response.
        is_handled: Whether it is handled although an error is returned.
        is_response_lost: Whether the connection is closed instead of responding.
        is_refused: Whether the connection is closed at once, without handling the request.
        kills: Whether the broker is killed instead of responding, or at once if the request
            is not handled.
        changes: Changes of the response.
    """

    delay_ms: float = 0.0
    response_delay_ms: float = 0.0
    error_code: int | None = None
    is_handled: bool = True
    is_response_lost: bool = False
    is_refused: bool = False
    kills: bool = False
    changes: list[Callable[[ResponseMessage], object]] = field(default_factory=list)


class WatchedRequest(Request):
    """A request during its handling; it passes the response to a callback instead of sending it."""

    __slots__ = ("_on_response", "_original", "fate")

    def __init__(
        self,
        original: Request,
        fate: Fate,
        on_response: Callable[["WatchedRequest", ResponseMessage, int | None], None],
    ) -> None:
        self.connection_id = original.connection_id
        self.client_address = original.client_address
        self.listener_name = original.listener_name
        self.principal = original.principal
        self.header = original.header
        self.body = original.body
        self.times = original.times
        self.fate = fate
        self._original = original
        self._on_response = on_response

    @property
    def original(self) -> Request:
        """The request as received."""
        return self._original

    def respond(self, message: ResponseMessage, version: int | None = None) -> None:
        """Pass the response to the callback."""
        self._on_response(self, message, version)

    def respond_encoded(self, response: bytes) -> None:
        """Pass the response to the callback, decoded."""
        header = self.header
        response_type = REQUESTS[header.api_key].response_type
        frame = encode_correlation_id(header.correlation_id) + response
        self.respond(decode_response(frame, response_type, header.api_version)[1])

    def meter(self, charge: Charge) -> None:
        """Let a function count the request against quotas."""
        self._original.meter(charge)

    @property
    def is_metered(self) -> bool:
        """Whether the request counts against quotas, and was not counted yet."""
        return self._original.is_metered

    def exempt(self) -> None:
        """Count the request against no quota."""
        self._original.exempt()

    def charge(self, response_bytes: int = 0) -> int:
        """Count the request, once; return the throttle time of its client in milliseconds."""
        return self._original.charge(response_bytes)

    def complete_without_response(self) -> None:
        """Complete a request that has no response."""
        self._original.complete_without_response()

    def close_connection(self) -> None:
        """Close the connection of the request."""
        self._original.close_connection()

    def release(self) -> None:
        """Free the request's memory."""
        self._original.release()

    @property
    def is_completed(self) -> bool:
        """Whether the request was completed."""
        return self._original.is_completed


class Call(TypedDict, total=False):
    """Selection of the calls of an API that a fault affects; a missing key selects all.

    Attributes:
        nth: First call to affect among those that match, counted from 1.
        times: Number of calls to affect from there on; None for all.
        client_id: Calls of clients with this ``client.id`` only.
    """

    nth: int
    times: int | None
    client_id: str


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A request that reached the broker.

    Attributes:
        api: API.
        version: Version.
        correlation_id: Correlation id.
        client_id: ``client.id`` of the client, or None.
        connection_id: Id of the connection in the broker.
        body: The request; None for an ApiVersions request of an unknown version.
    """

    api: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    connection_id: str
    body: RequestMessage | None


@dataclass(slots=True)
class BrokerFault:
    """A fault that is in force.

    Attributes:
        api: API that it affects.
        doom: Sets the fate of a call.
        nth: First call that it affects among those that match.
        times: Number of calls that it affects; None for all from `nth` on.
        client_id: Client that it affects; None for all.
        seen: Number of calls that matched so far.
        hits: Number of calls that it affected so far.
    """

    api: ApiKey
    doom: Callable[[Fate], None]
    nth: int = 1
    times: int | None = 1
    client_id: str | None = None
    seen: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.api not in API_TABLE:
            raise InvalidArgumentError(f"api: got {self.api!r}, expected one that is served")
        if self.nth < 1:
            raise InvalidArgumentError(f"nth: got {self.nth}, expected 1 or more")
        if self.times is not None and self.times < 1:
            raise InvalidArgumentError(f"times: got {self.times}, expected 1 or more, or None")

    def apply(self, request: Request, fate: Fate) -> None:
        """Affect the call if it is one of those selected."""
        header = request.header
        if header.api_key is not self.api or self.client_id not in (None, header.client_id):
            return
        self.seen += 1
        if self.seen >= self.nth and (self.times is None or self.hits < self.times):
            self.hits += 1
            self.doom(fate)
