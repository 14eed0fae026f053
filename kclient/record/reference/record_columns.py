"""Columns as a source of records."""

from array import array
from collections.abc import Sequence
from typing import Protocol

from kclient.common.errors import InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.record.columns import BinaryColumn, HeaderColumn, column_cell, read_headers
from kclient.record.record import Header
from kclient.record.record_encoder import check_timestamp, record_size_upper_bound
from kclient.record.reference.murmur2 import murmur2, to_positive

PartitionRows = list[tuple[int, memoryview]]
"""Partition, -1 for none, and the rows that go there: 64-bit integers, native order."""


class RecordTarget(Protocol):
    """Target of `RecordColumns.append_to`: a batch builder."""

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None = None,
    ) -> int:
        """Append a record; return -1 if it does not fit."""
        ...


class RecordColumns:
    """Rows of columns to be appended as records; the compiled twin creates no object per row.

    The caller owns the memory and may modify it: offsets are checked at every use.

    Args:
        timestamps_ms: One for all, or memory of one 64-bit integer per row, native order; -1 is
            no timestamp.
        keys: Keys, or None for null keys.
        values: Values.
        headers: Headers, or None for none.

    Raises:
        InvalidArgumentError: The columns differ in length, or their memory is too short.
    """

    __slots__ = ("_headers", "_keys", "_timestamps_ms", "_values")

    def __init__(
        self,
        timestamps_ms: int | WireBytes,
        keys: BinaryColumn | None,
        values: BinaryColumn,
        headers: HeaderColumn | None = None,
    ) -> None:
        self._timestamps_ms = (
            check_timestamp(timestamps_ms)
            if isinstance(timestamps_ms, int)
            else memoryview(timestamps_ms).cast("B").cast("q")
        )
        self._keys = keys
        self._values = values
        self._headers = headers
        for column in (values, keys, headers):
            if column is not None:
                column.check()
        self._check_lengths()

    def _check_lengths(self) -> None:
        times = self._timestamps_ms
        for name, length in (
            ("timestamps_ms", None if isinstance(times, int) else len(times)),
            ("keys", self._keys and self._keys.length),
            ("headers", self._headers and self._headers.length),
        ):
            if length is not None and length != self.length:
                raise InvalidArgumentError(
                    f"{name}: got {length} rows, expected {self.length}, one for each value"
                )

    @property
    def length(self) -> int:
        """Number of rows."""
        return self._values.length

    def _row(
        self, row: int, shown: int
    ) -> tuple[int, bytes | None, bytes | None, list[Header] | None]:
        times = self._timestamps_ms
        return (
            check_timestamp(times if isinstance(times, int) else times[row]),
            None if self._keys is None else column_cell("key", self._keys, row, shown),
            column_cell("value", self._values, row, shown),
            None if self._headers is None else read_headers(self._headers, row, shown),
        )

    def check(self, max_size: int, first_row: int = 0) -> int:
        """Check that every row is a valid record, and return the first that is too large.

        Args:
            max_size: Maximum of `size_upper_bound`.
            first_row: Number of the first row in error messages.

        Returns:
            A row, or -1 if none is too large.

        Raises:
            InvalidArgumentError: A row exceeds its column's data, its timestamp is out of range, or
                the name of a header is null or not UTF-8.
        """
        for row in range(self.length):
            if self._size_upper_bound(row, first_row + row) > max_size:
                return row
        return -1

    def size_upper_bound(self, row: int) -> int:
        """Return an upper bound of the size of a row's record, as `record_size_upper_bound`.

        Raises:
            InvalidArgumentError: As `check`.
        """
        self._check_row(row)
        return self._size_upper_bound(row, row)

    def _size_upper_bound(self, row: int, shown: int) -> int:
        _, key, value, headers = self._row(row, shown)
        return record_size_upper_bound(key, value, headers)

    def _check_row(self, row: int) -> None:
        if not 0 <= row < self.length:
            raise InvalidArgumentError(f"row: got {row}, expected 0 to {self.length - 1}")

    def rows_by_partition(
        self, partition_count: int, chosen: WireBytes | None, start: int, stop: int, *, by_key: bool
    ) -> PartitionRows:
        """Group rows by partition, in their order.

        Args:
            partition_count: Number of partitions.
            chosen: Memory of one 32-bit integer per row, native order: the partition, negative for
                no choice; None for no choice in all rows.
            start: First row.
            stop: Row after the last.
            by_key: Whether rows with a key and no choice are partitioned by the key (murmur2).

        Raises:
            InvalidArgumentError: The partition or row does not exist, or a key exceeds its data.
        """
        given = None if chosen is None else memoryview(chosen).cast("B").cast("i")
        if not 0 <= start <= stop <= self.length or (
            given is not None and len(given) != self.length
        ):
            raise InvalidArgumentError(f"rows: got {start} to {stop}, expected 0 to {self.length}")
        members: dict[int, array[int]] = {}
        for row in range(start, stop):
            partition = -1 if given is None else max(given[row], -1)
            if partition < 0 and by_key and self._keys is not None:
                key = column_cell("key", self._keys, row, row)
                if key is not None:
                    partition = to_positive(murmur2(key)) % partition_count
            if partition >= partition_count:
                raise InvalidArgumentError(
                    f"partition: got {partition}, expected 0 to {partition_count - 1}"
                )
            members.setdefault(partition, array("q")).append(row)
        return [(each, memoryview(members[each]).cast("B")) for each in sorted(members)]

    def append_to(self, builder: RecordTarget, rows: WireBytes | None, start: int) -> int:
        """Append rows to a batch, as many as fit; called by `RecordBatchBuilder.append_columns`.

        Args:
            builder: The builder, which reverts the call if it raises.
            rows: Memory of 64-bit integers, native order: the rows to append; None for all.
            start: Number of leading rows to skip.

        Returns:
            Number of rows appended.

        Raises:
            InvalidArgumentError: A row does not exist or exceeds its column's data.
            RecordTooLargeError: A record has 2 GiB or more.
        """
        chosen = None if rows is None else memoryview(rows).cast("B").cast("q")
        count = self.length if chosen is None else len(chosen)
        if not 0 <= start <= count:
            raise InvalidArgumentError(f"start: got {start}, expected 0 to {count}")
        for place in range(start, count):
            row = place if chosen is None else chosen[place]
            self._check_row(row)
            if builder.append(*self._row(row, row)) < 0:
                return place - start
        return count - start
