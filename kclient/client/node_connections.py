"""Connections of a client: connecting, writing requests, disconnecting."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kclient.client.api_versions import ApiVersions
from kclient.client.client_config import ClientConfig
from kclient.client.client_request import ClientRequest
from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.find_coordinator import broker_id
from kclient.client.in_flight_requests import InFlightRequest, InFlightRequests
from kclient.common.errors import (
    AuthenticationError,
    BootstrapError,
    CredentialsPendingError,
    DisconnectedError,
    KafkaError,
)
from kclient.common.log_context import LogContext
from kclient.common.runtime import Address, LookUp, Runtime
from kclient.common.types import Node
from kclient.network.network_send import NetworkSend
from kclient.network.sasl.credentials import CredentialsSource
from kclient.network.selector import Selector, format_address

SLOW_CONNECT_MS = 1000.0
"""Age of a connection attempt after which another node is tried in addition."""

Rank = tuple[int, float]
"""Rank of a node; the node with the lowest rank is chosen."""


class _Failure(NamedTuple):
    """Last failure of a node, and the number of failed attempts in a row.

    An attempt that waits for the credentials is not counted.
    """

    node: Node
    cause: KafkaError
    failures: int

    def attempts(self) -> str:
        """Return the number of attempts as text; empty for one."""
        return f" ({self.failures} attempts)" if self.failures > 1 else ""


class ConnectionFailures:
    """Last failure of each node that was not ready since.

    The network thread writes; other threads may call `as_error`.
    """

    def __init__(self) -> None:
        self._failures: dict[int, _Failure] = {}

    def failed(self, node: Node, cause: KafkaError) -> bool:
        """Record a failure: of the look-up, the connection, or the API versions request.

        Returns:
            Whether it differs from the last failure since the node was ready.
        """
        known = self._failures.get(node.id)
        if known is not None and known.node != node:
            known = None
        failures = 0 if known is None else known.failures
        if not isinstance(cause, CredentialsPendingError):
            failures += 1
        self._failures[node.id] = _Failure(node, cause, failures)
        return known is None or str(known.cause) != str(cause)

    def succeeded(self, node_id: int) -> int:
        """Discard the failures of a node that is ready; return their number."""
        failure = self._failures.pop(node_id, None)
        return 0 if failure is None else failure.failures

    def retain(self, node_ids: Iterable[int]) -> None:
        """Discard the failures of nodes that are no longer in the cluster."""
        kept = set(node_ids)
        for node_id in [known for known in self._failures if known not in kept]:
            del self._failures[node_id]

    def refusal_of_all(self, nodes: Iterable[Node]) -> AuthenticationError | None:
        """Return an error with the cause for each node, if all refused the authentication."""
        refusals: dict[str, AuthenticationError] = {}
        for node in nodes:
            failure = self._failures.get(node.id)
            if failure is None or not isinstance(failure.cause, AuthenticationError):
                return None
            refusals[_describe(node)] = failure.cause
        if not refusals:
            return None
        first = next(iter(refusals.values()))
        is_common = all(type(each) is type(first) for each in refusals.values())
        kind = type(first) if is_common else AuthenticationError
        causes = "; ".join(f"{address}: {cause}" for address, cause in refusals.items())
        what = "" if len(refusals) == 1 else "each address refused the authentication: "
        error = kind(f"{what}{causes}")
        error.__cause__ = first
        return error

    def as_error(self, pending: Mapping[Node, str]) -> BootstrapError | None:
        """Return an error with the cause for each address; None if there is none.

        May be called from any thread.

        Args:
            pending: Nodes with a connection attempt in progress, with its state.
        """
        failures = list(self._failures.values())
        failed = {failure.node for failure in failures}
        parts = [f"{_describe(each.node)}: {each.cause}{each.attempts()}" for each in failures]
        parts += [
            f"{_describe(node)}: {state}" for node, state in pending.items() if node not in failed
        ]
        if not parts:
            return None
        error = BootstrapError("no broker could be reached: " + "; ".join(parts))
        error.__cause__ = failures[0].cause if len(parts) == 1 and failures else None
        return error


def _describe(node: Node) -> str:
    address = format_address((node.host, node.port))
    return f"{address} (advertised by {name_of(node.id)})" if node.id >= 0 else address


def name_of(node_id: int) -> str:
    """Return the name of a node for messages, by its id."""
    if node_id < 0:
        return "bootstrap server"
    broker = broker_id(node_id)
    return f"broker {broker}" if broker == node_id else f"broker {broker} as coordinator"


class NodeConnections:
    """Keeps selector, connection states and requests in flight consistent.

    Attributes:
        look_ups: Name look-ups in progress, by node.
    """

    def __init__(
        self,
        selector: Selector,
        states: ClusterConnectionStates,
        in_flight: InFlightRequests,
        api_versions: ApiVersions,
        runtime: Runtime,
        config: ClientConfig,
        credentials: CredentialsSource | None,
        on_end: Callable[[], object],
        log_context: LogContext,
    ) -> None:
        """Create the connections.

        Args:
            selector: Channels of the connected nodes.
            states: Connection states.
            in_flight: Requests in flight.
            api_versions: API versions of the connected nodes.
            runtime: Network and random numbers.
            config: Client id, sizes of socket buffers.
            credentials: Credentials that a connection needs, if it does.
            on_end: Called at the end of each connection or attempt, since leaders may have moved.
            log_context: Prefix of the client's log lines.
        """
        self._log = log_context.logger(__name__)
        self._selector = selector
        self._states = states
        self._in_flight = in_flight
        self._api_versions = api_versions
        self._failures = ConnectionFailures()
        self._net = runtime.net
        self._uniform = runtime.random.random
        self._config = config
        self._credentials = credentials
        self._client_id = config.client_id or "kclient"
        self._on_end = on_end
        self._nodes: dict[str, Node] = {}  # with the address of the last attempt
        self._reached: set[str] = set()  # nodes that were ready at least once
        self.look_ups: dict[str, LookUp] = {}

    def describe(self, node_id: str) -> str:
        """Return a node's name and address, for messages."""
        node = self._nodes.get(node_id)
        if node is None:
            return f"node {node_id}"
        return f"{name_of(node.id)} at {format_address((node.host, node.port))}"

    def connect(self, node: Node, now_ms: float) -> None:
        """Start connecting to a node; an immediate failure is handled as any other.

        If the name must be looked up first, or credentials must be loaded, `finish_look_ups` opens
        the connection. The setup timeout covers all of it.
        """
        node_id = str(node.id)
        self._nodes[node_id] = node
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("connecting to %s", self.describe(node_id))
        state = self._states.connecting(node_id, now_ms, node.host, node.port)
        if self._credentials is not None:
            self._credentials.request(self._selector.wakeup)
        address = state.current_address()
        if address is not None and self._has_credentials():
            self._open(node_id, address, now_ms)
            return
        try:
            self.look_ups[node_id] = self._net.look_up(node.host, node.port, self._selector.wakeup)
        except OSError as error:
            self._connect_failed(node_id, f"could not look up {node.host}", error, now_ms)
            return
        self.finish_look_ups(now_ms)

    def finish_look_ups(self, now_ms: float) -> None:
        """Connect to the nodes whose look-up has ended."""
        for node_id, look_up in list(self.look_ups.items()):
            if look_up.done() and self._has_credentials():
                del self.look_ups[node_id]
                self._finish_look_up(node_id, look_up, now_ms)

    def describe_attempt(self, node_id: str) -> str:
        """Return what the present connection attempt waits for, for messages."""
        node = self._nodes.get(node_id)
        if node_id in self.look_ups and node is not None:
            looked_up = self.look_ups[node_id].done()
            return "get credentials" if looked_up else f"look up {node.host}"
        return "connect"

    def can_send(self, node_id: str, now_ms: float, *, internal: bool = False) -> bool:
        """Return whether a request may be written to a node now.

        ``max.in.flight.requests.per.connection`` does not apply to internal requests, so that
        METADATA requests are sent while the application's requests reach that limit.
        """
        return self._states.is_ready(node_id, now_ms) and self._in_flight.can_send_more(
            node_id, internal=internal
        )

    def least_loaded_node(
        self, nodes: Iterable[Node], now_ms: float, *, internal: bool = False
    ) -> Node | None:
        """Return the least loaded node (Kafka: NetworkClient.leastLoadedNode).

        The order is: ready nodes, those with the fewest requests in flight first; nodes that are
        being connected to; nodes that may be connected to, by the time of their last attempt; nodes
        whose connection attempt is slow.

        Args:
            nodes: Brokers to choose from.
            now_ms: Present time.
            internal: Whether it is for an internal request, which may exceed the limit in flight.

        Returns:
            The node; None if all are busy or backing off.
        """
        candidates = list(nodes)
        offset = int(self._uniform() * len(candidates))  # spreads the load
        best: Node | None = None
        best_rank: Rank | None = None
        for node in candidates[offset:] + candidates[:offset]:
            rank = self._rank(str(node.id), now_ms, internal=internal)
            if rank is not None and (best_rank is None or rank < best_rank):
                best, best_rank = node, rank
        return best

    def retain_failures(self, node_ids: Iterable[int]) -> None:
        """Discard the failures of nodes that are no longer in the cluster."""
        self._failures.retain(node_ids)

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Write a request in the highest version that both sides support.

        Raises:
            UnsupportedVersionError: There is none, or it lacks a field that the request needs.
            KafkaError: The message cannot be encoded.
        """
        builder = request.builder
        version = self._api_versions.latest_usable_version(
            request.destination,
            builder.api_key,
            builder.oldest_allowed_version,
            builder.latest_allowed_version,
        )
        self.write(request, version, now_ms)

    def write(self, request: ClientRequest, version: int, now_ms: float) -> None:
        """Write a request in a version and add it to the requests in flight.

        Raises:
            KafkaError: The request cannot be encoded in this version; nothing was written.
        """
        parts = request.builder.encode(version, request.correlation_id, self._client_id)
        send = NetworkSend(request.destination, parts, awaits_reply=request.expect_response)
        self._selector.send(send)
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug(
                "sending %s request v%d, correlation id %d, %d bytes, to %s",
                request.builder.api_key.name,
                version,
                request.correlation_id,
                send.size,
                self.describe(request.destination),
            )
        self._in_flight.add(InFlightRequest(request, version, send, now_ms))

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
        was_ready = self._states.is_ready(node_id, now_ms)
        self.look_ups.pop(node_id, None)
        self._selector.close_channel(node_id)
        self._api_versions.remove(node_id)
        self._states.disconnected(node_id, now_ms, reason)
        node = self._nodes.get(node_id)
        if node is not None and blame:
            first = self._failures.failed(node, reason)
            self._log.log(
                _failure_level(reason, first=first, was_ready=was_ready),
                "%s: %s",
                self.describe(node_id),
                reason,
            )
        self._on_end()
        return list(self._in_flight.clear_all(node_id))

    def ready(self, node_id: str) -> None:
        """Record that a node is ready for requests."""
        self._states.ready(node_id)
        attempts = self._failures.succeeded(int(node_id))
        name = self.describe(node_id)
        if attempts:
            self._log.info("connected to %s after %d failed attempts", name, attempts)
        else:
            # Brokers close idle connections: log only the first connection to each at INFO.
            level = logging.DEBUG if node_id in self._reached else logging.INFO
            self._log.log(level, "connected to %s", name)
        self._reached.add(node_id)

    def refusal_of_all(self, nodes: Iterable[Node]) -> AuthenticationError | None:
        """Return an error with the cause for each node, if all refused the authentication."""
        return self._failures.refusal_of_all(nodes)

    def bootstrap_error(self, now_ms: float) -> BootstrapError | None:
        """Return why no node is ready, for each address; None if there is no failure.

        May be called from any thread.
        """
        pending: dict[Node, str] = {}
        if not self._states.has_ready_nodes(now_ms):
            for node_id, node in list(self._nodes.items()):
                if node_id in self.look_ups:
                    pending[node] = f"the look-up of {node.host} has not ended"
                elif self._states.is_connecting(node_id):
                    pending[node] = "the connection is not established"
                elif self._states.is_established(node_id):
                    pending[node] = "connected, but the peer has sent no response"
        return self._failures.as_error(pending)

    def _finish_look_up(self, node_id: str, look_up: LookUp, now_ms: float) -> None:
        try:
            addresses = look_up.addresses()
        except OSError as error:
            what = f"could not look up {self._nodes[node_id].host}"
            self._connect_failed(node_id, what, error, now_ms)
            return
        self._open(node_id, self._states.set_addresses(node_id, addresses), now_ms)

    def _has_credentials(self) -> bool:
        """Return whether the credentials of a connection are there, or cannot be had."""
        return self._credentials is None or self._credentials.done()

    def _open(self, node_id: str, address: Address, now_ms: float) -> None:
        failure = None if self._credentials is None else self._credentials.failure()
        if failure is not None:
            reason = DisconnectedError(f"could not get credentials: {failure}")
            reason.__cause__ = failure
            self.end(node_id, now_ms, reason)
            return
        try:
            self._selector.connect(
                node_id,
                address,
                self._config.send_buffer_bytes,
                self._config.receive_buffer_bytes,
                host=self._nodes[node_id].host,
            )
        except OSError as error:
            self._connect_failed(node_id, "could not connect", error, now_ms)

    def _rank(self, node_id: str, now_ms: float, *, internal: bool) -> Rank | None:
        """Return the rank of a node; None if it cannot be used now."""
        if self.can_send(node_id, now_ms, internal=internal):
            return 0, self._in_flight.count(node_id)
        since_ms = self._states.preparing_since_ms(node_id)
        if since_ms is not None:
            return (1, 0.0) if now_ms - since_ms < SLOW_CONNECT_MS else (3, since_ms)
        if self._states.can_connect(node_id, now_ms):
            return 2, self._states.last_attempt_ms(node_id)
        return None

    def _connect_failed(self, node_id: str, what: str, error: OSError, now_ms: float) -> None:
        reason = DisconnectedError(f"{what}: {error.strerror or error}")
        reason.__cause__ = error
        self.end(node_id, now_ms, reason)


def _failure_level(reason: KafkaError, *, first: bool, was_ready: bool) -> int:
    # Brokers close idle connections: warn only of a connection that cannot be opened.
    if not first or was_ready or isinstance(reason, CredentialsPendingError):
        return logging.DEBUG
    # The calls that need the broker raise errors of authentication at once.
    return logging.INFO if isinstance(reason, AuthenticationError) else logging.WARNING
