"""What the offset index and the time index share: sorted entries of fixed size in a mapped file."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from kclient.common.errors import IllegalStateError
from kclient.common.files import Files, MappedFile


class AbstractIndex(ABC):
    """A sparse index of one segment (Kafka: AbstractIndex).

    The file of the active segment is preallocated, so that its mapping need not grow; it is
    trimmed to its entries when the segment is rolled or closed. Look-ups read the mapping;
    entries are written through the file, because a store into a mapping of a full disk would end
    the process. Guarded by the lock of the log it belongs to.
    """

    entry_size: ClassVar[int]

    def __init__(self, files: Files, path: Path, base_offset: int, max_index_size: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self._max_index_size = max_index_size
        self._mapped: MappedFile | None = None
        self._view = memoryview(b"")
        self._capacity = 0
        self.entries = 0

    def open(self) -> None:
        """Map the file: all its entries if it exists, else room for new ones."""
        if self._files.exists(self.path):
            length = self._files.size(self.path)
            self.entries = length // self.entry_size
            self._map(length)
        else:
            self._files.open(self.path, create=True).close()
            self._map(self._preallocated())
        self._entries_changed()

    @property
    def is_open(self) -> bool:
        """Whether the file is mapped."""
        return self._mapped is not None

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another entry."""
        return self.entries >= self._capacity

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all entries."""
        return self.entries * self.entry_size

    @abstractmethod
    def sanity_check(self) -> None:
        """Raise CorruptIndexError where the file contradicts itself."""

    @abstractmethod
    def truncate_to(self, offset: int) -> None:
        """Remove every entry for this offset and above."""

    @abstractmethod
    def _entries_changed(self) -> None:
        """Read again what is remembered of the last entry."""

    def resize_to_max(self) -> None:
        """Make room for new entries in the index of a segment that will be appended to."""
        self._resize(max(self._preallocated(), self.size_in_bytes))

    def trim_to_valid_size(self) -> None:
        """Cut the file behind the last entry."""
        if self.is_open:
            self._resize(self.size_in_bytes)

    def reset(self) -> None:
        """Forget all entries and make room for new ones."""
        self._truncate_to_entries(0)
        self.resize_to_max()

    def flush(self) -> None:
        """Force the entries to the disk."""
        if self._mapped is not None:
            self._mapped.flush()

    def close(self) -> None:
        """Trim and unmap; idempotent."""
        self.trim_to_valid_size()
        self.unmap()

    def unmap(self) -> None:
        """Unmap and leave the file as it is; idempotent."""
        self._view.release()
        self._view = memoryview(b"")
        self._capacity = 0
        if self._mapped is not None:
            self._mapped.close()
            self._mapped = None

    def rename_to(self, path: Path) -> None:
        """Rename the file; a file that was never made needs no renaming."""
        if self._files.exists(self.path):
            self._files.rename(self.path, path)
        self.path = path

    def moved_to(self, directory: Path) -> None:
        """Note that the directory was renamed."""
        self.path = directory / self.path.name

    def _append_entry(self, entry: bytes) -> None:
        if self._mapped is None or self.entries >= self._capacity:
            raise IllegalStateError(f"{self.path.name}: no room for entry {self.entries}")
        self._mapped.write_at(self.entries * self.entry_size, entry)
        self.entries += 1

    def _truncate_to_entries(self, entries: int) -> None:
        self.entries = entries
        self._entries_changed()

    def _preallocated(self) -> int:
        return self._max_index_size - self._max_index_size % self.entry_size

    def _resize(self, length: int) -> None:
        if self.is_open and self._capacity * self.entry_size == length:
            return
        self.unmap()
        file = self._files.open(self.path, create=True)
        try:
            file.truncate(length)
        finally:
            file.close()
        self._map(length)

    def _map(self, length: int) -> None:
        # An empty file cannot be mapped; its index has no entries and no room.
        self._mapped = self._files.map(self.path, length) if length else _NothingMapped()
        self._view = self._mapped.view()
        self._capacity = length // self.entry_size


class _NothingMapped:
    """Stands in for the mapping of an empty file."""

    def view(self) -> memoryview:
        return memoryview(b"")

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        raise IllegalStateError(f"no room for {len(data)} bytes at {position}: empty mapping")

    def flush(self) -> None:
        """There is nothing to write."""

    def close(self) -> None:
        """There is nothing to unmap."""
