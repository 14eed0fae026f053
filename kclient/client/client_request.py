"""Requests of a client: their builders, correlation ids, and responses."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import KafkaError, ProtocolError
from kclient.common.files import WireBytes, WirePart
from kclient.network.authenticator import FIRST_RESERVED_CORRELATION_ID
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_response_body, encode_request
from kclient.protocol.message import Request, Response

_LAST_CORRELATION_ID = FIRST_RESERVED_CORRELATION_ID - 1

R = TypeVar("R", bound=Response)


class RequestBuilder(ABC):
    """Builds a request in the negotiated version (Kafka: AbstractRequest.Builder).

    A builder may replace `encode` and `decode` by functions that are faster for its request.

    Attributes:
        api_key: API of the request.
        request_type: Class of the request.
        oldest_allowed_version: Lowest version that has the fields of the request.
        latest_allowed_version: Highest version to use.
    """

    __slots__ = ()

    api_key: ApiKey
    request_type: type[Request]
    oldest_allowed_version: int
    latest_allowed_version: int

    @abstractmethod
    def build(self, version: int) -> Request:
        """Return the request in a version.

        Raises:
            UnsupportedVersionError: The version lacks a field of the request.
        """

    def encode(self, version: int, correlation_id: int, client_id: str | None) -> list[WirePart]:
        """Return header and body in parts; raise what `build` and `encode_request` raise."""
        return encode_request(self.build(version), version, correlation_id, client_id)

    def decode(self, payload: WireBytes, version: int) -> Response:
        """Decode the response to the request; raise what `decode_response_body` raises."""
        return decode_response_body(payload, self.request_type.response_type, version)


class SimpleBuilder(RequestBuilder):
    """Builder of a message that is the same in every allowed version.

    Attributes:
        request: Message.
    """

    __slots__ = (
        "api_key",
        "latest_allowed_version",
        "oldest_allowed_version",
        "request",
        "request_type",
    )

    def __init__(
        self, request: Request, *, oldest: int | None = None, latest: int | None = None
    ) -> None:
        self.request = request
        self.api_key = request.api_key
        self.request_type = type(request)
        self.oldest_allowed_version = request.min_version if oldest is None else oldest
        self.latest_allowed_version = _stable(request) if latest is None else latest

    def build(self, version: int) -> Request:
        """Return the message; its encoder refuses fields that the version does not have."""
        return self.request


def _stable(request: Request) -> int:
    """Return the highest version that Kafka has released as stable."""
    highest = request.max_version
    return highest - 1 if request.latest_version_unstable else highest


class ClientResponse(NamedTuple):
    """Response to a request, or the reason why there is none (Kafka: ClientResponse).

    Either `response` or `error` is set; for a request without a response (acks=0) both are None.

    Attributes:
        api_key: API of the request.
        api_version: Version of request and response.
        correlation_id: Correlation id of the request.
        destination: Id of the node, as str.
        created_ms: Time at which the request was created.
        received_ms: Time at which it was completed.
        response: Response.
        error: Why there is no response; the text has the end of the connection.
        was_disconnected: Whether the connection ended first. The broker may have acted or not.
        timed_out: Whether the connection was closed because this request timed out.
        version_mismatch: Set if the broker has no usable version; nothing was sent.
        callback: Called with this response by `NetworkClient.poll`.
    """

    api_key: ApiKey
    api_version: int
    correlation_id: int
    destination: str
    created_ms: float
    received_ms: float
    response: Response | None = None
    error: KafkaError | None = None
    was_disconnected: bool = False
    timed_out: bool = False
    version_mismatch: UnsupportedVersionError | None = None
    callback: "ResponseCallback | None" = None

    @property
    def latency_ms(self) -> float:
        """Milliseconds from the creation of the request to its completion."""
        return self.received_ms - self.created_ms

    def has_response(self) -> bool:
        """Return whether there is a response."""
        return self.response is not None

    def body(self, kind: type[R]) -> R:
        """Return the response, which must be of the given class.

        Raises:
            KafkaError: There is no response; `error` is raised.
        """
        if self.error is not None:
            raise self.error
        if not isinstance(self.response, kind):
            raise ProtocolError(f"response: got {type(self.response).__name__}, expected {kind}")
        return self.response


ResponseCallback = Callable[[ClientResponse], None]
"""Called once with the outcome of a request."""


class ClientRequest(NamedTuple):
    """Request before its version is chosen (Kafka: ClientRequest).

    Attributes:
        destination: Id of the node, as str.
        builder: Builder of the message.
        correlation_id: Correlation id, returned with the response.
        created_ms: Time of creation.
        expect_response: Whether there is a response; not for acks=0.
        request_timeout_ms: Time after which the connection is closed if there is no response.
        callback: Called with the outcome.
        internal: Whether the network client sends it for itself.
    """

    destination: str
    builder: RequestBuilder
    correlation_id: int
    created_ms: float
    expect_response: bool
    request_timeout_ms: float
    callback: ResponseCallback | None = None
    internal: bool = False


class CorrelationIds:
    """Generator of correlation ids, from 0 again after the largest; the last are reserved."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """Return the next correlation id."""
        taken = self._next
        self._next = 0 if taken == _LAST_CORRELATION_ID else taken + 1
        return taken
