"""A request on its way to a node."""

from dataclasses import dataclass

from kclient.client.client_response import ResponseCallback
from kclient.client.request_builder import RequestBuilder

_LAST_CORRELATION_ID = 2**31 - 1


@dataclass(slots=True, eq=False)
class ClientRequest:
    """A request before its version is known (Kafka: ClientRequest).

    Attributes:
        destination: Node id it goes to, as a str.
        builder: Makes the message.
        correlation_id: Number that comes back with the response.
        created_ms: When it was made.
        expect_response: Whether the broker answers; it does not where acks=0.
        request_timeout_ms: How long to wait for the answer before the connection is closed.
        callback: Told of the outcome.
        internal: Whether the network client asks on its own account.
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
    """Numbers requests; starts over before the number outgrows the wire's int32."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """Return the next number."""
        taken = self._next
        self._next = 0 if taken == _LAST_CORRELATION_ID else taken + 1
        return taken
