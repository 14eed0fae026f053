"""The time index: from a timestamp to the offset up to which no later timestamp was seen."""

import struct
from typing import ClassVar, NamedTuple

from kclient.broker.log.abstract_index import AbstractIndex
from kclient.broker.log.log_errors import CorruptIndexError
from kclient.common.errors import InvalidOffsetError

_ENTRY = struct.Struct(">qi")
NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """A timestamp in milliseconds, and the last offset of the batch it was seen in."""

    timestamp: int
    offset: int


UNKNOWN_TIMESTAMP_OFFSET = TimestampOffset(NO_TIMESTAMP, -1)


class TimeIndex(AbstractIndex):
    """Entries of 12 bytes: greatest timestamp so far, relative offset (Kafka: TimeIndex)."""

    entry_size: ClassVar[int] = _ENTRY.size
    _last = UNKNOWN_TIMESTAMP_OFFSET

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base offset) where there is none."""
        return self._last

    @property
    def is_full(self) -> bool:
        """Whether only the entry is left that is written when the segment is closed."""
        return self.entries >= self._capacity - 1

    def entry(self, index: int) -> TimestampOffset:
        """Return the entry with a number below `entries`."""
        timestamp, relative = _ENTRY.unpack_from(self._content, index * _ENTRY.size)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry whose timestamp is at most this one, or the segment's start."""
        index = self._upper_bound(timestamp) - 1
        return self.entry(index) if index >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int, *, closing: bool = False) -> None:
        """Add an entry, unless its timestamp is no greater than the last one's.

        Args:
            timestamp: Greatest timestamp of the segment so far.
            offset: Last offset of the batch that brought it.
            closing: Take the room that is kept for the last entry of a segment.

        Raises:
            InvalidOffsetError: The offset is before the last entry's.
            OSError: The write failed; the entry is not there.
        """
        if timestamp <= self._last.timestamp:
            return
        if self.entries and offset < self._last.offset:
            raise InvalidOffsetError(
                f"{self.path.name}: got offset {offset}, expected at least {self._last.offset}"
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
        """Compare the file with itself.

        Raises:
            CorruptIndexError: Its length is no multiple of an entry's, or its last entry is
                before its first.
        """
        if self._files.size(self.path) % _ENTRY.size:
            raise CorruptIndexError(f"{self.path.name}: its size is no multiple of {_ENTRY.size}")
        if not self.entries:
            return
        first, last = self.entry(0), self.entry(self.entries - 1)
        if last.timestamp < first.timestamp or last.offset < self.base_offset:
            raise CorruptIndexError(
                f"{self.path.name}: the last entry {last} is before the first {first}"
            )

    def _entries_changed(self) -> None:
        self._last = (
            self.entry(self.entries - 1)
            if self.entries
            else TimestampOffset(NO_TIMESTAMP, self.base_offset)
        )

    def _upper_bound(self, timestamp: int) -> int:
        """Return how many entries have a timestamp of at most this one."""
        content, unpack = self._content, _ENTRY.unpack_from
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if unpack(content, middle * 12)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        return low
