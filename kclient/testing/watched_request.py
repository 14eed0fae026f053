"""A request whose response passes through `BrokerFaults`."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kclient.broker.network.request_channel import Request
from kclient.protocol.message import Response as ResponseMessage


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
        self.received_ms = original.received_ms
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
