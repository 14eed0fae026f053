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
        count: Number of records.
        again: Number of leading records of a partition that were collected before and put back;
            interceptors have seen them.
        remaining: Number of records that may still be added.
    """

    __slots__ = ("_max_records", "_single", "again", "by_partition", "count", "remaining")

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
        self.count = 0
        self.by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        self.again: dict[TopicPartition, int] = {}

    def take_from(self, fetch: CompletedFetch) -> None:
        """Take records from a fetch, at most `remaining`."""
        is_again = bool(fetch.unread)
        records = fetch.take(self.remaining)
        if not records:
            return
        count = len(records)
        self.count += count
        self.remaining = 0 if self._single else self.remaining - count
        partition = fetch.state.partition
        before = self.by_partition.setdefault(partition, records)
        if before is not records:
            before += records
        if is_again:
            self.again[partition] = self.again.get(partition, 0) + count

    def __len__(self) -> int:
        return len(self.by_partition)


class CollectedColumns:
    """Columns, a piece per fetch; ``len()`` counts the pieces.

    Attributes:
        pieces: The columns in order.
        count: Number of records.
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
        self.count = 0
        self.pieces: list[PartitionColumns] = []

    def take_from(self, fetch: CompletedFetch) -> None:
        """Take records from a fetch as columns, at most `remaining`."""
        builder = ColumnBuilder(_PIECE_BYTES)
        count = fetch.take_columns(builder, self.remaining)
        if count:
            self.count += count
            self.remaining = 0 if self._single else self.remaining - count
            topic, partition = fetch.state.partition
            self.pieces.append((topic, partition, builder.finish()))

    def __len__(self) -> int:
        return len(self.pieces)
