"""Requests to the other nodes: one in flight for each (Kafka: RequestManager).

`RaftChannel` is what the server has to provide. It negotiates versions and keeps the connections;
a connection that cannot be made is an error response.
"""

import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.raft_types import RaftNode, RandomNumbers
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request, Response

_log = logging.getLogger(__name__)

Outcome = Response | KafkaError
"""Response, or the error that was reported in its place.

`UnsupportedVersionError` if the node does not have the API in a version that carries the request.
"""

OnResponse = Callable[[Outcome, float], None]
"""Called with the outcome and the monotonic time, by the thread that drives the client."""


class RaftChannel(Protocol):
    """Sends requests to controllers."""

    def send(
        self, node: RaftNode, request: Request, timeout_ms: float, on_response: OnResponse
    ) -> None:
        """Send a request.

        Args:
            node: Destination. A negative id is a bootstrap server, whose real id is not known.
            request: Request body.
            timeout_ms: Time after which the outcome is `RequestTimedOutError`.
            on_response: Called once with the outcome, never before `send` has returned.
        """
        ...


class _Connection:
    """State of the requests to a node."""

    def __init__(self) -> None:
        self.correlation: int | None = None
        self.expires_ms = -inf
        self.backoff_until_ms = -inf

    def is_waiting(self, now_ms: float) -> bool:
        """Return whether a response may still arrive."""
        return self.correlation is not None and self.expires_ms > now_ms

    def ready_ms(self) -> float:
        """Return when the next request may be sent."""
        return self.backoff_until_ms if self.correlation is None else self.expires_ms


class RequestManager:
    """Limits the requests to each node to one in flight, with a backoff after errors.

    Args:
        channel: Sends the requests.
        config: Timeouts.
        rng: Source of the choice of a bootstrap server.

    Attributes:
        bootstrap: Nodes that are asked for the leader.
    """

    def __init__(self, channel: RaftChannel, config: QuorumConfig, rng: RandomNumbers) -> None:
        self._channel = channel
        self._config = config
        self._random = rng
        self._connections: dict[RaftNode, _Connection] = {}
        self._next_correlation = 0
        self.bootstrap: Sequence[RaftNode] = ()

    def is_ready(self, node: RaftNode, now_ms: float) -> bool:
        """Return whether a request can be sent to a node."""
        return self.ready_ms(node) <= now_ms

    def ready_ms(self, node: RaftNode) -> float:
        """Return when a request can be sent to a node."""
        connection = self._connections.get(node)
        return -inf if connection is None else connection.ready_ms()

    def is_backing_off(self, node: RaftNode, now_ms: float) -> bool:
        """Return whether the last request to a node has failed just now."""
        connection = self._connections.get(node)
        return connection is not None and (
            (connection.correlation is None and connection.backoff_until_ms > now_ms)
            or (connection.correlation is not None and connection.expires_ms <= now_ms)
        )

    def ready_bootstrap(self, now_ms: float) -> RaftNode | None:
        """Return a random node that can be asked for the leader; None while one is asked."""
        if self._waiting_until(now_ms) is not None:
            return None
        ready = [node for node in self.bootstrap if self.is_ready(node, now_ms)]
        return self._random.choice(ready) if ready else None

    def bootstrap_ready_ms(self, now_ms: float) -> float:
        """Return when a bootstrap server can be asked."""
        waiting_ms = self._waiting_until(now_ms)
        if waiting_ms is not None:
            return waiting_ms
        return min((self.ready_ms(node) for node in self.bootstrap), default=inf)

    def _waiting_until(self, now_ms: float) -> float | None:
        """Return the end of the wait for a bootstrap server, or None."""
        for node in self.bootstrap:
            connection = self._connections.get(node)
            if connection is not None and connection.is_waiting(now_ms):
                return connection.expires_ms
        return None

    def send(
        self, node: RaftNode, request: Request, on_response: OnResponse, now_ms: float
    ) -> None:
        """Send a request; an error starts the backoff, whether there is a response or not.

        A response that arrives after the next request was sent is dropped.

        Args:
            node: Destination, which is ready.
            request: Request body.
            on_response: Called with the outcome.
            now_ms: Monotonic time.
        """
        self._next_correlation += 1
        correlation = self._next_correlation
        connection = self._connections.setdefault(node, _Connection())
        connection.correlation = correlation
        connection.expires_ms = now_ms + self._config.request_timeout_ms

        def received(outcome: Outcome, received_ms: float) -> None:
            if connection.correlation != correlation:
                return
            connection.correlation = None
            if isinstance(outcome, KafkaError):
                _log.debug("%s to %s: %s", type(request).__name__, node, outcome)
                self.back_off(node, received_ms)
            on_response(outcome, received_ms)

        self._channel.send(node, request, self._config.request_timeout_ms, received)

    def back_off(self, node: RaftNode, now_ms: float) -> None:
        """Delay the next request to a node."""
        connection = self._connections.setdefault(node, _Connection())
        connection.backoff_until_ms = now_ms + self._config.retry_backoff_ms

    def reset_all(self) -> None:
        """Drop the responses of all requests in flight, after a change of the state."""
        for connection in self._connections.values():
            connection.correlation = None
        self._connections.clear()
