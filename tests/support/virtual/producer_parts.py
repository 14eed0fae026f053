"""Single parts of a producer, for unit tests: batches, results and queues without a sender."""

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.common.metrics import Metrics
from kclient.common.types import Node, TopicPartition
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.partitioner import BuiltInPartitioner
from kclient.producer.produce_request_result import ProduceRequestResult
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.topic_info import PartitionQueue, TopicInfo
from tests.support.virtual.virtual_home import VirtualHome

TOPIC = "t"


class ProducerParts:
    """Creates parts of a producer that share a clock, a runner of callbacks and metrics."""

    def __init__(self) -> None:
        home = VirtualHome()
        self.runtime = home.runtime
        self.clock = home.clock
        self.metrics = ProducerMetrics(
            Metrics(self.clock, self.runtime.tasks), self.runtime.tasks.lock()
        )
        self.runner = CallbackRunner(self.runtime.tasks, self.metrics.callback_errors)

    def result(self, topic_partition: TopicPartition | None = None) -> ProduceRequestResult:
        """Return the pending result of a batch."""
        tasks = self.runtime.tasks
        return ProduceRequestResult(
            topic_partition or tp(), tasks, tasks.lock(), self.runner, self.clock
        )

    def pool(self, total: int, poolable_size: int) -> BufferPool:
        """Return an empty pool."""
        return BufferPool(
            total,
            poolable_size,
            self.clock,
            self.runtime.tasks,
            self.metrics.buffer_wait.record,
            self.metrics.buffer_exhausted,
            lambda: None,
        )

    def complete_after(self, delay_ms: float, result: ProduceRequestResult, offset: int) -> None:
        """Complete a batch later."""

        def complete() -> None:
            result.complete(offset, -1)

        self.clock.after(delay_ms, complete)

    def batch(self, *values: bytes, partition: int = 0, size: int = 1_000) -> ProducerBatch:
        """Return an open batch with records, created now."""
        batch = ProducerBatch(bytearray(size), self.result(tp(partition)), self.clock.now_ms)
        for value in values:
            assert batch.builder.append(5, None, value, None) >= 0
        return batch

    def queue(self, partition: int = 0, *batches: ProducerBatch) -> PartitionQueue:
        """Return the queue of a partition, whose batches are closed."""
        queue = PartitionQueue(tp(partition), self.runtime.tasks.lock())
        for batch in batches:
            batch.close()
            queue.batches.append(batch)
        return queue

    def topic_info(self, partitions: int) -> TopicInfo:
        """Return the queues of a topic."""
        info = TopicInfo(
            TOPIC, BuiltInPartitioner(1_000, lambda: 0.0), self.runtime.tasks.lock, None
        )
        info.refresh(cluster(partitions))
        return info


def tp(partition: int = 0) -> TopicPartition:
    return TopicPartition(TOPIC, partition)


def cluster(partitions: int, nodes: int = 1, *, leaderless: tuple[int, ...] = ()) -> Cluster:
    """Return a cluster; partitions have their leaders in turn."""
    brokers = [Node(number, f"host-{number}", 9092) for number in range(nodes)]
    return Cluster(
        brokers,
        [
            PartitionInfo(TOPIC, number, None if number in leaderless else brokers[number % nodes])
            for number in range(partitions)
        ],
        topic_ids={TOPIC: b"i" * 16},
    )
