"""Queue of a consumer's requests, and waits for them (Kafka: ConsumerNetworkClient)."""

import math
from collections import deque
from collections.abc import Callable

from kclient.client.api_versions import NodeApiVersions
from kclient.client.client_metadata import ConsumerMetadata
from kclient.client.client_request import ClientRequest, ClientResponse, RequestBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client_builder import build_network_client
from kclient.common.errors import (
    BootstrapError,
    DisconnectedError,
    KafkaError,
    KafkaTimeoutError,
    WakeupError,
)
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.common.waiting import NetworkWait, Steps
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey

CLIENT_ID = "kclient-consumer"
MAX_POLL_TIMEOUT_MS = 5000.0
# Group requests, lookups and one fetch per connection; bounds the queue.
_MAX_IN_FLIGHT = 100
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
    """A request that has not been sent yet."""

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
        """Return whether it is a group membership request, such as a heartbeat."""
        return self.builder.api_key in _MEMBERSHIP_APIS

    def timed_out(self) -> KafkaTimeoutError:
        """Return the error of a request that was not sent within its timeout."""
        api_key = self.builder.api_key
        return KafkaTimeoutError(
            f"{api_key.name} to {self.node} could not be sent within {self.timeout_ms:.0f} ms"
        )


class ConsumerNetworkClient:
    """Queues requests until their broker is ready and completes their futures.

    Only the thread that holds `ConsumerLock` calls these methods, except `wakeup`, which any thread
    may call.

    Attributes:
        metadata: Cluster metadata.
        backoff: Backoff between the attempts of a request.
    """

    def __init__(self, config: ConsumerConfig, runtime: Runtime, log_context: LogContext) -> None:
        self.metadata = ConsumerMetadata(
            runtime,
            config,
            log_context,
            allow_auto_topic_creation=config.allow_auto_create_topics,
        )
        self.backoff = ExponentialBackoff(
            config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.random.random
        )
        self._client = build_network_client(
            config,
            runtime,
            self.metadata,
            client_id=CLIENT_ID,
            max_in_flight=_MAX_IN_FLIGHT,
            log_context=log_context,
        )
        self._clock = runtime.clock
        self._request_timeout_ms = config.request_timeout_ms
        self._unsent: dict[int, deque[_Unsent]] = {}
        # Outcomes whose futures are not completed yet.
        self._completed: deque[tuple[_Unsent, ClientResponse | KafkaError]] = deque()
        self._wakeup_asked = False
        self._last_error: KafkaError | None = None
        self._on_response: Callable[[ClientResponse], None] | None = None
        self._in_waits: Callable[[float], float] = _nothing

    # --- requests

    def send(
        self, node: Node, builder: RequestBuilder, *, timeout_ms: float | None = None
    ) -> RequestFuture[ClientResponse]:
        """Queue a request; the next `poll` sends it.

        Args:
            node: Destination.
            builder: Builds the request in a version that the broker supports.
            timeout_ms: Request timeout, None for ``request.timeout.ms``.

        Returns:
            Future of the response; fails with `DisconnectedError`, `KafkaTimeoutError` and others.
        """
        timeout = self._request_timeout_ms if timeout_ms is None else timeout_ms
        unsent = _Unsent(node, builder, timeout, self._clock.monotonic_ms())
        self._unsent.setdefault(node.id, deque()).append(unsent)
        return unsent.future

    def least_loaded_node(self) -> Node | None:
        """Return the broker with the fewest requests in flight."""
        return self._client.least_loaded_node(self._clock.monotonic_ms())

    def has_pending(self, node: Node) -> bool:
        """Return whether requests to a broker are queued or in flight."""
        return bool(self._unsent.get(node.id)) or self._client.has_in_flight_requests(str(node.id))

    def is_unavailable(self, node: Node) -> bool:
        """Return whether a broker is in its reconnect backoff."""
        now_ms = self._clock.monotonic_ms()
        return (
            self._client.connection_failed(node)
            and self._client.connection_delay_ms(node, now_ms) > 0
        )

    def disconnect(self, node: Node) -> None:
        """Close the connection to a broker and fail its requests."""
        self._fail_unsent(node.id, DisconnectedError(f"connection to {node} was given up"))
        self._client.disconnect(str(node.id))

    # --- network

    def poll(self, timeout_ms: float, now_ms: float) -> None:
        """Send queued requests, wait for the network at most `timeout_ms`, complete futures.

        Does not wait if futures are to be completed. Raises fatal errors of the metadata.
        """
        if self._completed:  # received by the heartbeat task: the caller may wait for it
            timeout_ms = 0.0
            self._complete_futures()
        self._exchange(timeout_ms, now_ms)
        self._complete_futures()
        self.metadata.maybe_raise_any_error()

    def poll_membership(self, now_ms: float) -> bool:
        """Send and receive what is possible, complete the futures of membership requests only.

        The heartbeat task uses it: it may run while the application is in a callback or a
        deserializer, when positions and fetched data must not change.

        Returns:
            Whether a response was received: the next one may be in the socket.
        """
        has_received = self._exchange(0.0, now_ms)
        self._complete_membership_futures()
        self.metadata.maybe_raise_any_error()
        return has_received

    def _exchange(self, timeout_ms: float, now_ms: float) -> bool:
        """Send and receive once; return whether a request was completed."""
        wait_ms = self._transmit(now_ms)
        if self._completed or self._wakeup_asked:
            timeout_ms = 0.0
        timeout_ms = max(0.0, min(timeout_ms, wait_ms, MAX_POLL_TIMEOUT_MS))
        completed = self._client.poll(timeout_ms, now_ms)
        if self._unsent:
            now_ms = self._clock.monotonic_ms()
            self._fail_lost(now_ms)
            self._transmit(now_ms)
        return bool(completed)

    def wakeup(self) -> None:
        """Make the blocking call in progress, or the next one, raise `WakeupError`."""
        self._wakeup_asked = True
        self._client.wakeup()

    def maybe_raise_wakeup(self) -> None:
        """Raise `WakeupError` if `wakeup` was called since the last check."""
        if self._wakeup_asked:
            self._wakeup_asked = False
            raise WakeupError("wakeup() was called")

    def forget_wakeup(self) -> None:
        """Discard a wakeup."""
        self._wakeup_asked = False

    def on_response(self, callback: Callable[[ClientResponse], None]) -> None:
        """Register a callback that sees each response before its future completes."""
        self._on_response = callback

    # --- calls that wait

    def in_waits(self, step: Callable[[float], float]) -> None:
        """Register a step that the waits of calls other than `poll` run, as for heartbeats."""
        self._in_waits = step

    def wait_for(
        self,
        done: Callable[[], bool],
        step: Callable[[float], float],
        deadline_ms: float,
        what: str,
    ) -> Steps[None]:
        """Wait until `done()` is true.

        Args:
            done: Called before and after every wait.
            step: Called with the current time; returns the time until its next call.
            deadline_ms: Deadline.
            what: Subject of the error text.

        Raises:
            KafkaTimeoutError: The deadline passed; the text has the last errors of brokers.
            WakeupError: `Consumer.wakeup` was called.
        """
        last_look = False
        self.clear_last_error()
        while not done():
            now_ms = self._clock.monotonic_ms()
            wait_ms = min(step(now_ms), self._in_waits(now_ms))
            if done():
                return
            if last_look:
                raise self.timed_out(what)
            last_look = deadline_ms <= now_ms
            yield NetworkWait(self, min(now_ms + wait_ms, deadline_ms))
            self.maybe_raise_wakeup()

    def rest(self, until_ms: float, step: Callable[[float], float]) -> Steps[None]:
        """Run steps until a time.

        Raises:
            WakeupError: `Consumer.wakeup` was called.
        """
        while (now_ms := self._clock.monotonic_ms()) < until_ms:
            wait_ms = min(step(now_ms), self._in_waits(now_ms))
            yield NetworkWait(self, min(now_ms + wait_ms, until_ms))
            self.maybe_raise_wakeup()

    def flush(self) -> None:
        """Send queued requests as far as possible without waiting."""
        self.poll(0.0, self._clock.monotonic_ms())

    def timed_out(self, what: str) -> KafkaTimeoutError:
        """Return the timeout error of a call."""
        causes = self.known_errors()
        unreachable = causes != [] and all(isinstance(one, BootstrapError) for one in causes)
        kind = BootstrapError if unreachable else KafkaTimeoutError
        error = kind("; ".join([f"{what}: timed out", *map(str, causes)]))
        error.__cause__ = causes[0] if causes else None
        return error

    # --- errors

    def bootstrap_error(self) -> BootstrapError | None:
        """Return why no broker can be used, None if one may be usable."""
        return self._client.bootstrap_error()

    def record_error(self, error: KafkaError) -> None:
        """Keep the error of a retried request, for the call that may time out."""
        self._last_error = error

    def clear_last_error(self) -> None:
        """Clear the recorded error at the start of a call."""
        self._last_error = None

    def known_errors(self) -> list[KafkaError]:
        """Return the recorded error and the bootstrap error, as far as there are any."""
        known = (self._last_error, self.bootstrap_error())
        return [error for error in known if error is not None]

    def api_versions(self, node: Node) -> NodeApiVersions | None:
        """Return the API versions of a broker, None while it is not connected."""
        return self._client.api_versions_of(node)

    # --- closing

    def close(self) -> None:
        """Close every connection and discard all requests."""
        self._client.close()
        self._unsent.clear()
        self._completed.clear()

    # --- inside

    def _transmit(self, now_ms: float) -> float:
        """Send the requests whose broker is ready; return the longest time to wait."""
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

    def _complete_membership_futures(self) -> None:
        for entry in [entry for entry in self._completed if entry[0].is_of_membership()]:
            self._completed.remove(entry)
            self._complete(*entry)

    def _complete_futures(self) -> None:
        # Listeners of futures run outside the network client, so that they may send.
        while self._completed:
            self._complete(*self._completed.popleft())

    def _complete(self, unsent: _Unsent, outcome: ClientResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            unsent.future.fail(outcome)
        elif outcome.version_mismatch is not None:
            unsent.future.fail(outcome.version_mismatch)
        elif outcome.error is not None:
            self._last_error = outcome.error
            unsent.future.fail(outcome.error)
        elif outcome.was_disconnected:
            unsent.future.fail(DisconnectedError(f"{unsent.node} closed the connection"))
        else:
            if self._on_response is not None:
                self._on_response(outcome)
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
                self._completed.append((unsent, unsent.timed_out()))
            if not queue:
                del self._unsent[node_id]

    def _fail_unsent(self, node_id: int, error: "DisconnectedError") -> None:
        unsent = self._unsent.pop(node_id, ())
        self._completed.extend((request, error) for request in unsent)


def _nothing(_now_ms: float) -> float:
    return math.inf
