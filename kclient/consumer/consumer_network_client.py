"""Requests of a consumer, sent when their broker is ready (Kafka: ConsumerNetworkClient)."""

from collections import deque
from collections.abc import Callable

from kclient.client.client_request import ClientRequest
from kclient.client.client_response import ClientResponse
from kclient.client.interrupted_clients import close_interrupted
from kclient.client.metadata import Metadata
from kclient.client.network_client import NetworkClient
from kclient.client.node_api_versions import NodeApiVersions
from kclient.client.request_builder import RequestBuilder
from kclient.common.errors import (
    BootstrapError,
    DisconnectedError,
    KafkaError,
    KafkaTimeoutError,
    WakeupError,
)
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey

MAX_POLL_TIMEOUT_MS = 5000.0
_MEMBERSHIP_APIS = frozenset(
    {
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
    }
)


class _Unsent:
    """A request that waits for its broker."""

    __slots__ = ("builder", "deadline_ms", "future", "node", "timeout_ms")

    def __init__(
        self, node: Node, builder: RequestBuilder, timeout_ms: float, now_ms: float
    ) -> None:
        self.node = node
        self.builder = builder
        self.timeout_ms = timeout_ms
        self.deadline_ms = now_ms + timeout_ms
        self.future: RequestFuture[ClientResponse] = RequestFuture()

    def is_of_membership(self) -> bool:
        """Return whether the request belongs to the group membership, as heartbeats do."""
        return self.builder.api_key in _MEMBERSHIP_APIS


class ConsumerNetworkClient:
    """Queues requests until their broker is ready and hands every outcome to a future.

    Only the thread that drives the consumer calls these methods (see `DriveLock`), except
    `wakeup`, which any thread may call.
    """

    def __init__(
        self,
        connect: Callable[[], NetworkClient],
        metadata: Metadata,
        clock: Clock,
        request_timeout_ms: float,
    ) -> None:
        self._connect = connect
        self._client = connect()
        self._old: list[NetworkClient] = []  # interrupted, and to be closed
        self._metadata = metadata
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._unsent: dict[int, deque[_Unsent]] = {}
        # Requests without an outcome, whether they wait or are in flight; in order, none twice.
        self._open: dict[_Unsent, None] = {}
        # Outcomes whose futures have not been completed yet.
        self._completed: deque[tuple[_Unsent, ClientResponse | KafkaError]] = deque()
        self._wakeup_asked = False
        self._trouble: KafkaError | None = None
        self._observe: Callable[[ClientResponse], None] | None = None

    # --- asking

    def send(
        self, node: Node, builder: RequestBuilder, *, timeout_ms: float | None = None
    ) -> RequestFuture[ClientResponse]:
        """Queue a request; nothing goes out before the next `poll`.

        Args:
            node: Broker to ask.
            builder: Makes the request in the version the broker takes.
            timeout_ms: How long to wait for the response, milliseconds; the client's
                ``request.timeout.ms`` if None.

        Returns:
            The response; or `DisconnectedError`, `KafkaTimeoutError`, or what else went wrong.
        """
        timeout = self._request_timeout_ms if timeout_ms is None else timeout_ms
        unsent = _Unsent(node, builder, timeout, self._clock.monotonic_ms())
        self._open[unsent] = None
        self._unsent.setdefault(node.id, deque()).append(unsent)
        return unsent.future

    def least_loaded_node(self) -> Node | None:
        """Return the broker best placed to answer a question that any broker can."""
        return self._client.least_loaded_node(self._clock.monotonic_ms())

    def has_pending(self, node: Node) -> bool:
        """Return whether requests to a broker wait or are in flight."""
        return bool(self._unsent.get(node.id)) or self._client.has_in_flight_requests(str(node.id))

    def is_unavailable(self, node: Node) -> bool:
        """Return whether a broker is in its reconnect backoff."""
        now_ms = self._clock.monotonic_ms()
        return (
            self._client.connection_failed(node)
            and self._client.connection_delay_ms(node, now_ms) > 0
        )

    def disconnect(self, node: Node) -> None:
        """Close the connection to a broker; what waits or is in flight there fails."""
        self._fail_unsent(node.id, DisconnectedError(f"connection to {node} was given up"))
        self._client.disconnect(str(node.id))

    # --- moving on

    def poll(self, timeout_ms: float, *, membership_only: bool = False) -> None:
        """Send queued requests, wait for the network at most `timeout_ms`, complete futures.

        Returns at once when a future was completed. Fatal errors of the metadata are raised from
        here.

        Args:
            timeout_ms: Longest wait.
            membership_only: Whether to complete only the futures of group membership requests. The
                heartbeat loop does so: it may run while the application is inside a callback or a
                deserializer, where positions and fetched data must not change.
        """
        self._complete_futures(membership_only=membership_only)
        now_ms = self._clock.monotonic_ms()
        wait_ms = self._transmit(now_ms)
        if self._completed or self._wakeup_asked:
            timeout_ms = 0.0
        timeout_ms = max(0.0, min(timeout_ms, wait_ms, MAX_POLL_TIMEOUT_MS))
        self._client.poll(timeout_ms, now_ms)
        now_ms = self._clock.monotonic_ms()
        self._fail_lost(now_ms)
        self._transmit(now_ms)
        self._complete_futures(membership_only=membership_only)
        self._metadata.maybe_raise_any_error()

    def wakeup(self) -> None:
        """Make the blocking call in progress, or the next one, raise `WakeupError`."""
        self._wakeup_asked = True
        self._client.wakeup()

    def maybe_raise_wakeup(self) -> None:
        """Raise `WakeupError` once for each time `wakeup` was called since."""
        if self._wakeup_asked:
            self._wakeup_asked = False
            raise WakeupError("wakeup() was called")

    def forget_wakeup(self) -> None:
        """Leave a wakeup aside that came too late for the call it was meant for."""
        self._wakeup_asked = False

    def observe(self, told: Callable[[ClientResponse], None]) -> None:
        """Let every answer be told to `told`, before it goes to whoever asked."""
        self._observe = told

    # --- what stands in the way

    def bootstrap_error(self) -> BootstrapError | None:
        """Return why brokers are of no use, if anything is known against them."""
        return self._client.bootstrap_error()

    def note_trouble(self, error: KafkaError) -> None:
        """Keep an error that is retried, for the call that may give up on it."""
        self._trouble = error

    def forget_trouble(self) -> None:
        """Begin a call: what failed before has nothing to do with it."""
        self._trouble = None

    def troubles(self) -> list[KafkaError]:
        """Return what the present call failed with last, and why brokers are of no use."""
        known = (self._trouble, self.bootstrap_error())
        return [trouble for trouble in known if trouble is not None]

    def api_versions(self, node: Node) -> NodeApiVersions | None:
        """Return what a broker speaks, None while it is not connected."""
        return self._client.api_versions.get(str(node.id))

    # --- its end, and a new beginning

    def close(self) -> None:
        """Close every connection and forget what was asked for."""
        close_interrupted(self._old)
        self._client.close()
        self._unsent.clear()
        self._open.clear()
        self._completed.clear()

    def was_only_waiting(self) -> bool:
        """Return whether an exception ended the last `poll` with nothing half done; ask once."""
        return self._client.was_only_waiting()

    def renew(self) -> None:
        """Connect anew: what a signal handler's exception left half done is given up.

        Every request without an outcome fails as if its connection had broken.
        """
        self._old.append(self._client)
        self._client = self._connect()
        self._completed.clear()
        self._unsent.clear()
        interrupted = DisconnectedError("the call that would have taken the answer was interrupted")
        while self._open:
            self._complete(next(iter(self._open)), interrupted)
        close_interrupted(self._old)

    # --- inside

    def _transmit(self, now_ms: float) -> float:
        """Hand over the requests whose broker is ready; return until when to wait at most."""
        wait_ms = MAX_POLL_TIMEOUT_MS
        for queue in list(self._unsent.values()):
            node = queue[0].node
            while queue and self._client.ready(node, now_ms):
                self._hand_over(queue.popleft(), now_ms)
            if queue:
                wait_ms = min(wait_ms, self._client.poll_delay_ms(node, now_ms))
                wait_ms = min(wait_ms, min(unsent.deadline_ms for unsent in queue) - now_ms)
            else:
                del self._unsent[node.id]
        return wait_ms

    def _hand_over(self, unsent: _Unsent, now_ms: float) -> None:
        def completed(response: ClientResponse) -> None:
            self._completed.append((unsent, response))

        request: ClientRequest = self._client.new_client_request(
            str(unsent.node.id),
            unsent.builder,
            now_ms,
            request_timeout_ms=unsent.timeout_ms,
            callback=completed,
        )
        self._client.send(request, now_ms)

    def _complete_futures(self, *, membership_only: bool) -> None:
        # The futures' listeners run here, outside the network client, so that they may send.
        if membership_only:
            outcomes = [entry for entry in self._completed if entry[0].is_of_membership()]
            for entry in outcomes:
                self._completed.remove(entry)
                self._complete(*entry)
            return
        while self._completed:
            self._complete(*self._completed.popleft())

    def _complete(self, unsent: _Unsent, outcome: ClientResponse | KafkaError) -> None:
        self._open.pop(unsent, None)
        if isinstance(outcome, KafkaError):
            unsent.future.fail(outcome)
        elif outcome.version_mismatch is not None:
            unsent.future.fail(outcome.version_mismatch)
        elif outcome.error is not None:
            self._trouble = outcome.error
            unsent.future.fail(outcome.error)
        elif outcome.was_disconnected:
            unsent.future.fail(DisconnectedError(f"{unsent.node} closed the connection"))
        else:
            if self._observe is not None:
                self._observe(outcome)
            unsent.future.succeed(outcome)

    def _fail_lost(self, now_ms: float) -> None:
        for node_id, queue in list(self._unsent.items()):
            node = queue[0].node
            if self._client.connection_failed(node):
                cause = self._client.connection_error(node)
                self._fail_unsent(node_id, cause or DisconnectedError(f"no connection to {node}"))
                continue
            for unsent in [waiting for waiting in queue if waiting.deadline_ms <= now_ms]:
                queue.remove(unsent)
                late = KafkaTimeoutError(
                    f"{unsent.builder.api_key.name} to {node} could not be sent "
                    f"within {unsent.timeout_ms:.0f} ms"
                )
                self._completed.append((unsent, late))
            if not queue:
                del self._unsent[node_id]

    def _fail_unsent(self, node_id: int, error: "DisconnectedError") -> None:
        unsent = self._unsent.pop(node_id, ())
        self._completed.extend((request, error) for request in unsent)
