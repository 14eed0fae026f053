"""Which partitions have batches waiting."""

from kclient.common.runtime import Tasks
from kclient.common.types import TopicPartition
from kclient.producer.partition_queue import PartitionQueue


class ActiveQueues:
    """The queues that hold batches, so that the sender need not look at all the others.

    `note` and `retire` are called with the queue's own lock held: lock order is the queue's, then
    this one's.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._lock = tasks.lock()  # guards: _queues
        self._queues: dict[TopicPartition, PartitionQueue] = {}

    def note(self, queue: PartitionQueue) -> None:
        """Note that a queue got a batch."""
        with self._lock:
            self._queues[queue.topic_partition] = queue

    def retire(self, queue: PartitionQueue) -> None:
        """Forget a queue if it is empty."""
        if not queue.batches:
            with self._lock:
                self._queues.pop(queue.topic_partition, None)

    def all(self) -> list[PartitionQueue]:
        """Return the queues in the order in which they got their first batch."""
        with self._lock:
            return list(self._queues.values())

    def __len__(self) -> int:
        return len(self._queues)
