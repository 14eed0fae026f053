"""What one poll hands out (Kafka: ConsumerRecords)."""

from collections.abc import Iterator, Mapping
from itertools import chain

from kclient.common.types import TopicPartition
from kclient.record import ConsumerRecord


class ConsumerRecords:
    """Records of one poll, by partition and in the order of their offsets.

    Iteration runs over all records; ``len()`` counts them; an empty one is false.
    """

    __slots__ = ("_by_partition",)

    def __init__(self, by_partition: Mapping[TopicPartition, list[ConsumerRecord]]) -> None:
        self._by_partition = by_partition

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have records here."""
        return list(self._by_partition)

    def records(self, partition: TopicPartition) -> list[ConsumerRecord]:
        """Return the records of a partition, an empty list if there are none."""
        return self._by_partition.get(partition, [])

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._by_partition.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_partition.values()))

    def __bool__(self) -> bool:
        return any(self._by_partition.values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}: {len(value)}" for key, value in self._by_partition.items())
        return f"<ConsumerRecords {shown or 'none'}>"
