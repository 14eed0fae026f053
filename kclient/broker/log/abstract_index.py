"""What the offset index and the time index share: sorted entries of fixed size in a file."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from kclient.broker.log.log_errors import CorruptIndexError
from kclient.common.errors import IllegalStateError
from kclient.common.files import File, Files

_LARGEST_FILE = 64 * 1024 * 1024


class AbstractIndex(ABC):
    """A sparse index of one segment (Kafka: AbstractIndex).

    The entries are held in memory while the index is in use, and written through. Kafka maps the
    file instead, and makes it as large as it may become. Here a mapping would be a danger: where
    the disk is full or broken, touching it ends the process instead of raising an error.

    Guarded by the lock of the log it belongs to.

    Attributes:
        path: Where the file is.
        base_offset: The segment's.
        entries: How many there are.
        is_open: Whether they are in memory.
    """

    entry_size: ClassVar[int]

    def __init__(self, files: Files, path: Path, base_offset: int, max_index_size: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.entries = 0
        self.is_open = False
        self._max_index_size = max_index_size
        self._content = bytearray()
        self._capacity = 0
        self._file: File | None = None  # open while there is something to write
        self._unflushed = False
        self._holds_back = False

    def open(self) -> None:
        """Read the entries; where there is no file, make one and take new entries.

        Raises:
            CorruptIndexError: The file is larger than any index.
        """
        existed = self._files.exists(self.path)
        self._content = self._read() if existed else bytearray()
        self.entries = len(self._content) // self.entry_size
        del self._content[self.size_in_bytes :]  # half an entry is none
        self._capacity = self.entries if existed else self._most_entries()
        if not existed:
            self._files.open(self.path, create=True).close()
        self.is_open = True
        self._entries_changed()

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

    def take_entries(self) -> None:
        """Make room for new entries in the index of a segment that will be appended to."""
        self._capacity = max(self._most_entries(), self.entries)

    @contextmanager
    def written_at_once(self) -> Iterator[None]:
        """Write the entries that are added within in one piece at the end.

        Raises:
            OSError: The write failed; the file may lack entries that are here.
        """
        start = self.size_in_bytes
        self._holds_back = True
        try:
            yield
        finally:
            self._holds_back = False
        if self.size_in_bytes > start:
            self._writer().write_at(start, self._content[start:])

    def trim(self) -> None:
        """Take no more entries, and cut the file behind the last one."""
        if not self.is_open:
            return
        if self._files.size(self.path) != self.size_in_bytes:
            self._writer().truncate(self.size_in_bytes)
        self._capacity = self.entries
        self._close_file()

    def reset(self) -> None:
        """Forget all entries, whatever the file holds, and make room for new ones."""
        self._writer(create=True).truncate(0)
        self._close_file()
        self._content.clear()
        self.entries = 0
        self.is_open = self._unflushed = True
        self.take_entries()
        self._entries_changed()

    def flush(self) -> None:
        """Force the entries to the disk."""
        if self._unflushed:
            self._writer().flush()
            self._unflushed = False
            if not self.is_open:
                self._close_file()

    def close(self) -> None:
        """Trim and release; idempotent."""
        self.trim()
        self.release()

    def release(self) -> None:
        """Let go of memory and file, and leave the file as it is; idempotent."""
        self._content = bytearray()
        self._capacity = 0
        self.is_open = False
        self._close_file()

    def rename_to(self, path: Path) -> None:
        """Rename the file; a file that was never made needs no renaming."""
        if self._files.exists(self.path):
            self._files.rename(self.path, path)
        self._set_path(path)

    def moved_to(self, directory: Path) -> None:
        """Note that the directory was renamed."""
        self._set_path(directory / self.path.name)

    def _append_entry(self, entry: bytes) -> None:
        if self.entries >= self._capacity:
            raise IllegalStateError(f"{self.path.name}: no room for entry {self.entries}")
        self._unflushed = True
        if not self._holds_back:
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

    def _most_entries(self) -> int:
        return self._max_index_size // self.entry_size

    def _read(self) -> bytearray:
        file = self._files.open(self.path)
        try:
            size = file.size()
            if size > max(_LARGEST_FILE, self._max_index_size):
                raise CorruptIndexError(f"{self.path.name}: got {size} bytes, too many")
            return bytearray(file.read_at(0, size))
        finally:
            file.close()

    def _writer(self, *, create: bool = False) -> File:
        # Opened with the first new entry: an idle partition holds no descriptor for its indexes.
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
