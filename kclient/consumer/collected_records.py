"""Result of one `FetchCollector.collect`."""

from kclient.common.types import TopicPartition
from kclient.record import ConsumerRecord


class CollectedRecords:
    """Records by partition; ``len()`` counts the partitions.

    Attributes:
        by_partition: The records, in the order of their offsets.
        again: Number of leading records of a partition that were collected before and put back;
            interceptors have seen them.
    """

    __slots__ = ("again", "by_partition")

    def __init__(self) -> None:
        self.by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        self.again: dict[TopicPartition, int] = {}

    def add(
        self, partition: TopicPartition, records: list[ConsumerRecord], *, is_again: bool
    ) -> None:
        """Append records of a partition."""
        before = self.by_partition.get(partition)
        self.by_partition[partition] = records if before is None else before + records
        if is_again:
            self.again[partition] = self.again.get(partition, 0) + len(records)

    def __len__(self) -> int:
        return len(self.by_partition)
