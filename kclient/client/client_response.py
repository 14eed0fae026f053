"""What became of a request."""

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
    """The end of a request: an answer, or the reason why there is none (Kafka: ClientResponse).

    Exactly one of `response` and `error` is set, except for a request without a response
    (acks=0), where both are None.

    Attributes:
        api_key: The API asked for.
        api_version: Version of request and response.
        correlation_id: Number of the request.
        destination: Node id the request went to, as a str.
        created_ms: When the request was made.
        received_ms: When it ended.
        response: The answer.
        error: Why there is none; its text says what happened to the connection.
        was_disconnected: Whether the connection ended first. The broker may have acted or not.
        timed_out: Whether the connection was closed because this request took too long.
        version_mismatch: Set if the broker has no version that can say what was meant; nothing
            was sent.
        callback: Told of this response by `NetworkClient.poll`.
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
        """Time from the making of the request to its end, in milliseconds."""
        return self.received_ms - self.created_ms

    def has_response(self) -> bool:
        """Return whether there is an answer."""
        return self.response is not None

    def body(self, kind: type[R]) -> R:
        """Return the answer, which must be of the given class.

        Raises:
            KafkaError: There is no answer; the reason is raised.
        """
        if self.error is not None:
            raise self.error
        if not isinstance(self.response, kind):
            raise ProtocolError(f"response: got {type(self.response).__name__}, expected {kind}")
        return self.response


ResponseCallback = Callable[[ClientResponse], None]
"""Called once with what became of a request."""
