"""Connection states of the nodes, with their addresses and back-offs."""

import enum
from collections.abc import Iterable

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Address


class ConnectionState(enum.Enum):
    """State of a connection (Kafka: ConnectionState)."""

    DISCONNECTED = enum.auto()
    CONNECTING = enum.auto()
    CHECKING_API_VERSIONS = enum.auto()
    READY = enum.auto()
    AUTHENTICATION_FAILED = enum.auto()


_LOST = frozenset({ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED})
_ESTABLISHED = frozenset({ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY})


class NodeConnectionState:
    """Connection state of one node (Kafka: ClusterConnectionStates.NodeConnectionState).

    Attributes:
        host: Host name of the addresses.
        port: Port.
        state: State of the connection.
        last_attempt_ms: Time of the last attempt or disconnection.
        failed_attempts: Connections in a row that ended before they were ready.
        failed_connects: Attempts in a row that did not connect.
        reconnect_backoff_ms: Wait after `last_attempt_ms`.
        setup_timeout_ms: Longest duration of the present attempt.
        throttled_until_ms: Time until which the broker throttles this client.
        addresses: Addresses of the host; empty before the look-up.
        next_address: Index of the address to try.
        error: Reason for the end of the last connection.
    """

    __slots__ = (
        "addresses",
        "error",
        "failed_attempts",
        "failed_connects",
        "host",
        "last_attempt_ms",
        "next_address",
        "port",
        "reconnect_backoff_ms",
        "setup_timeout_ms",
        "state",
        "throttled_until_ms",
    )

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.state = ConnectionState.DISCONNECTED
        self.last_attempt_ms = 0.0
        self.failed_attempts = 0
        self.failed_connects = 0
        self.reconnect_backoff_ms = 0.0
        self.setup_timeout_ms = 0.0
        self.throttled_until_ms = 0.0
        self.addresses: list[Address] = []
        self.next_address = 0
        self.error: KafkaError | None = None

    # Always compare with these sums: a difference may be rounded to the other side of a deadline.

    @property
    def connect_deadline_ms(self) -> float:
        """Time at which the present attempt times out."""
        return self.last_attempt_ms + self.setup_timeout_ms

    @property
    def next_attempt_ms(self) -> float:
        """Time of the next attempt after a disconnection."""
        return self.last_attempt_ms + self.reconnect_backoff_ms

    def set_addresses(self, addresses: list[Address]) -> None:
        """Set the addresses of the host; the first is tried first."""
        self.addresses = addresses
        self.next_address = 0

    def current_address(self) -> Address | None:
        """Return the address to try; None if the name must be looked up."""
        return self.addresses[self.next_address] if self.addresses else None

    def move_to_next_address(self) -> None:
        """Select the next address; after the last one the name is looked up again."""
        if self.addresses:
            self.next_address += 1
            if self.next_address == len(self.addresses):
                self.addresses = []


class ClusterConnectionStates:
    """Connection states of all nodes (Kafka: ClusterConnectionStates).

    The back-off of a node is reset only when a connection becomes *ready*, that is, when the broker
    has returned its API versions: a peer that accepts connections and closes them is backed off.

    Attributes:
        connecting_nodes: Nodes with a connection attempt in progress, with their states.
    """

    def __init__(self, reconnect: ExponentialBackoff, setup: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup = setup
        self._nodes: dict[str, NodeConnectionState] = {}
        self.connecting_nodes: dict[str, NodeConnectionState] = {}

    def can_connect(self, node_id: str, now_ms: float) -> bool:
        """Return whether there is no connection and the back-off has passed."""
        node = self._nodes.get(node_id)
        return node is None or (node.state in _LOST and now_ms >= node.next_attempt_ms)

    def connection_delay_ms(self, node_id: str, now_ms: float) -> float:
        """Return the wait until the connection state of the node should be checked again."""
        node = self._nodes.get(node_id)
        if node is None:
            return 0.0
        if node.state is ConnectionState.CONNECTING:
            return max(0.0, node.connect_deadline_ms - now_ms)
        if node.state in _LOST:
            return max(0.0, node.next_attempt_ms - now_ms)
        return float("inf")

    def connecting(self, node_id: str, now_ms: float, host: str, port: int) -> NodeConnectionState:
        """Record the start of an attempt; return the node's state, with the address to try."""
        node = self._nodes.get(node_id)
        if node is None or (node.host, node.port) != (host, port):
            # The failures were those of another address.
            node = self._nodes[node_id] = NodeConnectionState(host, port)
            node.setup_timeout_ms = self._setup.backoff(0)
        node.state = ConnectionState.CONNECTING
        node.last_attempt_ms = now_ms
        self.connecting_nodes[node_id] = node
        return node

    def set_addresses(self, node_id: str, addresses: list[Address]) -> Address:
        """Set the addresses of a node's host; return the one to try."""
        self._node(node_id).set_addresses(addresses)
        return addresses[0]

    def checking_api_versions(self, node_id: str) -> None:
        """Record that the node is connected and its API versions are requested."""
        node = self._node(node_id)
        node.state = ConnectionState.CHECKING_API_VERSIONS
        node.failed_connects = 0
        node.setup_timeout_ms = self._setup.backoff(0)
        self.connecting_nodes.pop(node_id, None)

    def ready(self, node_id: str) -> None:
        """Record that the node is ready for requests; resets its failures."""
        node = self._node(node_id)
        node.state = ConnectionState.READY
        node.error = None
        node.failed_attempts = node.failed_connects = 0
        node.reconnect_backoff_ms = 0.0
        self.connecting_nodes.pop(node_id, None)

    def disconnected(self, node_id: str, now_ms: float, error: KafkaError) -> None:
        """Record the end of a connection or of an attempt."""
        node = self._node(node_id)
        was_connecting = node.state is ConnectionState.CONNECTING
        self.connecting_nodes.pop(node_id, None)
        node.state = ConnectionState.DISCONNECTED
        node.error = error
        node.last_attempt_ms = now_ms
        node.reconnect_backoff_ms = self._reconnect.backoff(node.failed_attempts)
        node.failed_attempts += 1
        if was_connecting:
            node.failed_connects += 1
            node.setup_timeout_ms = self._setup.backoff(node.failed_connects)
            node.move_to_next_address()
        else:
            # It was connected before; the name may resolve to another machine by now.
            node.addresses = []

    def authentication_failed(self, node_id: str, now_ms: float, error: KafkaError) -> None:
        """Record that the authentication failed."""
        self.disconnected(node_id, now_ms, error)
        self._node(node_id).state = ConnectionState.AUTHENTICATION_FAILED

    def throttle(self, node_id: str, until_ms: float) -> None:
        """Record until when the broker throttles this client."""
        node = self._node(node_id)
        node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    def poll_delay_ms(self, node_id: str, now_ms: float) -> float:
        """Return the wait until the next attempt to send to the node."""
        node = self._nodes.get(node_id)
        if node is not None and node.throttled_until_ms > now_ms:
            return node.throttled_until_ms - now_ms
        return self.connection_delay_ms(node_id, now_ms)

    def is_ready(self, node_id: str, now_ms: float) -> bool:
        """Return whether the node is ready for requests and not throttled."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state is ConnectionState.READY
            and node.throttled_until_ms <= now_ms
        )

    def was_ready(self, node_id: str) -> bool:
        """Return whether the node is ready, throttled or not."""
        node = self._nodes.get(node_id)
        return node is not None and node.state is ConnectionState.READY

    def has_ready_nodes(self, now_ms: float) -> bool:
        """Return whether any node is ready."""
        return any(self.is_ready(node_id, now_ms) for node_id in list(self._nodes))

    def is_connecting(self, node_id: str) -> bool:
        """Return whether an attempt is in progress."""
        return node_id in self.connecting_nodes

    def is_established(self, node_id: str) -> bool:
        """Return whether the node is connected: ready, or checking API versions."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _ESTABLISHED

    def is_disconnected(self, node_id: str) -> bool:
        """Return whether the last connection ended; False for a node never connected to."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _LOST

    def preparing_since_ms(self, node_id: str) -> float | None:
        """Return the start of a connection attempt that is not ready yet; None if there is none."""
        node = self._nodes.get(node_id)
        if node is None or node.state in _LOST or node.state is ConnectionState.READY:
            return None
        return node.last_attempt_ms

    def last_attempt_ms(self, node_id: str) -> float:
        """Return the time of the last attempt; 0 if there was none."""
        node = self._nodes.get(node_id)
        return node.last_attempt_ms if node is not None else 0.0

    def error(self, node_id: str) -> KafkaError | None:
        """Return the error that ended the node's last connection; None if it is ready again."""
        node = self._nodes.get(node_id)
        return node.error if node is not None else None

    def overdue_connects(self, now_ms: float) -> list[str]:
        """Return the nodes whose connection attempt has timed out."""
        return [
            node_id
            for node_id, node in self.connecting_nodes.items()
            if now_ms >= node.connect_deadline_ms
        ]

    def next_connect_deadline_ms(self) -> float:
        """Return the earliest deadline of the present attempts."""
        return min(
            (node.connect_deadline_ms for node in self.connecting_nodes.values()),
            default=float("inf"),
        )

    def established(self) -> Iterable[str]:
        """Return the nodes that are connected or connecting."""
        return [node_id for node_id, node in self._nodes.items() if node.state not in _LOST]

    def remove(self, node_id: str) -> None:
        """Remove a node and its back-off."""
        self._nodes.pop(node_id, None)
        self.connecting_nodes.pop(node_id, None)

    def _node(self, node_id: str) -> NodeConnectionState:
        node = self._nodes.get(node_id)
        if node is None:
            raise IllegalStateError(f"node {node_id}: no connection was ever opened to it")
        return node
