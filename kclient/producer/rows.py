"""Records that are appended to one partition: a single one, lists, or columns."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from kclient.common.files import WireBytes
from kclient.producer.batch_delivery import Segment
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.hot_path import all_bytes_or_none
from kclient.producer.hot_path.reference import OpenBatch
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.send_arguments import to_bytes
from kclient.producer.topic_info import PartitionQueue
from kclient.record import Header, RecordColumns, record_size_upper_bound

T_co = TypeVar("T_co", covariant=True)

_ROW_NUMBER = 8  # bytes


class Appendable(Protocol[T_co]):
    """Records that an accumulator appends."""

    def next_size(self) -> int:
        """Return an upper bound of the next record's size in bytes."""
        ...

    def fill(self, queue: PartitionQueue) -> T_co | None:
        """Append what fits into the open batch; close it and return None if nothing fits.

        The caller holds the queue's lock.
        """
        ...


class SingleRecord:
    """One record; its headers are encoded."""

    __slots__ = ("_headers", "_key", "_on_delivery", "_timestamp_ms", "_value")

    def __init__(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: bytes,
        on_delivery: OnDelivery | None,
    ) -> None:
        self._timestamp_ms = timestamp_ms
        self._key = key
        self._value = value
        self._headers = headers
        self._on_delivery = on_delivery

    def next_size(self) -> int:
        """Return an upper bound of the record's size in bytes."""
        size = record_size_upper_bound(self._key, self._value)  # without headers: one byte
        return size - 1 + len(self._headers)

    def fill(self, queue: PartitionQueue) -> DeliveryFuture | None:
        """Append the record and return its future; return None if it does not fit."""
        return queue.append(
            self._timestamp_ms, self._key, self._value, self._headers, self._on_delivery
        )


def all_bytes(what: str, rows: list[Any]) -> list[bytes | None]:
    """Return rows of bytes and None, converting other bytes-like objects.

    Args:
        what: ``key`` or ``value``, for the error text.
        rows: Argument of `send_many`.

    Raises:
        InvalidTypeError: One is not bytes-like.
    """
    return rows if all_bytes_or_none(rows) else [to_bytes(what, row) for row in rows]


def _fill(
    queue: PartitionQueue, append_to: Callable[[OpenBatch], int], all_taken: Callable[[], bool]
) -> Segment | None:
    """Append rows to the open batch, which grows as needed; close it if not one fits."""
    batch, outer = queue.use_open_batch()
    if batch is None:
        return None
    try:
        first_index = batch.builder.record_count
        count = append_to(batch)
        while not all_taken() and batch.grow():
            count += append_to(batch)
        if count == 0:
            queue.close_full_batch(batch)
            return None
        return Segment(batch.result, first_index, count)
    finally:
        queue.end_use(outer)


class Rows:
    """Parallel lists of keys, values and timestamps, appended to batches from the front.

    Attributes:
        keys: Keys, or None for records without.
        taken: Number of records appended.
    """

    __slots__ = ("_headers", "_timestamps_ms", "_values", "keys", "taken")

    def __init__(
        self,
        timestamps_ms: int | list[int],
        keys: list[bytes | None] | None,
        values: list[bytes | None],
        headers: Sequence[Header] | None,
    ) -> None:
        self._timestamps_ms = timestamps_ms
        self.keys = keys
        self._values = values
        self._headers = headers
        self.taken = 0

    def __len__(self) -> int:
        return len(self._values)

    def select(self, rows: list[int]) -> "Rows":
        """Return the records of some rows."""
        keys, times = self.keys, self._timestamps_ms
        return Rows(
            times if isinstance(times, int) else [times[row] for row in rows],
            None if keys is None else [keys[row] for row in rows],
            [self._values[row] for row in rows],
            self._headers,
        )

    def all_taken(self) -> bool:
        """Return whether no record is left."""
        return self.taken >= len(self._values)

    def next_size(self) -> int:
        """Return an upper bound of the next record's size in bytes."""
        key = None if self.keys is None else self.keys[self.taken]
        return record_size_upper_bound(key, self._values[self.taken], self._headers)

    def fill(self, queue: PartitionQueue) -> Segment | None:
        """Append as many records as fit into the open batch; return None if not one fits."""
        return _fill(queue, self._append_to, self.all_taken)

    def _append_to(self, batch: OpenBatch) -> int:
        count = batch.builder.append_many(
            self._timestamps_ms, self.keys, self._values, self.taken, self._headers
        )
        self.taken += count
        return count


class ColumnRows:
    """Rows of columns, appended to batches from the front; `Rows` does the same for lists.

    Attributes:
        taken: Number of rows appended.
    """

    __slots__ = ("_columns", "_count", "_rows", "taken")

    def __init__(self, columns: RecordColumns, rows: WireBytes | None = None) -> None:
        """Start with the first row.

        Args:
            columns: The columns.
            rows: Memory of 64-bit row numbers; None for all.
        """
        self._columns = columns
        self._rows = rows
        self._count = columns.length if rows is None else len(rows) // _ROW_NUMBER
        self.taken = 0

    def all_taken(self) -> bool:
        """Return whether no row is left."""
        return self.taken >= self._count

    def next_size(self) -> int:
        """Return an upper bound of the next record's size in bytes."""
        if self._rows is None:
            return self._columns.size_upper_bound(self.taken)
        return self._columns.size_upper_bound(memoryview(self._rows).cast("q")[self.taken])

    def fill(self, queue: PartitionQueue) -> Segment | None:
        """Append as many rows as fit into the open batch; return None if not one fits."""
        return _fill(queue, self._append_to, self.all_taken)

    def _append_to(self, batch: OpenBatch) -> int:
        count = batch.builder.append_columns(self._columns, self._rows, self.taken)
        self.taken += count
        return count
