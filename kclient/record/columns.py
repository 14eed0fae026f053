"""Columnar records: buffers in Arrow's layout, without an object per record."""

import struct
from typing import NamedTuple

from kclient.common.errors import InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.record.record import Header


class BinaryColumn(NamedTuple):
    """Byte strings in Arrow's layout of a binary array.

    Attributes:
        length: Number of rows.
        offsets: ``length + 1`` integers, native order: row i is ``data[offsets[i]:offsets[i+1]]``.
        data: Bytes of all rows.
        validity: Bit i (least significant first) is 0 if row i is null; None if no row is null.
        first: Row of the buffers at which the column starts.
        wide: Whether `offsets` are 64 bits wide instead of 32.
    """

    length: int
    offsets: WireBytes
    data: WireBytes
    validity: WireBytes | None = None
    first: int = 0
    wide: bool = False

    def check(self) -> None:
        """Check that the buffers are large enough for the rows.

        Raises:
            InvalidArgumentError: They are too short.
        """
        rows = self.first + self.length
        if (
            min(self.first, self.length) < 0
            or memoryview(self.offsets).nbytes // (8 if self.wide else 4) < rows + 1
            or (self.validity is not None and memoryview(self.validity).nbytes * 8 < rows)
        ):
            raise InvalidArgumentError("column: its buffers are too short for its length")

    def row(self, index: int) -> bytes | None:
        """Return the bytes of a row, or None.

        Raises:
            InvalidArgumentError: The offsets leave the data.
        """
        at = self.first + index
        if self.validity is not None and not self.validity[at >> 3] >> (at & 7) & 1:
            return None
        start, end = struct.unpack_from(
            "=qq" if self.wide else "=ii", self.offsets, at * (8 if self.wide else 4)
        )
        if not 0 <= start <= end <= len(self.data):
            raise InvalidArgumentError(f"column: row {index} exceeds the data")
        return bytes(self.data[start:end])


class HeaderColumn(NamedTuple):
    """Lists of headers in Arrow's layout of a list array.

    Attributes:
        length: Number of rows.
        offsets: ``length + 1`` integers, native order: row i has the headers from ``offsets[i]`` to
            before ``offsets[i + 1]``.
        keys: Names of all headers, UTF-8.
        values: Values of all headers.
        validity: As in `BinaryColumn`; a null row has no headers.
        first: Row of the buffers at which the column starts.
        wide: Whether `offsets` are 64 bits wide instead of 32.
    """

    length: int
    offsets: WireBytes
    keys: BinaryColumn
    values: BinaryColumn
    validity: WireBytes | None = None
    first: int = 0
    wide: bool = False

    def check(self) -> None:
        """Check that the buffers are long enough for the rows.

        Raises:
            InvalidArgumentError: They are not.
        """
        own = BinaryColumn(self.length, self.offsets, b"", self.validity, self.first, self.wide)
        own.check()  # of the same form
        self.keys.check()
        self.values.check()
        if self.keys.length != self.values.length:
            raise InvalidArgumentError("column: its header keys and values differ in number")

    def span(self, index: int) -> range:
        """Return the range of a row's headers in the keys and values.

        Raises:
            InvalidArgumentError: The offsets leave the data.
        """
        at = self.first + index
        if self.validity is not None and not self.validity[at >> 3] >> (at & 7) & 1:
            return range(0)
        start, end = struct.unpack_from(
            "=qq" if self.wide else "=ii", self.offsets, at * (8 if self.wide else 4)
        )
        if not 0 <= start <= end <= self.keys.length:
            raise InvalidArgumentError(f"column: row {index} exceeds the data")
        return range(start, end)


class Columns(NamedTuple):
    """Columnar records of one partition.

    Attributes:
        length: Number of records.
        next_offset: Next offset to read: after the last batch or record taken.
        offsets: Offsets, 64 bits, native order.
        timestamps: Milliseconds since the epoch, 64 bits, native order.
        timestamp_types: One byte per record, see `TimestampType`.
        untimed: Number of records without a timestamp, which is -1 for them.
        keys: Keys.
        values: Values.
        header_offsets: ``length + 1`` integers of 32 bits: record i has the headers from
            ``header_offsets[i]`` to before ``header_offsets[i + 1]``.
        header_keys: Names of all headers, UTF-8.
        header_values: Values of all headers.
    """

    length: int
    next_offset: int
    offsets: bytearray
    timestamps: bytearray
    timestamp_types: bytearray
    untimed: int
    keys: BinaryColumn
    values: BinaryColumn
    header_offsets: bytearray
    header_keys: BinaryColumn
    header_values: BinaryColumn


def column_cell(what: str, column: BinaryColumn, row: int, shown: int) -> bytes | None:
    """Return a row of a column; an error names the row `shown`.

    Raises:
        InvalidArgumentError: It exceeds the data of its column.
    """
    try:
        return column.row(row)
    except InvalidArgumentError:
        raise _exceeds(what, shown) from None


def _exceeds(what: str, row: int) -> InvalidArgumentError:
    return InvalidArgumentError(f"{what}: row {row} exceeds the data of its column")


def read_headers(column: HeaderColumn, row: int, shown: int) -> list[Header]:
    """Return the headers of a row.

    Args:
        column: The column.
        row: The row.
        shown: Number of the row in error messages.

    Raises:
        InvalidArgumentError: It exceeds the data of its column, or a name is null or not UTF-8.
    """
    try:
        places = column.span(row)
    except InvalidArgumentError:
        raise _exceeds("headers", shown) from None
    return [_header(column, place, shown) for place in places]


def _header(column: HeaderColumn, place: int, shown: int) -> Header:
    name = column_cell("headers", column.keys, place, shown)
    value = column_cell("headers", column.values, place, shown)
    if name is None:
        raise InvalidArgumentError(f"headers: row {shown} has a header without a name")
    try:
        return name.decode(), value
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            f"headers: row {shown} has a header whose name is not UTF-8"
        ) from None
