"""A request whose answer passes through the hands of `BrokerFaults`."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kclient.broker.network.request_channel import Request
from kclient.protocol.message import Response as ResponseMessage


@dataclass(slots=True)
class Fate:
    """What is to become of one request.

    Attributes:
        delay_ms: How long it waits before it is handled.
        answer_delay_ms: How long its answer waits.
        error_code: What it is answered with; None for what the handler says.
        is_handled: Whether it takes effect though it is answered with an error.
        is_answer_lost: Whether the connection is closed in place of the answer.
        is_refused: Whether the connection is closed at once, without effect.
        kills: Whether the broker is killed in place of the answer, or at once where the request
            is not handled.
        changes: What is done to the answer.
    """

    delay_ms: float = 0.0
    answer_delay_ms: float = 0.0
    error_code: int | None = None
    is_handled: bool = True
    is_answer_lost: bool = False
    is_refused: bool = False
    kills: bool = False
    changes: list[Callable[[ResponseMessage], object]] = field(default_factory=list)


class WatchedRequest(Request):
    """Stands for a request while it is handled; tells of the answer instead of giving it."""

    __slots__ = ("_original", "_told", "fate")

    def __init__(
        self,
        original: Request,
        fate: Fate,
        told: Callable[["WatchedRequest", ResponseMessage, int | None], None],
    ) -> None:
        self.connection_id = original.connection_id
        self.client_address = original.client_address
        self.header = original.header
        self.body = original.body
        self.received_ms = original.received_ms
        self.fate = fate
        self._original = original
        self._told = told

    @property
    def original(self) -> Request:
        """The request as it came."""
        return self._original

    def respond(self, message: ResponseMessage, version: int | None = None) -> None:
        """Tell of the answer."""
        self._told(self, message, version)

    def complete_without_response(self) -> None:
        """Answer a request that asks for no response."""
        self._original.complete_without_response()

    def close_connection(self) -> None:
        """Close the connection the request came over."""
        self._original.close_connection()

    def release(self) -> None:
        """Give the request's memory back."""
        self._original.release()

    @property
    def is_completed(self) -> bool:
        """Whether an answer was given."""
        return self._original.is_completed
