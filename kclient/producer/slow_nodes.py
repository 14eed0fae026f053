"""Brokers that cannot accept batches as fast as they are due."""

from kclient.producer.partition_queue import PartitionQueue


class SlowNodes:
    """Time that each node has had batches due without accepting any (KIP-794).

    The sender writes; application threads read when they draw a partition.
    """

    def __init__(self, availability_timeout_ms: float) -> None:
        """Start without nodes.

        Args:
            availability_timeout_ms: Time after which the sticky partitioner avoids a node; 0 for no
                limit (``partitioner.availability.timeout.ms``).
        """
        self._limit_ms = availability_timeout_ms
        self._waiting_ms: dict[int, float] = {}
        self._last_drain_ms: dict[int, float] = {}

    def record(self, node: int, now_ms: float, *, drained: bool) -> None:
        """Record that a node has batches due, and whether it could accept them."""
        if self._limit_ms <= 0:
            return
        if drained or node not in self._last_drain_ms:
            self._last_drain_ms[node] = now_ms
        self._waiting_ms[node] = now_ms - self._last_drain_ms[node]

    def lags(self, queue: PartitionQueue) -> bool:
        """Return whether a queue's leader has kept batches waiting for too long."""
        return self._limit_ms > 0 and self._waiting_ms.get(queue.leader_id, 0.0) > self._limit_ms
