"""Selection of the batches that are due, and their removal for a request."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kclient.client.cluster import Cluster
from kclient.producer.active_queues import ActiveQueues
from kclient.producer.partition_queue import PartitionQueue
from kclient.producer.producer_batch import ProducerBatch

NextBatch = Callable[[Sequence[ProducerBatch]], ProducerBatch | None]


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
    """The sender's side of the queues (Kafka: RecordAccumulator.ready and .drain).

    Only the sender's thread calls it.
    """

    def __init__(
        self, queues: ActiveQueues, linger_ms: float, *, skip_linger: Callable[[], bool]
    ) -> None:
        """Create a drainer.

        Args:
            queues: The queues that hold batches.
            linger_ms: Time that a batch that is not full waits for more records.
            skip_linger: Returns whether batches are due at once: during a flush, after a close, or
                while callers wait for memory.
        """
        self.queues = queues
        self._linger_ms = linger_ms
        self._skip_linger = skip_linger
        self._drain_index: dict[int, int] = {}

    def ready(self, cluster: Cluster, now_ms: float) -> ReadyCheckResult:
        """Return the nodes that have batches due: full, past ``linger.ms``, or ``skip_linger``."""
        found = ReadyCheckResult()
        skip_linger = self._skip_linger()
        for queue in self.queues.all():
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

    def drain(
        self,
        nodes: Iterable[int],
        max_size: int,
        now_ms: float,
        next_batch: NextBatch,
    ) -> dict[int, list[ProducerBatch]]:
        """Remove at most one batch of each partition for each node, up to a request's size.

        The leaders are those found by the last `ready`.

        Args:
            nodes: Nodes that a request can be sent to.
            max_size: Bytes of a request; a single larger batch is accepted.
            now_ms: Current time.
            next_batch: Returns the batch of a queue that may be sent now, if any.

        Returns:
            Batches by node, without nodes that have none.
        """
        by_node: dict[int, list[PartitionQueue]] = {node: [] for node in nodes}
        for queue in self.queues.all():
            if queue.leader_id in by_node and not queue.muted:
                by_node[queue.leader_id].append(queue)
        drained: dict[int, list[ProducerBatch]] = {}
        for node, queues in by_node.items():
            batches = self._drain_node(node, queues, max_size, now_ms, next_batch)
            if batches:
                drained[node] = batches
        return drained

    def _drain_node(
        self,
        node: int,
        queues: list[PartitionQueue],
        max_size: int,
        now_ms: float,
        next_batch: NextBatch,
    ) -> list[ProducerBatch]:
        drained: list[ProducerBatch] = []
        size = 0
        # Start where the last request was full, so that no partition starves.
        start = self._drain_index.pop(node, 0)
        for step in range(len(queues)):
            queue = queues[(start + step) % len(queues)]
            with queue.lock:
                batch = next_batch(queue.batches) if queue.batches else None
                if batch is None or batch.retry_at_ms > now_ms:
                    continue
                if drained and size + batch.size_in_bytes > max_size:
                    self._drain_index[node] = (start + step) % len(queues)
                    break
                queue.take(batch)
                self.queues.remove_if_empty(queue)
            size += batch.size_in_bytes
            batch.drained_ms = now_ms
            drained.append(batch)
        return drained
