"""Requests on their way from the network to the handlers, and the form their answers take."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kclient.common.errors import KafkaError
from kclient.common.files import WirePart
from kclient.common.runtime import Condition
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.headers import RequestHeader, encode_response
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Response:
    """What a handler decided (Kafka: RequestChannel.Response and its kinds).

    Attributes:
        connection_id: Whose request it answers.
        parts: The frame, or None where the request gets no answer.
        close: Whether the connection is to be closed instead.
    """

    connection_id: str
    parts: list[WirePart] | None = None
    close: bool = False


class ResponseSink(Protocol):
    """Whoever owns the connection a request came over."""

    def enqueue_response(self, response: Response) -> None:
        """Take a response; may be called by any thread."""
        ...


class Request:
    """One request with where it came from (Kafka: RequestChannel.Request).

    Attributes:
        connection_id: Connection it came over.
        client_address: The client's IP address.
        header: Request header.
        body: Decoded request; None where the header alone decides the answer.
        received_ms: When it was complete, on the monotonic clock.
    """

    __slots__ = (
        "_answered",
        "_receive",
        "_sink",
        "body",
        "client_address",
        "connection_id",
        "header",
        "received_ms",
    )

    def __init__(
        self,
        sink: ResponseSink,
        receive: NetworkReceive,
        client_address: str,
        header: RequestHeader,
        body: RequestMessage | None,
        received_ms: float,
    ) -> None:
        self.connection_id = receive.source
        self.client_address = client_address
        self.header = header
        self.body = body
        self.received_ms = received_ms
        self._sink = sink
        self._receive: NetworkReceive | None = receive
        self._answered = False

    def respond(self, message: ResponseMessage, version: int | None = None) -> None:
        """Send the answer, in the request's version unless another is given."""
        chosen = self.header.api_version if version is None else version
        try:
            parts = encode_response(message, chosen, self.header.correlation_id)
        except KafkaError:
            # The client waits for an answer that cannot be given: it must not wait for ever.
            _log.exception("%r: the answer cannot be encoded; closing the connection", self)
            self.close_connection()
        else:
            self._answer(Response(self.connection_id, parts))

    def respond_nothing(self) -> None:
        """Answer a request that asks for no response."""
        self._answer(Response(self.connection_id))

    def close_connection(self) -> None:
        """Close the connection the request came over."""
        self._answer(Response(self.connection_id, close=True))

    def release(self) -> None:
        """Give the request's memory back; its body must not be read any more."""
        receive, self._receive = self._receive, None
        if receive is not None:
            receive.release()

    def _answer(self, response: Response) -> None:
        if self._answered:
            _log.error("%s was answered twice; the second answer is dropped", self)
            return
        self._answered = True
        self._sink.enqueue_response(response)

    @property
    def is_answered(self) -> bool:
        """Whether an answer was given."""
        return self._answered

    def __repr__(self) -> str:
        return f"Request({self.header!r}, connection {self.connection_id})"


Dispatch = Callable[[Request], bool]
"""Takes a request to be handled; False if there is no room for it now."""


class RequestChannel:
    """A bounded queue between network threads and handler threads (Kafka: RequestChannel).

    The condition guards the queue and the closed flag.
    """

    def __init__(self, capacity: int, condition: Condition) -> None:
        self._capacity = capacity
        self._condition = condition
        self._queue: deque[Request] = deque()
        self._closed = False

    def send_request(self, request: Request) -> bool:
        """Queue a request; return False if the queue is full or closed."""
        with self._condition:
            if self._closed or len(self._queue) >= self._capacity:
                return False
            self._queue.append(request)
            self._condition.notify()
            return True

    def receive_request(self, timeout_ms: float) -> Request | None:
        """Return the next request, or None if none comes within the time."""
        with self._condition:
            if not self._queue and not self._closed:
                self._condition.wait(timeout_ms / 1000.0)
            return self._queue.popleft() if self._queue else None

    def close(self) -> None:
        """Refuse further requests and wake every handler."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def size(self) -> int:
        """Return the number of waiting requests."""
        with self._condition:
            return len(self._queue)
