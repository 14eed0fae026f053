"""Chooses the broker for a question that any broker can answer."""

from collections.abc import Callable, Sequence

from kclient.client.node_connections import NodeConnections
from kclient.common.types import Node

SLOW_CONNECT_MS = 1000.0
"""After this time another node is tried beside one that does not get ready."""

Rank = tuple[int, float]
"""Rank of a node; the node with the smallest is chosen."""


def least_loaded_node(
    nodes: Sequence[Node],
    connections: NodeConnections,
    uniform: Callable[[], float],
    now_ms: float,
    *,
    internal: bool = False,
) -> Node | None:
    """Return the node best placed to answer (Kafka: NetworkClient.leastLoadedNode).

    First a ready one with the fewest requests in flight, then one that is getting ready, then one
    that may be connected to, the longest untried first; last one that is slow in getting ready.

    Args:
        nodes: Brokers to choose from.
        connections: How they fare.
        uniform: Returns a number from 0 to 1 by chance, to spread the load.
        now_ms: Present time.
        internal: Whether the request is the client's own, which may exceed the limit in flight.

    Returns:
        The node; None if all are in their back-off or busy.
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
    """Return how well a node that takes no request now is placed; None if it is of no use."""
    since_ms = connections.states.preparing_since_ms(node_id)
    if since_ms is not None:
        return (1, 0.0) if now_ms - since_ms < SLOW_CONNECT_MS else (3, since_ms)
    if connections.states.can_connect(node_id, now_ms):
        return 2, connections.states.last_attempt_ms(node_id)
    return None
