"""Requests of a producer to coordinators, one at a time, as a step function."""

from collections.abc import Callable, Sized

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import ClientResponse, ResponseCallback
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.types import Node
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_state import State
from kclient.producer.txn_reactions import Reaction, reaction_to
from kclient.producer.txn_request_handlers import (
    CoordinatorId,
    FindCoordinatorHandler,
    TxnRequestHandler,
    next_handler,
)

_NO_NODE_RETRY_MS = 100.0
_NEVER_MS = float("inf")


class TransactionalRequests:
    """The requests that the producer's state asks for (Kafka: TransactionManager.pendingRequests).

    Only the sender's thread calls it. It sends one request at a time, to the coordinator that it
    has to find first, and repeats it until it succeeds or the transaction or the producer fails.

    Attributes:
        last_error: Error of the last attempt, None after a success.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: NetworkClient,
        metadata: ProducerMetadata,
        manager: SequenceManager,
        incomplete: Sized,
        retry_backoff: ExponentialBackoff,
        guard: Callable[[ResponseCallback], ResponseCallback],
    ) -> None:
        """Start without a request.

        Args:
            config: Options.
            client: Client of the sender.
            metadata: Metadata of the sender.
            manager: State of the producer.
            incomplete: Batches without an outcome.
            retry_backoff: Backoff of retries.
            guard: Wraps a callback so that the sender raises its errors.
        """
        self._client = client
        self._metadata = metadata
        self._manager = manager
        self._incomplete = incomplete
        self._retry_backoff = retry_backoff
        self._request_timeout_ms = config.request_timeout_ms
        self._transaction_timeout_ms = config.transaction_timeout_ms
        self._guard = guard
        self._coordinators: dict[CoordinatorId, Node] = {}
        self._in_flight: TxnRequestHandler | None = None
        self._failures = 0
        self._retry_at_ms = 0.0
        self.last_error: KafkaError | None = None

    def step(self, now_ms: float) -> float:
        """Send the next request if possible; return the time until the next call is needed."""
        state = self._manager.state
        # READY first: it is the state of each step of a producer without transactions.
        if state is State.READY or state is State.FATAL_ERROR or self._in_flight is not None:
            return _NEVER_MS
        wanted = next_handler(
            self._manager,
            self._transaction_timeout_ms,
            self._client.api_versions,
            is_incomplete=len(self._incomplete) > 0,
        )
        if wanted is None:
            return _NEVER_MS
        if now_ms < self._retry_at_ms:
            return self._retry_at_ms - now_ms
        key = wanted.coordinator
        if key is None:
            return self._send_to(self._client.least_loaded_node(now_ms), wanted, now_ms)
        coordinator = self._coordinators.get(key)
        if coordinator is not None:
            return self._send_to(coordinator, wanted, now_ms)
        finder = FindCoordinatorHandler(wanted, self._coordinators)
        return self._send_to(self._client.least_loaded_node(now_ms), finder, now_ms)

    def _send_to(self, node: Node | None, handler: TxnRequestHandler, now_ms: float) -> float:
        if node is None:
            self._metadata.request_update()
            return _NO_NODE_RETRY_MS
        client = self._client
        if not client.ready(node, now_ms):
            if handler.coordinator is not None and client.connection_failed(node):
                self._forget(handler)  # it may have moved
                self._put_off(handler, DisconnectedError("the coordinator is not reached"), now_ms)
                return self._retry_at_ms - now_ms
            return client.poll_delay_ms(node, now_ms)
        self._in_flight = handler
        client.send(
            client.new_client_request(
                str(node.id),
                handler.builder(),
                now_ms,
                request_timeout_ms=self._request_timeout_ms,
                callback=self._guard(self._handle),
            ),
            now_ms,
        )
        return _NEVER_MS

    def _handle(self, response: ClientResponse) -> None:
        handler, self._in_flight = self._in_flight, None
        if handler is None:
            return
        error = response.version_mismatch or response.error
        if error is None:
            error = handler.handle(response)
        elif response.was_disconnected and not isinstance(error, DisconnectedError):
            error = _disconnected(error)
        self.last_error = error
        if error is None:
            self._failures = 0
            return
        reaction = reaction_to(error, handler.api_key)
        if reaction is Reaction.FIND_COORDINATOR:
            self._forget(handler)
        handler.fail(error, reaction)
        self._put_off(handler, error, response.received_ms)

    def _forget(self, handler: TxnRequestHandler) -> None:
        if handler.coordinator is not None:
            self._coordinators.pop(handler.coordinator, None)

    def _put_off(self, handler: TxnRequestHandler, error: KafkaError, now_ms: float) -> None:
        backoff_ms = handler.backoff_ms(error)
        if backoff_ms is None:
            backoff_ms = self._retry_backoff.backoff(self._failures)
            self._failures += 1
        self.last_error = error
        self._retry_at_ms = now_ms + backoff_ms


def _disconnected(error: KafkaError) -> DisconnectedError:
    lost = DisconnectedError(str(error))
    lost.__cause__ = error
    return lost
