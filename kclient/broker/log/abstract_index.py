"""Base class of the offset index and the time index: sorted entries of fixed size in a file."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.files import File, Files

_LARGEST_FILE = 64 * 1024 * 1024


class CorruptIndexError(KafkaError):
    """An index file is inconsistent, or does not match its log (Kafka: CorruptIndexException)."""


class AbstractIndex(ABC):
    """A sparse index of one segment (Kafka: AbstractIndex).

    The entries are held in memory while the index is in use, and written through. Kafka maps a
    preallocated file instead. Accessing a mapping on a full or broken disk would end the process
    instead of raising an error.

    Guarded by the lock of the log it belongs to.

    Attributes:
        path: Path of the file.
        base_offset: Base offset of the segment.
        entries: Number of entries.
        is_open: Whether the entries are in memory.
        limit: Number of entries from which the index accepts no further entry of an append.
    """

    entry_size: ClassVar[int]
    closing_entries: ClassVar[int] = 0
    """Entries that only the closing of the segment adds."""

    def __init__(self, files: Files, path: Path, base_offset: int, max_index_size: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.entries = 0
        self.is_open = False
        self._max_index_size = max_index_size
        self._content = bytearray()
        self._set_capacity(0)
        self._file: File | None = None  # open while there is something to write
        self._unflushed = False
        self._defers_writes = False

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.name

    def open(self) -> None:
        """Read the entries. A missing file is created and the index accepts new entries.

        Raises:
            CorruptIndexError: The file is larger than any index.
        """
        existed = self._files.exists(self.path)
        self._content = self._read() if existed else bytearray()
        self.entries = len(self._content) // self.entry_size
        del self._content[self.size_in_bytes :]  # an incomplete entry
        self._set_capacity(self.entries if existed else self._most_entries())
        if not existed:
            self._files.open(self.path, create=True).close()
        self.is_open = True
        self._entries_changed()

    @property
    def is_full(self) -> bool:
        """Whether the index accepts no further entry of an append."""
        return self.entries >= self.limit

    @property
    def size_in_bytes(self) -> int:
        """Size of all entries."""
        return self.entries * self.entry_size

    @abstractmethod
    def sanity_check(self) -> None:
        """Raise CorruptIndexError if the file is inconsistent."""

    @abstractmethod
    def truncate_to(self, offset: int) -> None:
        """Remove every entry for this offset and above."""

    @abstractmethod
    def _entries_changed(self) -> None:
        """Update the cached last entry."""

    def resize_for_append(self) -> None:
        """Set the capacity of the index of a segment that is appended to."""
        self._set_capacity(max(self._most_entries(), self.entries))

    @contextmanager
    def deferred_writes(self) -> Iterator[None]:
        """Defer writes: entries added in the block are written at its end, by one write.

        Raises:
            OSError: The write failed; the file may lack entries that are here.
        """
        start = self.size_in_bytes
        self._defers_writes = True
        try:
            yield
        finally:
            self._defers_writes = False
        if self.size_in_bytes > start:
            self._writer().write_at(start, self._content[start:])

    def trim(self) -> None:
        """Accept no further entries, and truncate the file after the last one."""
        if not self.is_open:
            return
        if self._files.size(self.path) != self.size_in_bytes:
            self._writer().truncate(self.size_in_bytes)
        self._set_capacity(self.entries)
        self._close_file()

    def reset(self) -> None:
        """Remove all entries and truncate the file; the index accepts new entries."""
        self._writer(create=True).truncate(0)
        self._close_file()
        self._content.clear()
        self.entries = 0
        self.is_open = self._unflushed = True
        self.resize_for_append()
        self._entries_changed()

    def flush(self) -> None:
        """Flush the entries to disk."""
        if self._unflushed:
            self._writer().flush()
            self._unflushed = False
            if not self.is_open:
                self._close_file()

    def close(self) -> None:
        """Trim and release. Idempotent."""
        self.trim()
        self.release()

    def release(self) -> None:
        """Release the memory and close the file, which is left as it is. Idempotent."""
        self._content = bytearray()
        self._set_capacity(0)
        self.is_open = False
        self._close_file()

    def rename_to(self, path: Path) -> None:
        """Rename the file if it exists."""
        if self._files.exists(self.path):
            self._files.rename(self.path, path)
        self._set_path(path)

    def moved_to(self, directory: Path) -> None:
        """Update the path after the directory was renamed."""
        self._set_path(directory / self.path.name)

    def _append_entry(self, entry: bytes) -> None:
        if self.entries >= self._capacity:
            raise IllegalStateError(f"{self.name}: the index is full, at entry {self.entries}")
        self._unflushed = True
        if not self._defers_writes:
            self._writer().write_at(self.size_in_bytes, entry)
        self._content += entry
        self.entries += 1

    def _truncate_to_entries(self, entries: int) -> None:
        if entries < self.entries:
            self._unflushed = True
            self._writer().truncate(entries * self.entry_size)
            del self._content[entries * self.entry_size :]
            self.entries = entries
        self._entries_changed()

    def _set_capacity(self, entries: int) -> None:
        self._capacity = entries
        self.limit = entries - self.closing_entries

    def _most_entries(self) -> int:
        return self._max_index_size // self.entry_size

    def _read(self) -> bytearray:
        file = self._files.open(self.path)
        try:
            size = file.size()
            if size > max(_LARGEST_FILE, self._max_index_size):
                raise CorruptIndexError(
                    f"{self.name}: got {size} bytes, more than an index can have"
                )
            return bytearray(file.read_at(0, size))
        finally:
            file.close()

    def _writer(self, *, create: bool = False) -> File:
        # Opened for the first new entry, so that idle partitions hold no descriptors for indexes.
        if self._file is None:
            self._file = self._files.open(self.path, create=create)
        return self._file

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _set_path(self, path: Path) -> None:
        self.path = path
        if self._file is not None:
            self._file.path = path
