"""Results of `FetchCollector.collect`: records by partition, or columns."""

from typing import Protocol

from kclient.common.types import TopicPartition
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.record import ColumnBuilder, ConsumerRecord
from kclient.record.arrow import PartitionColumns

_PIECE_BYTES = 64 * 1024 * 1024
"""Size of a column that ends a piece: the records of one compressed batch may need any memory."""


class Collected(Protocol):
    """Destination of collected records; ``len()`` is 0 while it is empty."""

    @property
    def remaining(self) -> int:
        """Number of records that may still be added."""

    def take_from(self, fetch: CompletedFetch) -> None:
        """Take records from a fetch, at most `remaining`."""

    def clear(self) -> None:
        """Remove all records."""

    def __len__(self) -> int: ...


class CollectedRecords:
    """Records by partition; ``len()`` counts the partitions.

    Attributes:
        by_partition: The records, in the order of their offsets.
        again: Number of leading records of a partition that were collected before and put back;
            interceptors have seen them.
        remaining: Number of records that may still be added.
    """

    __slots__ = ("_max_records", "_single", "again", "by_partition", "remaining")

    def __init__(self, max_records: int, *, single: bool = False) -> None:
        """Initialize.

        Args:
            max_records: Maximum number of records.
            single: Stop after the first fetch that has records, so that
                `FetchCollector.put_back` can undo it.
        """
        self._max_records = max_records
        self._single = single
        self.clear()

    def clear(self) -> None:
        """Remove all records."""
        self.remaining = self._max_records
        self.by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        self.again: dict[TopicPartition, int] = {}

    def take_from(self, fetch: CompletedFetch) -> None:
        """Take records from a fetch, at most `remaining`."""
        is_again = bool(fetch.unread)
        records = fetch.take(self.remaining)
        if not records:
            return
        self.remaining = 0 if self._single else self.remaining - len(records)
        partition = fetch.state.partition
        before = self.by_partition.setdefault(partition, records)
        if before is not records:
            before += records
        if is_again:
            self.again[partition] = self.again.get(partition, 0) + len(records)

    def count(self) -> int:
        """Return the number of records."""
        return sum(map(len, self.by_partition.values()))

    def __len__(self) -> int:
        return len(self.by_partition)


class CollectedColumns:
    """Columns, a piece per fetch; ``len()`` counts the pieces.

    Attributes:
        pieces: The columns in order.
        remaining: Number of records that may still be added.
    """

    def __init__(self, max_records: int, *, single: bool = False) -> None:
        """Initialize.

        Args:
            max_records: Maximum number of records.
            single: Stop after the first fetch that has records: a single piece is not copied.
        """
        self._max_records = max_records
        self._single = single
        self.clear()

    def clear(self) -> None:
        """Remove all columns."""
        self.remaining = self._max_records
        self.pieces: list[PartitionColumns] = []

    def take_from(self, fetch: CompletedFetch) -> None:
        """Take records from a fetch as columns, at most `remaining`."""
        builder = ColumnBuilder(_PIECE_BYTES)
        count = fetch.take_columns(builder, self.remaining)
        if count:
            self.remaining = 0 if self._single else self.remaining - count
            topic, partition = fetch.state.partition
            self.pieces.append((topic, partition, builder.finish()))

    def count(self) -> int:
        """Return the number of records."""
        return sum(columns.length for _, _, columns in self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)
