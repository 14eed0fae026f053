"""How each connection fares: its state, its addresses, its back-offs."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Address


class ConnectionState(enum.Enum):
    """Where a connection stands (Kafka: ConnectionState)."""

    DISCONNECTED = enum.auto()
    CONNECTING = enum.auto()
    CHECKING_API_VERSIONS = enum.auto()
    READY = enum.auto()
    AUTHENTICATION_FAILED = enum.auto()


_LOST = frozenset({ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED})
_ESTABLISHED = frozenset({ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY})


@dataclass(slots=True)
class NodeConnectionState:
    """One node's connection.

    Attributes:
        host: Name the addresses were looked up for.
        port: Port.
        state: Where the connection stands.
        last_attempt_ms: When it was last opened or lost.
        failed_attempts: Connections lost in a row before one became ready.
        failed_connects: Attempts in a row that did not even connect.
        reconnect_backoff_ms: Wait after `last_attempt_ms`.
        setup_timeout_ms: How long the present attempt may take.
        throttled_until_ms: When the broker wants to hear from this client again.
        addresses: What the name stands for; empty until looked up.
        next_address: Index of the address to try.
        error: What ended the last connection.
    """

    host: str
    port: int
    state: ConnectionState = ConnectionState.DISCONNECTED
    last_attempt_ms: float = 0.0
    failed_attempts: int = 0
    failed_connects: int = 0
    reconnect_backoff_ms: float = 0.0
    setup_timeout_ms: float = 0.0
    throttled_until_ms: float = 0.0
    addresses: list[Address] = field(default_factory=list)
    next_address: int = 0
    error: KafkaError | None = None

    # Sums, wherever they are needed: a difference may round to the other side of the same time.

    @property
    def connect_deadline_ms(self) -> float:
        """When the present attempt has taken too long."""
        return self.last_attempt_ms + self.setup_timeout_ms

    @property
    def next_attempt_ms(self) -> float:
        """When a lost connection may be tried again."""
        return self.last_attempt_ms + self.reconnect_backoff_ms

    def looked_up(self, addresses: list[Address]) -> None:
        """Take the addresses of the name; the first is tried first."""
        self.addresses = addresses
        self.next_address = 0

    def current_address(self) -> Address | None:
        """Return the address to try; None where the name must be looked up."""
        return self.addresses[self.next_address] if self.addresses else None

    def move_to_next_address(self) -> None:
        """Turn to the next address; after the last one, look the name up again."""
        if self.addresses:
            self.next_address += 1
            if self.next_address == len(self.addresses):
                self.addresses = []


class ClusterConnectionStates:
    """The connections to all nodes (Kafka: ClusterConnectionStates).

    The back-off of a node starts over only when a connection became *ready*, that is, once the
    broker has told its versions: a peer that accepts and hangs up is not hammered.
    """

    def __init__(self, reconnect: ExponentialBackoff, setup: ExponentialBackoff) -> None:
        self._reconnect = reconnect
        self._setup = setup
        self._nodes: dict[str, NodeConnectionState] = {}
        self._connecting: dict[str, NodeConnectionState] = {}

    def can_connect(self, node_id: str, now_ms: float) -> bool:
        """Return whether there is no connection and the back-off is over."""
        node = self._nodes.get(node_id)
        return node is None or (node.state in _LOST and now_ms >= node.next_attempt_ms)

    def connection_delay_ms(self, node_id: str, now_ms: float) -> float:
        """Return how long to wait before asking again whether the node can be reached."""
        node = self._nodes.get(node_id)
        if node is None:
            return 0.0
        if node.state is ConnectionState.CONNECTING:
            return max(0.0, node.connect_deadline_ms - now_ms)
        if node.state in _LOST:
            return max(0.0, node.next_attempt_ms - now_ms)
        return float("inf")

    def connecting(self, node_id: str, now_ms: float, host: str, port: int) -> NodeConnectionState:
        """Note the start of an attempt; return the node's state to take the address from."""
        node = self._nodes.get(node_id)
        if node is None or (node.host, node.port) != (host, port):
            # A node that moved to another address has not failed there yet.
            node = self._nodes[node_id] = NodeConnectionState(host, port)
            node.setup_timeout_ms = self._setup.backoff(0)
        node.state = ConnectionState.CONNECTING
        node.last_attempt_ms = now_ms
        self._connecting[node_id] = node
        return node

    def looked_up(self, node_id: str, addresses: list[Address]) -> Address:
        """Take the addresses of a node's name; return the one to try."""
        self._node(node_id).looked_up(addresses)
        return addresses[0]

    def checking_api_versions(self, node_id: str) -> None:
        """Note that the connection stands and the versions are being asked for."""
        node = self._node(node_id)
        node.state = ConnectionState.CHECKING_API_VERSIONS
        node.failed_connects = 0
        node.setup_timeout_ms = self._setup.backoff(0)
        self._connecting.pop(node_id, None)

    def ready(self, node_id: str) -> None:
        """Note that requests may flow; failures of the past are forgotten."""
        node = self._node(node_id)
        node.state = ConnectionState.READY
        node.error = None
        node.failed_attempts = node.failed_connects = 0
        node.reconnect_backoff_ms = 0.0
        self._connecting.pop(node_id, None)

    def disconnected(self, node_id: str, now_ms: float, error: KafkaError) -> None:
        """Note the end of a connection or of an attempt."""
        node = self._node(node_id)
        was_connecting = node.state is ConnectionState.CONNECTING
        self._connecting.pop(node_id, None)
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
            # It once answered there; the name may mean another machine by now.
            node.addresses = []

    def authentication_failed(self, node_id: str, now_ms: float, error: KafkaError) -> None:
        """Note that the broker or this client refused the other's proof."""
        self.disconnected(node_id, now_ms, error)
        self._node(node_id).state = ConnectionState.AUTHENTICATION_FAILED

    def throttle(self, node_id: str, until_ms: float) -> None:
        """Note until when the broker wants no requests."""
        node = self._node(node_id)
        node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    def poll_delay_ms(self, node_id: str, now_ms: float) -> float:
        """Return how long to wait before trying to send to the node again."""
        node = self._nodes.get(node_id)
        if node is not None and node.throttled_until_ms > now_ms:
            return node.throttled_until_ms - now_ms
        return self.connection_delay_ms(node_id, now_ms)

    def is_ready(self, node_id: str, now_ms: float) -> bool:
        """Return whether requests may flow now."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state is ConnectionState.READY
            and node.throttled_until_ms <= now_ms
        )

    def was_ready(self, node_id: str) -> bool:
        """Return whether requests could flow, throttled or not, before the next change is noted."""
        node = self._nodes.get(node_id)
        return node is not None and node.state is ConnectionState.READY

    def has_ready_nodes(self, now_ms: float) -> bool:
        """Return whether requests may flow to any node."""
        return any(self.is_ready(node_id, now_ms) for node_id in list(self._nodes))

    def is_connecting(self, node_id: str) -> bool:
        """Return whether an attempt is under way."""
        return node_id in self._connecting

    def is_established(self, node_id: str) -> bool:
        """Return whether the connection stands, ready or about to be."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _ESTABLISHED

    def is_disconnected(self, node_id: str) -> bool:
        """Return whether the connection was lost; a node never tried is not."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _LOST

    def preparing_since_ms(self, node_id: str) -> float | None:
        """Return since when the node is being connected to, if it is and is not ready yet."""
        node = self._nodes.get(node_id)
        if node is None or node.state in _LOST or node.state is ConnectionState.READY:
            return None
        return node.last_attempt_ms

    def last_attempt_ms(self, node_id: str) -> float:
        """Return when the node was last tried; 0 if never."""
        node = self._nodes.get(node_id)
        return node.last_attempt_ms if node is not None else 0.0

    def error(self, node_id: str) -> KafkaError | None:
        """Return what ended the node's last connection, unless it is ready again."""
        node = self._nodes.get(node_id)
        return node.error if node is not None else None

    def overdue_connects(self, now_ms: float) -> list[str]:
        """Return the nodes whose attempt takes longer than it may."""
        return [
            node_id
            for node_id, node in self._connecting.items()
            if now_ms >= node.connect_deadline_ms
        ]

    def next_connect_deadline_ms(self) -> float:
        """Return when the first of the present attempts has taken too long."""
        return min(
            (node.connect_deadline_ms for node in self._connecting.values()),
            default=float("inf"),
        )

    def established(self) -> Iterable[str]:
        """Return the nodes whose connection stands or is being opened."""
        return [node_id for node_id, node in self._nodes.items() if node.state not in _LOST]

    def remove(self, node_id: str) -> None:
        """Forget a node and its back-off."""
        self._nodes.pop(node_id, None)
        self._connecting.pop(node_id, None)

    def _node(self, node_id: str) -> NodeConnectionState:
        node = self._nodes.get(node_id)
        if node is None:
            raise IllegalStateError(f"node {node_id}: it was never connected to")
        return node
