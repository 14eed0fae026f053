"""Decides which batches are due, and takes them out for a request."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kclient.client.cluster import Cluster
from kclient.producer.active_queues import ActiveQueues
from kclient.producer.partition_queue import PartitionQueue
from kclient.producer.producer_batch import ProducerBatch

NextBatch = Callable[[Sequence[ProducerBatch]], ProducerBatch | None]


@dataclass(slots=True)
class ReadyCheckResult:
    """What there is to send (Kafka: RecordAccumulator.ReadyCheckResult).

    Attributes:
        ready_nodes: Ids of the nodes that have a batch due.
        next_check_delay_ms: When the next batch falls due, if nothing else happens.
        unknown_leader_topics: Topics with batches that no known node leads.
    """

    ready_nodes: set[int] = field(default_factory=set)
    next_check_delay_ms: float = float("inf")
    unknown_leader_topics: set[str] = field(default_factory=set)


class BatchDrainer:
    """The sender's view of the queues (Kafka: RecordAccumulator.ready and .drain).

    Only the sender's thread calls it.
    """

    def __init__(
        self, queues: ActiveQueues, linger_ms: float, *, hurried: Callable[[], bool]
    ) -> None:
        """Create a drainer.

        Args:
            queues: The queues that hold batches.
            linger_ms: How long a batch that is not full waits for more records.
            hurried: Whether batches go without waiting: for a flush, a close, or for memory.
        """
        self.queues = queues
        self._linger_ms = linger_ms
        self._hurried = hurried
        self._drain_index: dict[int, int] = {}

    def ready(self, cluster: Cluster, now_ms: float) -> ReadyCheckResult:
        """Say which nodes have batches due: full, old enough, or in a hurry."""
        found = ReadyCheckResult()
        hurried = self._hurried()
        for queue in self.queues.all():
            leader = cluster.leader_for(queue.topic_partition)
            queue.leader_id = -1 if leader is None else leader.id
            if leader is None:
                found.unknown_leader_topics.add(queue.topic_partition.topic)
            elif not queue.muted and leader.id not in found.ready_nodes:
                wait_ms = self._wait_ms(queue, now_ms, hurried=hurried)
                if wait_ms <= 0:
                    found.ready_nodes.add(leader.id)
                else:
                    found.next_check_delay_ms = min(found.next_check_delay_ms, wait_ms)
        return found

    def _wait_ms(self, queue: PartitionQueue, now_ms: float, *, hurried: bool) -> float:
        with queue.lock:
            if not queue.batches:
                return float("inf")
            batch = queue.batches[0]
            if batch.retry_at_ms > now_ms:
                return batch.retry_at_ms - now_ms
            if hurried or batch is not queue.open_batch or batch.is_full():
                return 0.0
            return batch.created_ms + self._linger_ms - now_ms

    def drain(
        self,
        nodes: Iterable[int],
        max_size: int,
        now_ms: float,
        next_batch: NextBatch,
    ) -> dict[int, list[ProducerBatch]]:
        """Take at most one batch of each partition for each node, up to a request's size.

        The leaders are those that the last `ready` saw.

        Args:
            nodes: Nodes that can take a request.
            max_size: Bytes of a request; a single larger batch is taken nevertheless.
            now_ms: The present.
            next_batch: Chooses which of a queue's batches may be sent now, if any.

        Returns:
            Batches by node; nodes without any are left out.
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
        # Begin where the last request was full, so that no partition is starved.
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
                self.queues.retire(queue)
            size += batch.size_in_bytes
            batch.drained_ms = now_ms
            drained.append(batch)
        return drained
