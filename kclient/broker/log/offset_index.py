"""Offset index: maps offsets to positions in the segment file."""

import struct
from bisect import bisect_right
from typing import ClassVar, NamedTuple

from kclient.broker.log.abstract_index import AbstractIndex, CorruptIndexError
from kclient.common.errors import InvalidOffsetError

_ENTRY = struct.Struct(">ii")


class OffsetPosition(NamedTuple):
    """Last offset of a batch, and the position of the batch."""

    offset: int
    position: int


class OffsetIndex(AbstractIndex):
    """Index with entries of 8 bytes: relative offset, position (Kafka: OffsetIndex)."""

    entry_size: ClassVar[int] = _ENTRY.size
    _last_offset = -1

    @property
    def last_offset(self) -> int:
        """Offset of the last entry, or the base offset if there is none."""
        return self._last_offset

    def entry(self, index: int) -> OffsetPosition:
        """Return an entry by its number, below `entries`."""
        relative, position = _ENTRY.unpack_from(self._content, index * _ENTRY.size)
        return OffsetPosition(self.base_offset + relative, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry whose offset is at most `offset`, or the start of the segment."""
        index = self._upper_bound(offset) - 1
        return self.entry(index) if index >= 0 else OffsetPosition(self.base_offset, 0)

    def batch_start(self, position: int) -> int:
        """Return the position of the last indexed batch at or before a position."""
        behind = bisect_right(range(self.entries), position, key=lambda n: self.entry(n).position)
        return self.entry(behind - 1).position if behind else 0

    def append(self, offset: int, position: int) -> None:
        """Append an entry.

        Raises:
            InvalidOffsetError: The offset is not above that of the last entry.
            OSError: The write failed; the entry was not added.
        """
        if self.entries and offset <= self._last_offset:
            raise InvalidOffsetError(
                f"{self.name}: got offset {offset}, expected more than {self._last_offset}"
            )
        self._append_entry(_ENTRY.pack(offset - self.base_offset, position))
        self._last_offset = offset

    def truncate_to(self, offset: int) -> None:
        """Remove every entry for this offset and above."""
        self._truncate_to_entries(self._upper_bound(offset - 1))

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
        if last.offset < first.offset or first.offset < self.base_offset or last.position < 0:
            raise CorruptIndexError(
                f"{self.name}: the last entry {last} is before the first {first}"
            )

    def _entries_changed(self) -> None:
        self._last_offset = (
            self.entry(self.entries - 1).offset if self.entries else self.base_offset
        )

    def _upper_bound(self, offset: int) -> int:
        """Return the number of entries whose offset is at most `offset`."""
        target = offset - self.base_offset
        content, unpack = self._content, _ENTRY.unpack_from
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if unpack(content, middle * 8)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low
