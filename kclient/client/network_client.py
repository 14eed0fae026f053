"""Network client: sends requests to brokers and returns their responses, in one thread."""

from collections.abc import Callable

from kclient.client.api_versions import ApiVersions, NodeApiVersions
from kclient.client.api_versions_negotiator import ApiVersionsNegotiator
from kclient.client.client_config import ClientConfig
from kclient.client.client_request import (
    ClientRequest,
    ClientResponse,
    CorrelationIds,
    RequestBuilder,
    ResponseCallback,
)
from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.in_flight_requests import InFlightRequests
from kclient.client.manual_metadata_updater import ManualMetadataUpdater
from kclient.client.metadata import Metadata
from kclient.client.metadata_updater import MetadataUpdater
from kclient.client.node_connections import NodeConnections
from kclient.client.response_collector import ResponseCollector
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    DisconnectedError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaError,
)
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.network.sasl.credentials import CredentialsSource
from kclient.network.selector import Selector


class NetworkClient:
    """Requests and responses of a producer, consumer or admin client (Kafka: NetworkClient).

    Input and output happen in `poll`, in the calling thread; only `wakeup` and `initiate_close` may
    be called from another. A destination is a node id as str; a `Node` is passed where the address
    is needed.

    Attributes:
        api_versions: API versions of each connected node.
        wakeup: Makes the present or the next `poll` return at once; callable from any thread.
    """

    def __init__(
        self,
        selector: Selector,
        metadata: Metadata | None,
        runtime: Runtime,
        config: ClientConfig,
        max_in_flight: int = 5,
        api_versions: ApiVersions | None = None,
        log_context: LogContext = NO_LOG_CONTEXT,
        credentials: CredentialsSource | None = None,
    ) -> None:
        """Create a client; without metadata, callers pass the address of each node they use."""
        self._log = log_context.logger(__name__)
        self.api_versions = api_versions if api_versions is not None else ApiVersions()
        self._selector = selector
        self._clock = runtime.clock
        self._config = config
        self.wakeup = selector.wakeup
        self._correlation_ids = CorrelationIds()
        self._states = _connection_states(config, runtime)
        self._in_flight = InFlightRequests(max_in_flight)
        self._connections = NodeConnections(
            selector,
            self._states,
            self._in_flight,
            self.api_versions,
            runtime,
            config,
            credentials,
            _nothing if metadata is None else metadata.request_update,
            log_context,
        )
        self._metadata_updater = self._new_metadata_updater(metadata, log_context)
        self._collector = ResponseCollector(
            selector,
            self._states,
            self._in_flight,
            self._connections,
            ApiVersionsNegotiator(
                selector,
                self._states,
                self.api_versions,
                self._connections,
                self._correlation_ids,
                config.request_timeout_ms,
                _expected_cluster(metadata, config),
            ),
            self._metadata_updater,
            log_context,
        )
        self._active = True
        self._metadata_queued = False  # a METADATA request was queued at the end of the last poll

    def _new_metadata_updater(
        self, metadata: Metadata | None, log_context: LogContext
    ) -> MetadataUpdater | ManualMetadataUpdater:
        if metadata is None:
            return ManualMetadataUpdater()
        connections, states, ids = self._connections, self._states, self._correlation_ids
        return MetadataUpdater(metadata, connections, states, ids, self._config, log_context)

    # --- nodes

    def ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request may be sent to a node now; connect to it if necessary.

        Raises:
            InvalidArgumentError: The node has no address, as of a broker that is down.
        """
        if not node.host or node.port < 0:
            raise InvalidArgumentError(f"node: got {node}, expected one with an address")
        node_id = str(node.id)
        if self._connections.can_send(node_id, now_ms):
            return True
        if self._states.can_connect(node_id, now_ms):
            self._connections.connect(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request may be sent to a node now.

        Unlike Kafka's client, this one sends requests while a metadata update is due: METADATA
        requests do not count in ``max.in.flight.requests.per.connection`` and are queued before
        the caller's next request.
        """
        return self._connections.can_send(str(node.id), now_ms)

    def has_ready_nodes(self, now_ms: float) -> bool:
        """Return whether any node is ready."""
        return self._states.has_ready_nodes(now_ms)

    def connection_delay_ms(self, node: Node, now_ms: float) -> float:
        """Return the wait until the next connection attempt; infinity while connected."""
        return self._states.connection_delay_ms(str(node.id), now_ms)

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        """Return the wait until the next attempt to send, including the broker's throttle time."""
        return self._states.poll_delay_ms(str(node.id), now_ms)

    def connection_failed(self, node: Node) -> bool:
        """Return whether the connection was lost, or could not be opened."""
        return self._states.is_disconnected(str(node.id))

    def connection_error(self, node: Node) -> DisconnectedError | None:
        """Return the error that ended a node's last connection; None if it is ready again."""
        node_id = str(node.id)
        reason = self._states.error(node_id)
        if reason is None:
            return None
        error = DisconnectedError(f"{self._connections.describe(node_id)}: {reason}")
        error.__cause__ = reason
        return error

    def api_versions_of(self, node: Node) -> NodeApiVersions | None:
        """Return the API versions of a broker, None while it is not connected."""
        return self.api_versions.get(str(node.id))

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """Return the broker for a request that any broker can serve; None if all are busy.

        It may not be connected yet: see `ready`.
        """
        return self._metadata_updater.least_loaded_node(now_ms)

    def disconnect(self, node_id: str) -> None:
        """Close the connection to a node; its requests fail in the next `poll`."""
        if self._states.is_connecting(node_id) or self._states.is_established(node_id):
            reason = DisconnectedError("this client closed the connection")
            now_ms = self._clock.monotonic_ms()
            self._collector.end_connection(node_id, now_ms, reason, blame=False)

    def bootstrap_error(self) -> BootstrapError | None:
        """Return why no broker is usable: the cause for each address that was not reached.

        If all were reached, the error has the failure of the last METADATA request. Returns None if
        there is no failure. Callers raise it when their deadline passes. May be called from any
        thread.
        """
        unreached = self._connections.bootstrap_error(self._clock.monotonic_ms())
        last_error = self._metadata_updater.last_error()
        if unreached is not None or last_error is None:
            return unreached
        error = BootstrapError(f"metadata could not be fetched: {last_error}")
        error.__cause__ = last_error
        return error

    # --- requests

    def new_client_request(
        self,
        node_id: str,
        builder: RequestBuilder,
        now_ms: float,
        *,
        expect_response: bool = True,
        request_timeout_ms: float | None = None,
        callback: ResponseCallback | None = None,
    ) -> ClientRequest:
        """Return a request with a correlation id, for `send`."""
        if request_timeout_ms is None:
            request_timeout_ms = self._config.request_timeout_ms
        return ClientRequest(
            node_id,
            builder,
            self._correlation_ids.take(),
            now_ms,
            expect_response,
            request_timeout_ms,
            callback,
        )

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Queue a request to a node that is ready; `write_ahead` or the next `poll` writes it.

        A request without a usable API version fails in the next `poll`.

        Raises:
            IllegalStateError: The node is not ready.
            ClosedError: The client was closed.
        """
        if not self._active:
            raise _closed()
        if not self._states.is_ready(request.destination, now_ms):
            raise IllegalStateError(f"node {request.destination}: not ready for a request")
        try:
            self._connections.send(request, now_ms)
        except KafkaError as error:
            self._collector.not_sent(request, error, now_ms)

    def write_ahead(self, now_ms: float) -> None:
        """Write the queued requests, for brokers to work on them while the caller prepares `poll`.

        The next `poll` writes what the sockets did not take, and has all results.
        """
        self._selector.write_ahead(now_ms)

    def in_flight_request_count(self, node_id: str | None = None) -> int:
        """Return the number of requests in flight, of one node or of all."""
        return self._in_flight.count(node_id)

    def has_in_flight_requests(self, node_id: str | None = None) -> bool:
        """Return whether a request is in flight, to one node or to any."""
        return self._in_flight.count(node_id) > 0

    def poll(self, timeout_ms: float, now_ms: float) -> list[ClientResponse]:
        """Do input and output, complete requests and call their callbacks.

        Args:
            timeout_ms: Longest wait for input or output.
            now_ms: Present time.

        Returns:
            The completed responses, in order for each node, also those passed to callbacks.

        Raises:
            ClosedError: The client was closed.
        """
        if not self._active:
            raise _closed()
        if not self._collector.responses:
            metadata_ms = self._metadata_updater.maybe_update(now_ms)
            if self._metadata_queued:
                timeout_ms = 0.0  # the caller may have found the channel busy: it can retry now
            wait_ms = self._wait_ms(min(timeout_ms, metadata_ms), now_ms)
            now_ms = self._selector.poll(wait_ms, now_ms)
            if self._connections.look_ups:
                self._connections.finish_look_ups(now_ms)
            self._collector.collect(now_ms)
            if now_ms > self._metadata_updater.rebootstrap_at_ms:
                self._rebootstrap(now_ms)
            # Before the caller's next request occupies the channel.
            self._metadata_queued = self._metadata_updater.maybe_send(now_ms)
        return self._complete_responses()

    # --- lifecycle

    def active(self) -> bool:
        """Return whether the client is open."""
        return self._active

    def initiate_close(self) -> None:
        """Refuse further calls and end a `poll` in progress; callable from any thread."""
        self._active = False
        self.wakeup()

    def close(self) -> None:
        """Close all connections and discard the requests in flight; idempotent."""
        self._active = False
        self._selector.close()
        self._in_flight.clear()

    def _wait_ms(self, timeout_ms: float, now_ms: float) -> float:
        if self._collector.responses:
            return 0.0
        next_deadline_ms = self._in_flight.next_deadline_ms
        if self._states.connecting_nodes:
            next_deadline_ms = min(next_deadline_ms, self._states.next_connect_deadline_ms())
        return max(0.0, min(timeout_ms, next_deadline_ms - now_ms))

    def _rebootstrap(self, now_ms: float) -> None:
        self._log.info("no known broker is usable; rebootstrapping")
        reason = DisconnectedError("this client rebootstraps")
        for node_id in self._states.established():
            self._collector.end_connection(node_id, now_ms, reason, blame=False)
        self._metadata_updater.rebootstrap(now_ms)

    def _complete_responses(self) -> list[ClientResponse]:
        """Call the callbacks."""
        completed = []
        responses = self._collector.responses
        while responses:
            response = responses.popleft()
            completed.append(response)
            if response.callback is not None:
                try:
                    response.callback(response)
                except Exception:  # noqa: BLE001 (the other callbacks must be called as well)
                    self._log.exception(
                        "the callback of a %s request failed", response.api_key.name
                    )
        return completed


def _nothing() -> None:
    return


def _expected_cluster(metadata: Metadata | None, config: ClientConfig) -> Callable[[], str | None]:
    """Return a function that returns the id of the cluster to which all brokers must belong."""
    if metadata is None or not config.checks_cluster:
        return lambda: None
    return lambda: metadata.cluster().cluster_id


def _closed() -> ClosedError:
    return ClosedError("the network client was closed")


def _connection_states(config: ClientConfig, runtime: Runtime) -> ClusterConnectionStates:
    uniform = runtime.random.random
    return ClusterConnectionStates(
        ExponentialBackoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, uniform),
        ExponentialBackoff(
            config.socket_connection_setup_timeout_ms,
            config.socket_connection_setup_timeout_max_ms,
            uniform,
        ),
    )
