"""Requests of the sequence manager, one at a time, as a step function."""

from collections.abc import Callable
from typing import Protocol

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import (
    ClientResponse,
    RequestBuilder,
    ResponseCallback,
    SimpleBuilder,
)
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Lock
from kclient.producer.producer_batch import ProducerIdAndEpoch
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_state import State
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_NO_TRANSACTION_TIMEOUT = 2**31 - 1
_NO_NODE_RETRY_MS = 100.0


class TransactionalRequest(Protocol):
    """A request of the queue and the handling of its response (Kafka: TxnRequestHandler).

    Attributes:
        priority: Requests with lower numbers are sent first.
    """

    priority: int

    def builder(self) -> RequestBuilder:
        """Return the builder of the request; called for each attempt."""
        ...

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Apply a response; return the error if the request must be retried after a backoff."""
        ...


class InitProducerId:
    """Request of a producer id (Kafka: InitProducerIdHandler)."""

    priority = 1

    def __init__(self, manager: SequenceManager) -> None:
        self._manager = manager

    def builder(self) -> RequestBuilder:
        """Return the builder of an InitProducerId request."""
        self._manager.begin_initializing()
        return SimpleBuilder(
            InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT
            )
        )

    def handle(self, response: ClientResponse) -> KafkaError | None:
        """Set the id in the sequence manager, or its error."""
        body = response.response
        error = response.version_mismatch or response.error
        if isinstance(body, InitProducerIdResponse):
            error = error_for_code(body.error_code)
            if error is None:
                self._manager.initialized(ProducerIdAndEpoch(body.producer_id, body.producer_epoch))
                return None
        error = _explained(error or KafkaError("no response to InitProducerId"))
        self._manager.initializing_failed(error, passing=response.was_disconnected)
        return error


def _explained(error: KafkaError) -> KafkaError:
    """Return the error with what to do where a service does not accept idempotent producers."""
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(
            f"{error}, which an idempotent producer needs; set enable_idempotence=False"
        )
    if isinstance(error, ClusterAuthorizationError):
        return ClusterAuthorizationError(
            f"{error}: not allowed to write idempotently; allow IdempotentWrite on the cluster (in "
            "AWS MSK with IAM: kafka-cluster:WriteDataIdempotently), or set "
            "enable_idempotence=False"
        )
    return error


class TransactionalRequests:
    """Queue of the sequence manager's requests (Kafka: TransactionManager.pendingRequests).

    Any thread may call `enqueue`. Only the sender's thread calls `step`, which sends one request at
    a time and retries it until it succeeds or the sequence manager has a fatal error.

    Attributes:
        last_error: Error of the last attempt, None after a success.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: ProducerMetadata,
        manager: SequenceManager,
        retry_backoff: ExponentialBackoff,
        request_timeout_ms: int,
        lock: Lock,
        guard: Callable[[ResponseCallback], ResponseCallback],
    ) -> None:
        """Start with an empty queue.

        Args:
            client: Client of the sender.
            metadata: Metadata of the sender.
            manager: Its producer id is requested when it has none.
            retry_backoff: Backoff of retries.
            request_timeout_ms: ``request.timeout.ms``.
            lock: Lock of the queue.
            guard: Wraps a callback so that the sender raises its errors.
        """
        self._client = client
        self._metadata = metadata
        self._manager = manager
        self._retry_backoff = retry_backoff
        self._request_timeout_ms = request_timeout_ms
        self._guard = guard
        self._lock = lock  # guards: _queue
        self._queue: list[TransactionalRequest] = []
        self._in_flight: TransactionalRequest | None = None
        self._failures = 0
        self._retry_at_ms = 0.0
        self.last_error: KafkaError | None = None

    def enqueue(self, request: TransactionalRequest) -> None:
        """Queue a request; the caller wakes the sender."""
        with self._lock:
            self._queue.append(request)

    def step(self, now_ms: float) -> float:
        """Send the next request if possible; return the time until the next call is needed."""
        state = self._manager.state
        if state is State.FATAL_ERROR or self._in_flight is not None:
            return float("inf")
        request = self._next() if self._queue else None
        if request is None and state is State.UNINITIALIZED:
            request = InitProducerId(self._manager)
            self.enqueue(request)
        if request is None:
            return float("inf")
        if now_ms < self._retry_at_ms:
            return self._retry_at_ms - now_ms
        node = self._client.least_loaded_node(now_ms)
        if node is None:
            self._metadata.request_update()
            return _NO_NODE_RETRY_MS
        if not self._client.ready(node, now_ms):
            return self._client.poll_delay_ms(node, now_ms)
        self._in_flight = request
        self._client.send(
            self._client.new_client_request(
                str(node.id),
                request.builder(),
                now_ms,
                request_timeout_ms=self._request_timeout_ms,
                callback=self._guard(self._handle),
            ),
            now_ms,
        )
        return float("inf")

    def _next(self) -> TransactionalRequest | None:
        """Return the oldest request of those with the lowest priority number."""
        with self._lock:
            return min(self._queue, key=lambda request: request.priority, default=None)

    def _handle(self, response: ClientResponse) -> None:
        request, self._in_flight = self._in_flight, None
        if request is None:
            return
        self.last_error = request.handle(response)
        if self.last_error is None:
            self._failures = 0
            with self._lock:
                self._queue.remove(request)
            return
        self._retry_at_ms = response.received_ms + self._retry_backoff.backoff(self._failures)
        self._failures += 1
