"""Selection of the batches that are due, and their removal for a request."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kclient.client.cluster import Cluster
from kclient.common.runtime import Lock
from kclient.common.types import TopicPartition
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.topic_info import PartitionQueue

NextBatch = Callable[[Sequence[ProducerBatch]], ProducerBatch | None]
"""Returns the batch of a queue, given its batches, that may be sent now."""


def oldest_batch(batches: Sequence[ProducerBatch]) -> ProducerBatch:
    """Return the batch to send without idempotence: the oldest."""
    return batches[0]


@dataclass(slots=True)
class ReadyCheckResult:
    """Nodes with batches to send (Kafka: RecordAccumulator.ReadyCheckResult).

    Attributes:
        ready_nodes: Ids of the nodes that have a batch due.
        next_check_delay_ms: Time until the next batch is due.
        unknown_leader_topics: Topics with batches for partitions without a known leader.
    """

    ready_nodes: set[int] = field(default_factory=set)
    next_check_delay_ms: float = float("inf")
    unknown_leader_topics: set[str] = field(default_factory=set)


class BatchDrainer:
    """The queues that hold batches, and the sender's access to them.

    (Kafka: RecordAccumulator.ready and .drain.) `add` and `remove_if_empty` are called with the
    queue's lock held, also by application threads; only the sender's thread calls the rest.
    """

    def __init__(
        self, lock: Lock, linger_ms: float, max_request_size: int, next_batch: NextBatch
    ) -> None:
        """Start without queues.

        Args:
            lock: Acquired after a queue's lock.
            linger_ms: Time that a batch that is not full waits for more records.
            max_request_size: Bytes of a request; a single larger batch is accepted.
            next_batch: Chooses the batch of a queue that may be sent now.
        """
        self._lock = lock  # guards: _queues
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._linger_ms = linger_ms
        self._max_size = max_request_size
        self._next_batch = next_batch
        self._drain_index: dict[int, int] = {}

    def add(self, queue: PartitionQueue) -> None:
        """Add a queue that received a batch."""
        with self._lock:
            self._queues[queue.topic_partition] = queue

    def remove_if_empty(self, queue: PartitionQueue) -> None:
        """Remove a queue without batches."""
        if not queue.batches:
            with self._lock:
                self._queues.pop(queue.topic_partition, None)

    def has_batches(self) -> bool:
        """Return whether a queue holds batches; application threads may add some meanwhile."""
        return bool(self._queues)

    def _active(self) -> list[PartitionQueue]:
        """Return the queues in the order in which they were added."""
        with self._lock:
            return list(self._queues.values())

    def ready(self, cluster: Cluster, now_ms: float, *, skip_linger: bool) -> ReadyCheckResult:
        """Return the nodes that have batches due: full, past ``linger.ms``, or `skip_linger`."""
        found = ReadyCheckResult()
        for queue in self._active():
            leader = cluster.leader_for(queue.topic_partition)
            queue.leader_id = -1 if leader is None else leader.id
            if leader is None:
                found.unknown_leader_topics.add(queue.topic_partition.topic)
            elif not queue.muted and leader.id not in found.ready_nodes:
                wait_ms = self._wait_ms(queue, now_ms, skip_linger=skip_linger)
                if wait_ms <= 0:
                    found.ready_nodes.add(leader.id)
                else:
                    found.next_check_delay_ms = min(found.next_check_delay_ms, wait_ms)
        return found

    def _wait_ms(self, queue: PartitionQueue, now_ms: float, *, skip_linger: bool) -> float:
        with queue.lock:
            if not queue.batches:
                return float("inf")
            batch = queue.batches[0]
            if batch.retry_at_ms > now_ms:
                return batch.retry_at_ms - now_ms
            if skip_linger or batch is not queue.open_batch or batch.is_full():
                return 0.0
            return batch.created_ms + self._linger_ms - now_ms

    def drain(self, nodes: Iterable[int], now_ms: float) -> dict[int, list[ProducerBatch]]:
        """Remove at most one batch of each partition for each node, up to a request's size.

        The leaders are those found by the last `ready`.

        Args:
            nodes: Nodes that a request can be sent to.
            now_ms: Current time.

        Returns:
            Batches by node, without nodes that have none.
        """
        by_node: dict[int, list[PartitionQueue]] = {node: [] for node in nodes}
        for queue in self._active():
            if queue.leader_id in by_node and not queue.muted:
                by_node[queue.leader_id].append(queue)
        drained: dict[int, list[ProducerBatch]] = {}
        for node, queues in by_node.items():
            batches = self._drain_node(node, queues, now_ms)
            if batches:
                drained[node] = batches
        return drained

    def _drain_node(
        self, node: int, queues: list[PartitionQueue], now_ms: float
    ) -> list[ProducerBatch]:
        drained: list[ProducerBatch] = []
        size = 0
        # Start where the last request was full, so that no partition starves.
        start = self._drain_index.pop(node, 0)
        for step in range(len(queues)):
            queue = queues[(start + step) % len(queues)]
            with queue.lock:
                batch = self._next_batch(queue.batches) if queue.batches else None
                if batch is None or batch.retry_at_ms > now_ms:
                    continue
                if drained and size + batch.current_size() > self._max_size:
                    self._drain_index[node] = (start + step) % len(queues)
                    break
                queue.take(batch, now_ms)
                self.remove_if_empty(queue)
            size += batch.size_in_bytes
            drained.append(batch)
        return drained
