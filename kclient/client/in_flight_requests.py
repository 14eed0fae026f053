"""Requests in flight of each node, in the order in which they were sent."""

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from kclient.client.client_request import ClientRequest, ClientResponse
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.network.network_send import NetworkSend
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response


class InFlightRequest(NamedTuple):
    """Request that was sent in a version (Kafka: NetworkClient.InFlightRequest).

    Attributes:
        request: Request before its version was chosen.
        version: Version of the request and of its response.
        send: Frame.
        sent_ms: Time at which it was queued.
        throttled_ms: Time for which the broker does not read it, because of earlier requests.
    """

    request: ClientRequest
    version: int
    send: NetworkSend
    sent_ms: float
    throttled_ms: float = 0.0

    @property
    def api_key(self) -> ApiKey:
        """API of the request."""
        return self.request.builder.api_key

    @property
    def api_name(self) -> str:
        """Name of the API, for error texts and log lines."""
        return self.api_key.name

    @property
    def deadline_ms(self) -> float:
        """Time at which the request times out.

        The timeout runs from the first attempt to write the request: an application that does not
        poll, as while it processes records, delays the write. The time for which the broker
        throttles the connection does not count (KIP-219).
        """
        began_ms = self.send.write_began_ms
        timeout_ms = self.request.request_timeout_ms + self.throttled_ms
        return (self.sent_ms if began_ms is None else began_ms) + timeout_ms

    def completed(self, response: Response | None, now_ms: float) -> ClientResponse:
        """Return the outcome of a request that succeeded."""
        return self._outcome(now_ms, response)

    def failed(
        self, error: KafkaError, now_ms: float, *, timed_out: bool = False
    ) -> ClientResponse:
        """Return the outcome of a request whose connection ended."""
        return self._outcome(now_ms)._replace(
            error=error, was_disconnected=True, timed_out=timed_out
        )

    def _outcome(self, now_ms: float, response: Response | None = None) -> ClientResponse:
        request = self.request
        return ClientResponse(
            request.builder.api_key,
            self.version,
            request.correlation_id,
            request.destination,
            request.created_ms,
            now_ms,
            response,
            callback=request.callback,
        )


def not_sent(request: ClientRequest, error: KafkaError, now_ms: float) -> ClientResponse:
    """Return the outcome of a request that could not be encoded."""
    mismatch = error if isinstance(error, UnsupportedVersionError) else None
    return ClientResponse(
        request.builder.api_key,
        request.builder.latest_allowed_version,
        request.correlation_id,
        request.destination,
        request.created_ms,
        now_ms,
        error=error,
        version_mismatch=mismatch,
        callback=request.callback,
    )


class InFlightRequests:
    """Requests in flight of each node, the oldest first (Kafka: InFlightRequests).

    A broker responds in the order of the requests, so that a response belongs to the oldest one.

    Attributes:
        next_deadline_ms: Lower bound of the deadlines, recomputed when it has passed.
    """

    def __init__(self, max_in_flight_per_node: int) -> None:
        self._max = max_in_flight_per_node
        self._queues: dict[str, deque[InFlightRequest]] = {}
        self._count = 0
        self.next_deadline_ms = math.inf

    def add(self, request: InFlightRequest) -> None:
        """Add a request as the newest of its node."""
        node_id = request.request.destination
        queue = self._queues.get(node_id)
        if queue is None:
            queue = self._queues[node_id] = deque()
        queue.append(request)
        self._count += 1
        deadline_ms = request.deadline_ms
        self.next_deadline_ms = min(self.next_deadline_ms, deadline_ms)

    def complete_next(self, node_id: str) -> InFlightRequest | None:
        """Remove and return the oldest request of a node; None if there is none."""
        queue = self._queues.get(node_id)
        if not queue:
            return None
        self._count -= 1
        return queue.popleft()

    def oldest(self, node_id: str) -> InFlightRequest | None:
        """Return the oldest request of a node; None if there is none."""
        queue = self._queues.get(node_id)
        return queue[0] if queue else None

    def complete_sent(self, send: NetworkSend) -> InFlightRequest:
        """Remove and return the request of a frame that was written, to which no response comes.

        Raises:
            IllegalStateError: There is none.
        """
        queue = self._queues.get(send.channel_id) or deque()
        for index, request in enumerate(queue):
            if request.send is send:
                del queue[index]
                self._count -= 1
                return request
        raise IllegalStateError(f"node {send.channel_id}: the request is not in flight")

    def throttle(self, node_id: str, delay_ms: float) -> None:
        """Extend the timeouts of a node's requests: it reads them only after the throttle time."""
        queue = self._queues.get(node_id)
        if queue:
            self._queues[node_id] = deque(
                each._replace(throttled_ms=each.throttled_ms + delay_ms) for each in queue
            )

    def can_send_more(self, node_id: str, *, internal: bool = False) -> bool:
        """Return whether the last frame is written and the limit is not reached.

        Internal requests, such as METADATA, do not count, and the limit does not apply to them.
        """
        queue = self._queues.get(node_id)
        if not queue:
            return True
        if not queue[-1].send.completed:
            return False
        return (
            internal
            or len(queue) < self._max
            or sum(not each.request.internal for each in queue) < self._max
        )

    def count(self, node_id: str | None = None) -> int:
        """Return the number of requests in flight, of one node or of all."""
        if node_id is None:
            return self._count
        return len(self._queues.get(node_id, ()))

    def clear_all(self, node_id: str) -> Iterable[InFlightRequest]:
        """Remove and return all requests of a node, the oldest first."""
        queue = self._queues.pop(node_id, None) or ()
        self._count -= len(queue)
        return queue

    def clear(self) -> None:
        """Discard all requests."""
        self._queues.clear()
        self._count = 0
        self.next_deadline_ms = math.inf

    def overdue(self, now_ms: float) -> list[InFlightRequest]:
        """Return the request with the earliest passed deadline, of each node that has one."""
        first = [
            min(queue, key=lambda request: request.deadline_ms)
            for queue in self._queues.values()
            if queue
        ]
        self.next_deadline_ms = min((item.deadline_ms for item in first), default=math.inf)
        return [item for item in first if item.deadline_ms <= now_ms]
