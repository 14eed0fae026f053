"""Connections of a client: connecting, writing requests, disconnecting."""

import logging
from collections.abc import Callable

from kclient.client.api_versions import ApiVersions
from kclient.client.client_request import ClientRequest
from kclient.client.client_settings import ClientSettings
from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.connection_failures import ConnectionFailures, format_address, name_of
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.in_flight_requests import InFlightRequest, InFlightRequests
from kclient.common.errors import BootstrapError, DisconnectedError, KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Address, LookUp, Runtime
from kclient.common.types import Node
from kclient.network.network_send import NetworkSend
from kclient.network.selector import Selector
from kclient.protocol.headers import encode_request


class NodeConnections:
    """Keeps selector, connection states and requests in flight consistent.

    Attributes:
        selector: Channels of the connected nodes.
        states: Connection states.
        in_flight: Requests in flight.
        api_versions: API versions of each connected node.
        failures: Last failure of each node that is not connected.
    """

    def __init__(
        self,
        selector: Selector,
        runtime: Runtime,
        settings: ClientSettings,
        api_versions: ApiVersions,
        on_end: Callable[[], object],
        log_context: LogContext,
    ) -> None:
        """Create the connections.

        Args:
            selector: Channels of the connected nodes.
            runtime: Network and random numbers.
            settings: Back-offs, timeouts, limits.
            api_versions: Updated with each connection.
            on_end: Called at the end of each connection or attempt, since leaders may have moved.
            log_context: Prefix of the client's log lines.
        """
        self._log = log_context.logger(__name__)
        uniform = runtime.random.random
        self.selector = selector
        self.states = ClusterConnectionStates(
            ExponentialBackoff(
                settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, uniform
            ),
            ExponentialBackoff(settings.setup_timeout_ms, settings.setup_timeout_max_ms, uniform),
        )
        self.in_flight = InFlightRequests(settings.max_in_flight)
        self.api_versions = api_versions
        self.failures = ConnectionFailures()
        self._net = runtime.net
        self._settings = settings
        self._on_end = on_end
        self._nodes: dict[str, Node] = {}  # with the address of the last attempt
        self._reached: set[str] = set()  # nodes that were ready at least once
        self._look_ups: dict[str, LookUp] = {}  # in progress, by node

    def node(self, node_id: str) -> Node | None:
        """Return a node with the address of the last connection attempt."""
        return self._nodes.get(node_id)

    def describe(self, node_id: str) -> str:
        """Return a node's name and address, for messages."""
        node = self._nodes.get(node_id)
        if node is None:
            return f"node {node_id}"
        return f"{name_of(node.id)} at {format_address(node)}"

    def connect(self, node: Node, now_ms: float) -> None:
        """Start connecting to a node; an immediate failure is handled as any other.

        If the name must be looked up first, `finish_look_ups` opens the connection. The setup
        timeout covers both.
        """
        node_id = str(node.id)
        self._nodes[node_id] = node
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("connecting to %s", self.describe(node_id))
        state = self.states.connecting(node_id, now_ms, node.host, node.port)
        address = state.current_address()
        if address is not None:
            self._open(node_id, address, now_ms)
            return
        try:
            self._look_ups[node_id] = self._net.look_up(node.host, node.port, self.selector.wakeup)
        except OSError as error:
            self._connect_failed(node_id, f"could not look up {node.host}", error, now_ms)
            return
        self.finish_look_ups(now_ms)

    def finish_look_ups(self, now_ms: float) -> None:
        """Connect to the nodes whose look-up has ended."""
        for node_id, look_up in list(self._look_ups.items()):
            if look_up.done():
                del self._look_ups[node_id]
                self._finish_look_up(node_id, look_up, now_ms)

    def describe_attempt(self, node_id: str) -> str:
        """Return what the present connection attempt waits for, for messages."""
        node = self._nodes.get(node_id)
        if node_id in self._look_ups and node is not None:
            return f"look up {node.host}"
        return "connect"

    def can_send(self, node_id: str, now_ms: float) -> bool:
        """Return whether a request may be written to a node now."""
        return self._is_ready(node_id, now_ms) and self.in_flight.can_send_more(node_id)

    def can_send_internal(self, node_id: str, now_ms: float) -> bool:
        """Return whether an internal request may be written to a node now.

        ``max.in.flight.requests.per.connection`` does not apply, so that METADATA requests are sent
        while the application's requests reach that limit.
        """
        return self._is_ready(node_id, now_ms) and self.in_flight.can_send_internal(node_id)

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Write a request in the highest version that both sides support.

        Raises:
            UnsupportedVersionError: There is none, or it lacks a field that the request needs.
            KafkaError: The message cannot be encoded.
        """
        builder = request.builder
        version = builder.latest_allowed_version
        offered = self.api_versions.get(request.destination)
        if offered is not None:
            version = offered.latest_usable_version(
                builder.api_key, builder.oldest_allowed_version, version
            )
        self.write(request, version, now_ms)

    def write(self, request: ClientRequest, version: int, now_ms: float) -> None:
        """Write a request in a version and add it to the requests in flight.

        Raises:
            KafkaError: The request cannot be encoded in this version; nothing was written.
        """
        message = request.builder.build(version)
        parts = encode_request(message, version, request.correlation_id, self._settings.client_id)
        send = NetworkSend(request.destination, parts, awaits_reply=request.expect_response)
        self.selector.send(send)
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug(
                "sending %s request v%d, correlation id %d, %d bytes, to %s",
                message.api_key.name,
                version,
                request.correlation_id,
                send.size,
                self.describe(request.destination),
            )
        self.in_flight.add(InFlightRequest(request, message, version, send, now_ms))

    def end(
        self, node_id: str, now_ms: float, reason: KafkaError, *, blame: bool = True
    ) -> list[InFlightRequest]:
        """Close a connection, or record its end.

        Args:
            node_id: Node.
            now_ms: Present time.
            reason: Why the connection ended or is closed.
            blame: Whether this counts as a failure of the node; not if this client closes it.

        Returns:
            The requests that were in flight, the oldest first.
        """
        was_ready = self.states.is_ready(node_id, now_ms)
        self._look_ups.pop(node_id, None)
        self.selector.close_channel(node_id)
        self.api_versions.remove(node_id)
        self.states.disconnected(node_id, now_ms, reason)
        node = self._nodes.get(node_id)
        if node is not None and blame:
            first = self.failures.failed(node, reason)
            # Brokers close idle connections: warn only of a connection that cannot be opened.
            level = logging.WARNING if first and not was_ready else logging.DEBUG
            self._log.log(level, "%s: %s", self.describe(node_id), reason)
        self._on_end()
        return list(self.in_flight.clear_all(node_id))

    def ready(self, node_id: str) -> None:
        """Record that a node is ready for requests."""
        self.states.ready(node_id)
        attempts = self.failures.succeeded(int(node_id))
        name = self.describe(node_id)
        if attempts:
            self._log.info("connected to %s after %d failed attempts", name, attempts)
        else:
            # Brokers close idle connections: log only the first connection to each at INFO.
            level = logging.DEBUG if node_id in self._reached else logging.INFO
            self._log.log(level, "connected to %s", name)
        self._reached.add(node_id)

    def bootstrap_error(self, now_ms: float) -> BootstrapError | None:
        """Return why no node is ready, for each address; None if there is no failure.

        May be called from any thread.
        """
        pending: dict[Node, str] = {}
        if not self.states.has_ready_nodes(now_ms):
            for node_id, node in list(self._nodes.items()):
                if node_id in self._look_ups:
                    pending[node] = f"the look-up of {node.host} has not ended"
                elif self.states.is_connecting(node_id):
                    pending[node] = "the connection is not established"
                elif self.states.is_established(node_id):
                    pending[node] = "connected, but the peer has sent no response"
        return self.failures.as_error(pending)

    def _finish_look_up(self, node_id: str, look_up: LookUp, now_ms: float) -> None:
        try:
            addresses = look_up.addresses()
        except OSError as error:
            what = f"could not look up {self._nodes[node_id].host}"
            self._connect_failed(node_id, what, error, now_ms)
            return
        self._open(node_id, self.states.set_addresses(node_id, addresses), now_ms)

    def _open(self, node_id: str, address: Address, now_ms: float) -> None:
        try:
            self.selector.connect(
                node_id, address, self._settings.send_buffer, self._settings.receive_buffer
            )
        except OSError as error:
            self._connect_failed(node_id, "could not connect", error, now_ms)

    def _is_ready(self, node_id: str, now_ms: float) -> bool:
        return self.states.is_ready(node_id, now_ms) and self.selector.is_channel_ready(node_id)

    def _connect_failed(self, node_id: str, what: str, error: OSError, now_ms: float) -> None:
        reason = DisconnectedError(f"{what}: {error.strerror or error}")
        reason.__cause__ = error
        self.end(node_id, now_ms, reason)
