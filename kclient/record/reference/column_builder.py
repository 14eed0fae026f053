"""Builder of columns from records."""

from array import array
from collections.abc import Sequence

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import InvalidArgumentError
from kclient.record.batch_header import MAX_INT32, TimestampType
from kclient.record.columns import BinaryColumn, Columns
from kclient.record.record import Header

DEFAULT_MAX_BYTES = 2**30
"""Default size limit of a column, well below the range of its 32-bit offsets."""


class _BinaryColumnBuilder:
    """Builder of one column of byte strings."""

    __slots__ = ("data", "offsets", "validity")

    def __init__(self) -> None:
        self.offsets = array("i", [0])
        self.data = bytearray()
        self.validity: list[bool] = []

    def add(self, value: bytes | None) -> None:
        if value is not None:
            self.data += value
        if len(self.data) > MAX_INT32:
            raise RecordTooLargeError("columns: got more than 2 GiB in one column")
        self.offsets.append(len(self.data))
        self.validity.append(value is not None)

    def finish(self) -> BinaryColumn:
        return BinaryColumn(
            length=len(self.validity),
            offsets=bytearray(self.offsets.tobytes()),
            data=self.data,
            validity=None if all(self.validity) else _bitmap(self.validity),
        )


def _bitmap(flags: list[bool]) -> bytearray:
    bits = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        if flag:
            bits[index >> 3] |= 1 << (index & 7)
    return bits


class ColumnBuilder:
    """Builder of columns; records are added by `BatchCursor.take_columns`.

    Args:
        max_bytes: Maximum total size of the keys, the values or the headers.
    """

    __slots__ = (
        "_header_keys",
        "_header_offsets",
        "_header_values",
        "_keys",
        "_max_bytes",
        "_offsets",
        "_timestamp_types",
        "_timestamps",
        "_values",
        "next_offset",
    )

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        if not 0 < max_bytes <= MAX_INT32:
            raise InvalidArgumentError(f"max_bytes: got {max_bytes}, expected 1 to {MAX_INT32}")
        self._max_bytes = max_bytes
        self._offsets = array("q")
        self._timestamps = array("q")
        self._timestamp_types = array("b")
        self._keys = _BinaryColumnBuilder()
        self._values = _BinaryColumnBuilder()
        self._header_offsets = array("i", [0])
        self._header_keys = _BinaryColumnBuilder()
        self._header_values = _BinaryColumnBuilder()
        self.next_offset = -1

    @property
    def length(self) -> int:
        """Number of records added."""
        return len(self._offsets)

    def has_capacity(self, size: int) -> bool:
        """Return whether a record of `size` bytes fits; the first one always does."""
        used = max(
            len(self._keys.data),
            len(self._values.data),
            len(self._header_keys.data),
            len(self._header_values.data),
        )
        return used + size <= self._max_bytes or not self._offsets

    def add(
        self,
        offset: int,
        timestamp: int,
        timestamp_type: TimestampType,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> None:
        """Add a record."""
        self._offsets.append(offset)
        self._timestamps.append(timestamp)
        self._timestamp_types.append(timestamp_type)
        self._keys.add(key)
        self._values.add(value)
        for name, content in headers:
            self._header_keys.add(name.encode())
            self._header_values.add(content)
        self._header_offsets.append(len(self._header_keys.validity))
        self.next_offset = offset + 1

    def finish(self) -> Columns:
        """Return the columns; the builder must not be used afterwards."""
        return Columns(
            length=self.length,
            next_offset=self.next_offset,
            offsets=bytearray(self._offsets.tobytes()),
            timestamps=bytearray(self._timestamps.tobytes()),
            timestamp_types=bytearray(self._timestamp_types.tobytes()),
            untimed=sum(timestamp < 0 for timestamp in self._timestamps),
            keys=self._keys.finish(),
            values=self._values.finish(),
            header_offsets=bytearray(self._header_offsets.tobytes()),
            header_keys=self._header_keys.finish(),
            header_values=self._header_values.finish(),
        )
