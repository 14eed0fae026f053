"""Lookup of the group coordinator (Kafka: AbstractCoordinator.lookupCoordinator)."""

import math

from kclient.client.client_request import ClientResponse
from kclient.client.find_coordinator import (
    COORDINATOR_ID_BASE,
    CoordinatorType,
    FindCoordinator,
    coordinator_of,
)
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    NotCoordinatorError,
)
from kclient.common.denials import group_denied
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.log_context import FailureLog, LogContext
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse

_SETTLED_MS = 2000.0
_LOST = (NotCoordinatorError, CoordinatorNotAvailableError, DisconnectedError)


class CoordinatorFinder:
    """Finds the coordinator and keeps it until it is lost."""

    def __init__(
        self,
        group_id: str,
        network: ConsumerNetworkClient,
        clock: Clock,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._failures = FailureLog(self._log, "Group coordinator lookup")
        self.group_id = group_id
        self._network = network
        self._clock = clock
        self._backoff = network.backoff
        self._node: Node | None = None
        self._in_flight = False
        self._attempts = 0
        self._next_attempt_ms = 0.0
        self._found_ms = 0.0
        self._error: KafkaError | None = None

    def coordinator(self) -> Node | None:
        """Return the coordinator if it is known and available; group requests go there."""
        if self._node is not None and self._network.is_unavailable(self._node):
            self.mark_unknown("the connection failed")
        return self._node

    def broker_node(self) -> Node | None:
        """Return the coordinator by its broker id, whose connection is that of fetches.

        A broker responds to the requests of a connection in order, and delays a JoinGroup until all
        members have joined. Requests that must not wait for that use this node.
        """
        node = self.coordinator()
        return None if node is None else node._replace(id=COORDINATOR_ID_BASE - node.id)

    def step(self, now_ms: float) -> float:
        """Look up the coordinator if it is unknown; return the time until the next step.

        Raises:
            GroupAuthorizationError: Not authorized to access the group.
            KafkaError: The lookup failed with a fatal error.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self.coordinator() is not None or self._in_flight:
            return math.inf
        if now_ms < self._next_attempt_ms:
            return self._next_attempt_ms - now_ms
        node = self._network.least_loaded_node()
        self._put_off(now_ms)
        if node is not None:
            self._in_flight = True
            lookup = FindCoordinator([self.group_id], CoordinatorType.GROUP)
            self._network.send(node, lookup).on_done(self._take)
        return self._next_attempt_ms - now_ms

    def mark_unknown(self, reason: str) -> None:
        """Discard the coordinator: it moved or is unavailable."""
        if self._node is not None:
            node, self._node = self._node, None
            self._log.info(
                "Group coordinator %s is unavailable or invalid due to: %s. Rediscovery will be "
                "attempted.",
                node,
                reason,
            )
            if self._clock.monotonic_ms() - self._found_ms > _SETTLED_MS:
                self._attempts = 0  # otherwise the backoff continues to grow
            # What is in flight there would be acknowledged by a broker that is not in charge.
            self._network.disconnect(node)

    def check_lost(self, error: KafkaError) -> None:
        """Discard the coordinator if an error means that it moved or is unavailable."""
        if isinstance(error, _LOST):
            self.mark_unknown(str(error))

    def _take(self, future: RequestFuture[ClientResponse]) -> None:
        self._in_flight = False
        try:
            node = coordinator_of(future.value.body(FindCoordinatorResponse), self.group_id)
            if not node.host:
                raise CoordinatorNotAvailableError("the response contains no broker")
            self._node = node._replace(id=COORDINATOR_ID_BASE - node.id)
            self._found_ms = self._clock.monotonic_ms()
            self._failures.succeeded()
            self._log.info("Discovered group coordinator %s", node)
        except GroupAuthorizationError:
            self._error = group_denied(self.group_id)
        except KafkaError as error:
            self._failures.failed(error)
            self._network.record_error(_of_group(self.group_id, error))
            if not error.retriable:
                self._error = error

    def _put_off(self, now_ms: float) -> None:
        self._next_attempt_ms = now_ms + self._backoff.backoff(self._attempts)
        self._attempts += 1


def _of_group(group_id: str, error: KafkaError) -> KafkaError:
    found = CoordinatorNotAvailableError(
        f"no coordinator was found for group {group_id!r}: {error}"
    )
    # Its traceback would keep the frames of the caller, and so the consumer, alive.
    found.__cause__ = error.with_traceback(None)
    return found
