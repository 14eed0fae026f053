"""File access as an interface, so that a simulated disk can stand in for the real one."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

TEMPORARY_SUFFIX = ".tmp"
"""What `replace_file` appends to the name of the file it replaces."""


class File(Protocol):
    """An open file, addressed by position; there is no cursor."""

    path: Path

    def size(self) -> int:
        """Return the length in bytes."""
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer at the end of the file."""
        ...

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `position`, or raise OSError."""
        ...

    def truncate(self, length: int) -> None:
        """Cut or extend the file to `length` bytes."""
        ...

    def flush(self) -> None:
        """Force the contents to the disk (fsync)."""
        ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, or -1 where there is none."""
        ...

    def close(self) -> None:
        """Close the file; idempotent."""
        ...


class Files(Protocol):
    """The file system."""

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, make the file if it is absent."""
        ...

    def read_bytes(self, path: Path) -> bytes:
        """Return the whole contents."""
        ...

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Replace the file's contents so that a crash leaves either the old or the new, flushed."""
        ...

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Rename, replacing the target.

        Args:
            source: Present path.
            target: New path.
            flushed: Whether to flush the directories; otherwise the caller calls `flush_directory`.
        """
        ...

    def remove(self, path: Path) -> None:
        """Delete a file; absent is no error."""
        ...

    def remove_tree(self, path: Path) -> None:
        """Delete a directory with all it holds; absent is no error."""
        ...

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        """Create a directory and its parents with mode 0700; existing is no error.

        Args:
            path: The directory.
            flushed: Whether to force the new names to the disk, so that whatever is flushed in
                there later can be found; otherwise the caller calls `flush_directory`.
        """
        ...

    def flush_directory(self, path: Path) -> None:
        """Force a directory's entries to the disk, so that files made in it outlive a crash."""
        ...

    def list_directory(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def exists(self, path: Path) -> bool:
        """Return whether a path exists."""
        ...

    def is_directory(self, path: Path) -> bool:
        """Return whether a path is a directory and not a link to one."""
        ...

    def size(self, path: Path) -> int:
        """Return a file's length in bytes."""
        ...

    def modified_ms(self, path: Path) -> int:
        """Return when the file was last written, milliseconds since the epoch."""
        ...

    def lock(self, path: Path) -> AbstractContextManager[None]:
        """Take an exclusive lock on a file, held until the context ends.

        Raises:
            BlockingIOError: Another holder has it.
        """
        ...


def replace_file(files: Files, path: Path, data: bytes) -> None:
    """Do what `Files.write_atomic` promises, in its steps: a new file, flushed, takes the name."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    file = files.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.flush()
    except OSError:
        file.close()
        files.remove(temporary)
        raise
    file.close()
    files.rename(temporary, path)


class FileSlice:
    """A stretch of a file that goes onto the wire without passing through Python.

    Anything that is sent may hold one in place of bytes; the transport uses sendfile where it can.

    Attributes:
        file: Open file; it stays open until the slice was sent.
        position: First byte.
        length: Number of bytes.
    """

    __slots__ = ("file", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """Return the bytes, for a transport without sendfile or a reader that wants them."""
        return self.file.read_at(self.position, self.length)


WireBytes = bytes | bytearray | memoryview
"""Bytes in memory, in any of the forms the codecs take."""

WirePart = WireBytes | FileSlice
"""One piece of a message on its way out."""
