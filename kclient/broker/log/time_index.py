"""Time index: maps timestamps to the offsets of the batches that contain them."""

import struct
from typing import ClassVar, NamedTuple

from kclient.broker.log.abstract_index import AbstractIndex, CorruptIndexError
from kclient.common.errors import InvalidOffsetError

_ENTRY = struct.Struct(">qi")
NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """Timestamp in milliseconds, and the last offset of its batch."""

    timestamp: int
    offset: int


UNKNOWN_TIMESTAMP_OFFSET = TimestampOffset(NO_TIMESTAMP, -1)


class TimeIndex(AbstractIndex):
    """Index with entries of 12 bytes: max timestamp so far, relative offset (Kafka: TimeIndex)."""

    entry_size: ClassVar[int] = _ENTRY.size
    closing_entries: ClassVar[int] = 1
    _last = UNKNOWN_TIMESTAMP_OFFSET

    @property
    def last_entry(self) -> TimestampOffset:
        """Last entry, or (-1, base offset)."""
        return self._last

    def entry(self, index: int) -> TimestampOffset:
        """Return an entry by its number, below `entries`."""
        timestamp, relative = _ENTRY.unpack_from(self._content, index * _ENTRY.size)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry whose timestamp is at most this one, or the segment's start."""
        index = self._upper_bound(timestamp) - 1
        return self.entry(index) if index >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int, *, closing: bool = False) -> None:
        """Append an entry if its timestamp is greater than that of the last one.

        Args:
            timestamp: Max timestamp of the segment so far.
            offset: Last offset of its batch.
            closing: Use the capacity that is reserved for the final entry of a segment.

        Raises:
            InvalidOffsetError: The offset is below that of the last entry.
            OSError: The write failed; the entry was not added.
        """
        if timestamp <= self._last.timestamp:
            return
        if self.entries and offset < self._last.offset:
            raise InvalidOffsetError(
                f"{self.name}: got offset {offset}, expected at least {self._last.offset}"
            )
        if closing and self.entries >= self._capacity:
            self._capacity = self.entries + 1
        self._append_entry(_ENTRY.pack(timestamp, offset - self.base_offset))
        self._last = TimestampOffset(timestamp, offset)

    def truncate_to(self, offset: int) -> None:
        """Remove every entry for this offset and above."""
        entries = self.entries
        while entries and self.entry(entries - 1).offset >= offset:
            entries -= 1
        self._truncate_to_entries(entries)

    def sanity_check(self) -> None:
        """Check that the file is consistent.

        Raises:
            CorruptIndexError: The size is not a multiple of the entry size, or the last entry is
                before the first.
        """
        if self._files.size(self.path) % _ENTRY.size:
            raise CorruptIndexError(f"{self.name}: its size is no multiple of {_ENTRY.size}")
        if not self.entries:
            return
        first, last = self.entry(0), self.entry(self.entries - 1)
        if last.timestamp < first.timestamp or last.offset < self.base_offset:
            raise CorruptIndexError(
                f"{self.name}: the last entry {last} is before the first {first}"
            )

    def _entries_changed(self) -> None:
        self._last = (
            self.entry(self.entries - 1)
            if self.entries
            else TimestampOffset(NO_TIMESTAMP, self.base_offset)
        )

    def _upper_bound(self, timestamp: int) -> int:
        """Return the number of entries whose timestamp is at most this one."""
        content, unpack = self._content, _ENTRY.unpack_from
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if unpack(content, middle * 12)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        return low
