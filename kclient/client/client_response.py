"""Outcome of a request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import KafkaError, ProtocolError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response

R = TypeVar("R", bound=Response)


@dataclass(slots=True)
class ClientResponse:
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
