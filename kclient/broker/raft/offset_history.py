"""Values that take effect at an offset of the log, and are undone by truncation.

(Kafka: TreeMapLogHistory)
"""

from bisect import bisect_left, bisect_right
from typing import Generic, NamedTuple, TypeVar

from kclient.common.errors import IllegalStateError

Value = TypeVar("Value")

STATIC_OFFSET = -2
"""Offset of a value that is configured and in no log; -1 is that of the bootstrap snapshot."""


class Entry(NamedTuple, Generic[Value]):
    """Value and the offset of its record."""

    offset: int
    value: Value


class OffsetHistory(Generic[Value]):
    """Values by the offset of their record, in ascending order.

    Args:
        initial: Value before the first record.
    """

    def __init__(self, initial: Value) -> None:
        self._initial = initial
        self._entries: list[Entry[Value]] = []

    @property
    def last(self) -> Entry[Value]:
        """Latest value with its offset; `STATIC_OFFSET` if there is no record."""
        return self._entries[-1] if self._entries else Entry(STATIC_OFFSET, self._initial)

    @property
    def last_value(self) -> Value:
        """Latest value."""
        return self.last.value

    @property
    def last_offset(self) -> int:
        """Offset of the latest value."""
        return self.last.offset

    @property
    def entries(self) -> list[Entry[Value]]:
        """All values with their offsets."""
        return list(self._entries)

    def add(self, offset: int, value: Value) -> None:
        """Add the value of a record.

        Raises:
            IllegalStateError: The offset is not above that of the latest value.
        """
        if offset <= self.last.offset:
            raise IllegalStateError(
                f"history: got offset {offset}, expected more than {self.last.offset}"
            )
        self._entries.append(Entry(offset, value))

    def value_at(self, offset: int) -> Entry[Value]:
        """Return the value in force at an offset: the latest one at or before it."""
        found = bisect_right(self._entries, offset, key=lambda entry: entry.offset)
        return self._entries[found - 1] if found else Entry(STATIC_OFFSET, self._initial)

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the values at or above an offset."""
        del self._entries[bisect_left(self._entries, end_offset, key=lambda entry: entry.offset) :]

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the values that another one at or before an offset has replaced."""
        found = bisect_right(self._entries, start_offset, key=lambda entry: entry.offset)
        del self._entries[: max(0, found - 1)]

    def clear(self) -> None:
        """Remove all values but the initial one."""
        self._entries.clear()
