"""Registry of the partition queues that hold batches."""

from kclient.common.runtime import Tasks
from kclient.common.types import TopicPartition
from kclient.producer.partition_queue import PartitionQueue


class ActiveQueues:
    """The queues that hold batches: the sender reads only these.

    `add` and `remove_if_empty` are called with the queue's lock held. Lock order: the queue's lock,
    then this one.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._lock = tasks.lock()  # guards: _queues
        self._queues: dict[TopicPartition, PartitionQueue] = {}

    def add(self, queue: PartitionQueue) -> None:
        """Add a queue that received a batch."""
        with self._lock:
            self._queues[queue.topic_partition] = queue

    def remove_if_empty(self, queue: PartitionQueue) -> None:
        """Remove a queue if it is empty."""
        if not queue.batches:
            with self._lock:
                self._queues.pop(queue.topic_partition, None)

    def all(self) -> list[PartitionQueue]:
        """Return the queues in the order in which they were added."""
        with self._lock:
            return list(self._queues.values())

    def __len__(self) -> int:
        return len(self._queues)
