"""Chooses the broker for a question that any broker can answer."""

from collections.abc import Callable, Sequence

from kclient.client.node_connections import NodeConnections
from kclient.common.types import Node

SLOW_CONNECT_MS = 1000.0
"""After this time another node is tried beside one that does not get ready."""


def least_loaded_node(
    nodes: Sequence[Node],
    connections: NodeConnections,
    uniform: Callable[[], float],
    now_ms: float,
) -> Node | None:
    """Return the node best placed to answer (Kafka: NetworkClient.leastLoadedNode).

    First a ready one with the fewest requests in flight, then one that is getting ready, then one
    that may be connected to, the longest untried first; last one that is slow in getting ready.

    Args:
        nodes: Brokers to choose from.
        connections: How they fare.
        uniform: Returns a number from 0 to 1 by chance, to spread the load.
        now_ms: Present time.

    Returns:
        The node; None if all are in their back-off or busy.
    """
    if not nodes:
        return None
    offset = int(uniform() * len(nodes))
    best: Node | None = None
    best_rank: tuple[int, float] | None = None
    for index in range(len(nodes)):
        node = nodes[(offset + index) % len(nodes)]
        rank = _rank(str(node.id), connections, now_ms)
        if rank is not None and (best_rank is None or rank < best_rank):
            best, best_rank = node, rank
    return best


def _rank(node_id: str, connections: NodeConnections, now_ms: float) -> tuple[int, float] | None:
    """Return how well a node is placed, the smaller the better; None if it is of no use now."""
    if connections.can_send(node_id, now_ms):
        return 0, connections.in_flight.count(node_id)
    since_ms = connections.states.preparing_since_ms(node_id)
    if since_ms is not None:
        return (1, 0.0) if now_ms - since_ms < SLOW_CONNECT_MS else (3, since_ms)
    if connections.states.can_connect(node_id, now_ms):
        return 2, connections.states.last_attempt_ms(node_id)
    return None
