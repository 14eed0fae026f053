"""Request to a node, and the generator of correlation ids."""

from dataclasses import dataclass

from kclient.client.client_response import ResponseCallback
from kclient.client.request_builder import RequestBuilder

_LAST_CORRELATION_ID = 2**31 - 1


@dataclass(slots=True, eq=False)
class ClientRequest:
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
    """Generator of correlation ids: int32, from 0 again after the largest."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """Return the next correlation id."""
        taken = self._next
        self._next = 0 if taken == _LAST_CORRELATION_ID else taken + 1
        return taken
