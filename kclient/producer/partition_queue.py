"""The batches that wait for one partition."""

from collections import deque

from kclient.common.runtime import Lock
from kclient.common.types import TopicPartition
from kclient.producer.hot_path import OpenQueue
from kclient.producer.producer_batch import ProducerBatch


class PartitionQueue(OpenQueue):
    """Batches of one partition, the oldest first (Kafka: the deques of RecordAccumulator).

    Attributes:
        lock: Guards `batches` and `open_batch`.
        batches: Every batch that is not on the wire.
        open_batch: The youngest batch while it takes records; it is the last of `batches`.
        muted: Whether nothing may be drained; only the sender reads and writes it.
        leader_id: Node that leads the partition as the sender last saw it, -1 for none.
        drained: Number of batches drained for the first time; only the sender uses it.
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
        """Add a new batch that takes records."""
        self.batches.append(batch)
        self.open_batch = batch

    def close_batch(self, batch: ProducerBatch) -> None:
        """Add no more records to the open batch, which one did not fit; it is due to be sent."""
        batch.is_closed = True
        self.open_batch = None

    def take(self, batch: ProducerBatch) -> None:
        """Remove a batch to send it; it takes no more records."""
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
        """Remove a batch wherever it is; return whether it was here."""
        if batch is self.open_batch:
            self.open_batch = None
        try:
            self.batches.remove(batch)
        except ValueError:
            return False
        return True
