"""Queues and partitioner of one topic."""

from collections.abc import Callable

from kclient.client.cluster import Cluster
from kclient.common.runtime import Lock
from kclient.common.types import TopicPartition
from kclient.producer.hot_path import TopicView
from kclient.producer.partition_queue import PartitionQueue
from kclient.producer.partitioner import BuiltInPartitioner
from kclient.producer.producer_batch import ProducerBatch


class TopicInfo(TopicView):
    """Queues and partitioner of a topic (Kafka: RecordAccumulator.TopicInfo).

    It updates the attributes of its base, which the hot path reads.
    """

    __slots__ = (
        "_available", "_lags", "_lock", "_make_lock", "_sticky_batch", "partitioner", "topic",
    )  # fmt: skip

    queues: tuple[PartitionQueue, ...]
    sticky_queue: PartitionQueue | None

    def __init__(
        self,
        topic: str,
        partitioner: BuiltInPartitioner,
        make_lock: Callable[[], Lock],
        lags: Callable[[PartitionQueue], bool] | None,
    ) -> None:
        """Start without partitions.

        Args:
            topic: Name.
            partitioner: Draws sticky partitions.
            make_lock: Creates the locks of the queues.
            lags: Returns whether a queue's leader is too slow to be drawn; None draws without
                weights.
        """
        super().__init__()
        self.topic = topic
        self.partitioner = partitioner
        self._make_lock = make_lock
        self._lags = lags
        self._lock = make_lock()  # guards: writes to the above, the partitioner, and the below
        self._available: list[int] = []
        self._sticky_batch: ProducerBatch | None = None

    def refresh(self, cluster: Cluster) -> int:
        """Apply a new view of the cluster; return the number of partitions.

        A view without the topic is ignored: a send may be in progress.
        """
        with self._lock:
            count = len(cluster.partitions_for(self.topic))
            if count == 0:
                return 0
            self._available = [
                info.partition for info in cluster.available_partitions_for(self.topic)
            ]
            added = range(len(self.queues), count)
            self.queues += tuple(
                PartitionQueue(TopicPartition(self.topic, each), self._make_lock())
                for each in added
            )
            self.partition_count = count
            if self.sticky_queue not in self.queues[:count]:
                self.sticky_queue = None
            self.cluster = cluster
            return count

    def choose_sticky_queue(self) -> PartitionQueue:
        """Return the sticky queue, drawing one if there is none."""
        with self._lock:
            if self.sticky_queue is None:
                chosen = self.partitioner.choose(self._available, self.partition_count)
                self.sticky_queue = self.queues[chosen]
            return self.sticky_queue

    def switch_partition(self, before: PartitionQueue, full_size: int) -> PartitionQueue:
        """Return the queue for a new batch, which may differ from `before`.

        Args:
            before: Sticky queue without an open batch.
            full_size: Minimum size to count for a batch that a record did not fit into.
        """
        with self._lock:
            if self.sticky_queue is not before and self.sticky_queue is not None:
                return self.sticky_queue  # another thread has switched already
            last, self._sticky_batch = self._sticky_batch, None
            produced = 0
            if last is not None:
                produced = max(last.size_in_bytes, full_size if last.is_closed else 0)
            if self.partitioner.is_due(produced):
                self._update_load()
            self.partitioner.batch_begun(produced, self._available, self.partition_count)
            chosen = self.partitioner.choose(self._available, self.partition_count)
            self.sticky_queue = self.queues[chosen]
            return self.sticky_queue

    def sticky_batch_opened(self, batch: ProducerBatch) -> None:
        """Set the batch whose bytes count towards the next switch."""
        with self._lock:
            self._sticky_batch = batch

    def _update_load(self) -> None:
        """Weight the next draw by queue lengths."""
        lags = self._lags
        if lags is not None:
            queues = [self.queues[each] for each in self._available]
            usable = [queue for queue in queues if not lags(queue)]
            self.partitioner.update_load(
                [len(queue.batches) for queue in usable],
                [queue.topic_partition.partition for queue in usable],
                self.partition_count,
            )
