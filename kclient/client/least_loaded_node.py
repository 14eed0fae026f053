"""Choice of the broker for a request that any broker can serve."""

from collections.abc import Callable, Sequence

from kclient.client.node_connections import NodeConnections
from kclient.common.types import Node

SLOW_CONNECT_MS = 1000.0
"""Age of a connection attempt after which another node is tried in addition."""

Rank = tuple[int, float]
"""Rank of a node; the node with the lowest rank is chosen."""


def least_loaded_node(
    nodes: Sequence[Node],
    connections: NodeConnections,
    uniform: Callable[[], float],
    now_ms: float,
    *,
    internal: bool = False,
) -> Node | None:
    """Return the least loaded node (Kafka: NetworkClient.leastLoadedNode).

    The order is: ready nodes, those with the fewest requests in flight first; nodes that are being
    connected to; nodes that may be connected to, by the time of their last attempt; nodes whose
    connection attempt is slow.

    Args:
        nodes: Brokers to choose from.
        connections: Connections of the client.
        uniform: Returns a random number from 0 to 1, to spread the load.
        now_ms: Present time.
        internal: Whether it is for an internal request, which may exceed the limit in flight.

    Returns:
        The node; None if all are busy or backing off.
    """
    if not nodes:
        return None
    can_send = connections.can_send_internal if internal else connections.can_send
    offset = int(uniform() * len(nodes))
    best: Node | None = None
    best_rank: Rank | None = None
    for index in range(len(nodes)):
        node = nodes[(offset + index) % len(nodes)]
        node_id = str(node.id)
        rank = (
            (0, connections.in_flight.count(node_id))
            if can_send(node_id, now_ms)
            else _rank(node_id, connections, now_ms)
        )
        if rank is not None and (best_rank is None or rank < best_rank):
            best, best_rank = node, rank
    return best


def _rank(node_id: str, connections: NodeConnections, now_ms: float) -> Rank | None:
    """Return the rank of a node that is not ready; None if it cannot be used now."""
    since_ms = connections.states.preparing_since_ms(node_id)
    if since_ms is not None:
        return (1, 0.0) if now_ms - since_ms < SLOW_CONNECT_MS else (3, since_ms)
    if connections.states.can_connect(node_id, now_ms):
        return 2, connections.states.last_attempt_ms(node_id)
    return None
