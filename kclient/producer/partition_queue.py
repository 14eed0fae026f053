"""Queue of the batches of one partition."""

from collections import deque

from kclient.common.runtime import Lock
from kclient.common.types import TopicPartition
from kclient.producer.hot_path import OpenQueue
from kclient.producer.producer_batch import ProducerBatch


class PartitionQueue(OpenQueue):
    """Batches of one partition, the oldest first (Kafka: the deques of RecordAccumulator).

    Attributes:
        lock: Guards `batches` and `open_batch`.
        batches: Every batch that is not in flight.
        open_batch: The newest batch while records are appended to it; the last of `batches`.
        muted: Whether nothing may be drained; only the sender accesses it.
        leader_id: Leader of the partition as last seen by the sender, -1 for none.
        drained: Number of batches drained for the first time; only the sender accesses it.
    """

    __slots__ = (
        "batches", "drained", "leader_id", "muted", "topic_partition"
    )  # fmt: skip

    open_batch: ProducerBatch | None

    def __init__(self, topic_partition: TopicPartition, lock: Lock) -> None:
        super().__init__(lock)
        self.topic_partition = topic_partition
        self.batches: deque[ProducerBatch] = deque()
        self.muted = False
        self.leader_id = -1
        self.drained = 0

    def open(self, batch: ProducerBatch) -> None:
        """Add a new batch for appends."""
        self.batches.append(batch)
        self.open_batch = batch

    def close_batch(self, batch: ProducerBatch) -> None:
        """Close the open batch for appends because a record did not fit; it is due."""
        batch.is_closed = True
        self.open_batch = None

    def take(self, batch: ProducerBatch) -> None:
        """Remove a batch to send it; no more records are appended."""
        self.remove(batch)
        if not batch.send_order:
            batch.send_order = (self.drained,)
            self.drained += 1

    def put_back(self, batch: ProducerBatch) -> None:
        """Insert a batch that was drained before, in the order of first drains."""
        position = 0
        for waiting in self.batches:
            if not waiting.send_order or waiting.send_order > batch.send_order:
                break
            position += 1
        self.batches.insert(position, batch)

    def remove(self, batch: ProducerBatch) -> bool:
        """Remove a batch; return whether it was in the queue."""
        if batch is self.open_batch:
            self.open_batch = None
        try:
            self.batches.remove(batch)
        except ValueError:
            return False
        return True
