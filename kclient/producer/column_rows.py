"""Cursor over rows of columns that are appended to one partition."""

from kclient.common.files import WireBytes
from kclient.producer.batch_delivery import Segment
from kclient.producer.producer_batch import ProducerBatch
from kclient.record import RecordColumns

_ROW_NUMBER = 8  # bytes


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

    def fill(self, batch: ProducerBatch) -> Segment | None:
        """Append as many rows as fit; return None if not one fits."""
        first_index = batch.record_count
        count = batch.builder.append_columns(self._columns, self._rows, self.taken)
        if count == 0:
            return None
        self.taken += count
        return Segment(batch.result, first_index, count)
