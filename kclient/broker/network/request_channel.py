"""Requests and responses between the network threads and the request handlers."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kclient.broker.network.request_metrics import RequestTimes
from kclient.common.errors import KafkaError
from kclient.common.files import WirePart
from kclient.common.runtime import Condition
from kclient.network.authenticator import KafkaPrincipal
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.headers import RequestHeader, encode_correlation_id, encode_response
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Response:
    """Outcome of a request (Kafka: RequestChannel.Response and its subclasses).

    Attributes:
        connection_id: Connection of the request.
        parts: Response frame, or None if the request has no response.
        close: Whether to close the connection instead.
    """

    connection_id: str
    parts: list[WirePart] | None = None
    close: bool = False


class ConnectionContext(NamedTuple):
    """Connection of a request.

    Attributes:
        connection_id: Id of the connection.
        client_address: IP address of the client.
        listener_name: Name of the listener that accepted the connection.
        principal: Principal of the client.
    """

    connection_id: str
    client_address: str
    listener_name: str
    principal: KafkaPrincipal


class ResponseSink(Protocol):
    """Owner of a request's connection."""

    def enqueue_response(self, response: Response) -> None:
        """Queue a response; may be called by any thread."""
        ...


Charge = Callable[["Request", int], int]
"""Counts a request and the bytes of its response against the quotas of its client; returns the time
for which the client is throttled, in milliseconds."""


class Request:
    """Request and its origin (Kafka: RequestChannel.Request).

    Attributes:
        connection_id: Connection that it was received on.
        client_address: IP address of the client.
        listener_name: Name of the listener that accepted the connection.
        principal: Principal of the client.
        header: Request header.
        body: Decoded request; None if the header alone determines the response.
        times: Times of its stages in the broker.
        size: Bytes of the received frame, if it is metered.
        mutation_throttle_ms: Throttle time for changes of partitions, if it is metered.
    """

    __slots__ = (
        "_charge",
        "_completed",
        "_is_charged",
        "_receive",
        "_sink",
        "body",
        "client_address",
        "connection_id",
        "header",
        "listener_name",
        "mutation_throttle_ms",
        "principal",
        "size",
        "times",
    )

    def __init__(
        self,
        sink: ResponseSink,
        receive: NetworkReceive,
        connection: ConnectionContext,
        header: RequestHeader,
        body: RequestMessage | None,
    ) -> None:
        self.connection_id, self.client_address, self.listener_name, self.principal = connection
        self.header = header
        self.body = body
        self.times = RequestTimes(connection.connection_id, header)
        self._sink = sink
        self._receive: NetworkReceive | None = receive
        self._completed = False
        self._charge: Charge | None = None

    def meter(self, charge: Charge) -> None:
        """Let a function count the request against quotas before its response is sent."""
        self._charge = charge
        self._is_charged = False
        self.mutation_throttle_ms = 0
        self.size = 0 if self._receive is None else len(self._receive.payload)

    @property
    def is_metered(self) -> bool:
        """Whether the request counts against quotas, and was not counted yet."""
        return self._charge is not None and not self._is_charged

    def exempt(self) -> None:
        """Count the request against no quota."""
        self._charge = None

    def charge(self, response_bytes: int = 0) -> int:
        """Count the request, once; return the throttle time of its client in milliseconds."""
        if self._charge is None:
            return 0
        if not self._is_charged:
            self._is_charged = True
            self.times.throttle_ms = self._charge(self, response_bytes)
        return self.times.throttle_ms

    def respond(self, message: ResponseMessage, version: int | None = None) -> None:
        """Send the response, in the request's version unless another is given."""
        if self._charge is not None and self.charge() and "throttle_time_ms" in message.fields:
            message.throttle_time_ms = self.times.throttle_ms  # type: ignore[attr-defined]
        chosen = self.header.api_version if version is None else version
        try:
            parts = encode_response(message, chosen, self.header.correlation_id)
        except KafkaError:
            # Without a response the client would wait until its request timeout.
            _log.exception("%r: the response cannot be encoded; closing the connection", self)
            self.close_connection()
        else:
            self._complete(Response(self.connection_id, parts))

    def respond_encoded(self, response: bytes) -> None:
        """Send a response that is encoded already, but for its correlation id before it."""
        correlation_id = encode_correlation_id(self.header.correlation_id)
        self._complete(Response(self.connection_id, [correlation_id + response]))

    def complete_without_response(self) -> None:
        """Complete a request that has no response, such as Produce with acks=0."""
        if self._charge is not None:
            self.charge()
        self._complete(Response(self.connection_id))

    def close_connection(self) -> None:
        """Close the connection of the request."""
        self._complete(Response(self.connection_id, close=True))

    def release(self) -> None:
        """Return the request's memory to the pool; its body must not be read afterwards."""
        receive, self._receive = self._receive, None
        if receive is not None:
            receive.release()

    def _complete(self, response: Response) -> None:
        if self._completed:
            _log.error("%s: got a second response, expected one; it is discarded", self)
            return
        self._completed = True
        self._sink.enqueue_response(response)

    @property
    def is_completed(self) -> bool:
        """Whether a response was queued."""
        return self._completed

    def __repr__(self) -> str:
        return f"Request({self.header!r}, connection {self.connection_id})"


Dispatch = Callable[[Request], bool]
"""Queues or handles a request; returns False if the queue is full."""


class RequestChannel:
    """Bounded queue between network threads and request handlers (Kafka: RequestChannel).

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
        """Return the next request, or None if none arrives within the time."""
        with self._condition:
            if not self._queue and not self._closed:
                self._condition.wait(timeout_ms / 1000.0)
            return self._queue.popleft() if self._queue else None

    def close(self) -> None:
        """Refuse further requests and wake all handlers."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def size(self) -> int:
        """Return the number of queued requests."""
        with self._condition:
            return len(self._queue)
