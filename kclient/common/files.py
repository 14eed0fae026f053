"""Interface of the file system, which a simulation implements in memory."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

TEMPORARY_SUFFIX = ".tmp"
"""Suffix of the temporary file of `replace_file`."""


class File(Protocol):
    """Open file, addressed by position; there is no cursor."""

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
        """Truncate or extend the file to `length` bytes."""
        ...

    def flush(self) -> None:
        """Force the contents to the disk (fsync)."""
        ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, or -1 if there is none."""
        ...

    def close(self) -> None:
        """Close the file; idempotent."""
        ...


class Files(Protocol):
    """File system."""

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, create the file if it is absent."""
        ...

    def read_bytes(self, path: Path) -> bytes:
        """Return the contents of a file."""
        ...

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Replace a file atomically: after a crash it has either the old or the new contents."""
        ...

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Rename, replacing the target.

        Args:
            source: Present path.
            target: New path.
            flushed: Whether to flush the directories; otherwise the caller calls `flush_directory`.
        """
        ...

    def link(self, source: Path, target: Path) -> None:
        """Give a file another name, and flush the directory of that name.

        Raises:
            OSError: The name is in use, or the file system has no such links, or no more of them.
        """
        ...

    def remove(self, path: Path) -> None:
        """Delete a file, if it exists."""
        ...

    def remove_tree(self, path: Path) -> None:
        """Delete a directory with its contents, if it exists."""
        ...

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        """Create a directory and its parents with mode 0700, if they do not exist.

        Args:
            path: Directory.
            flushed: Whether to flush the parent directories, so that files in the new directory
                survive a crash; otherwise the caller calls `flush_directory`.
        """
        ...

    def flush_directory(self, path: Path) -> None:
        """Flush a directory's entries, so that files created in it survive a crash."""
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

    def volume_size(self, path: Path) -> tuple[int, int]:
        """Return the bytes of the volume of a path: all, and those that can still be written."""
        ...

    def lock(self, path: Path) -> AbstractContextManager[None]:
        """Acquire an exclusive lock on a file, held until the context ends.

        Raises:
            BlockingIOError: The file is locked.
        """
        ...


def replace_file(files: Files, path: Path, data: bytes) -> None:
    """Implement `Files.write_atomic`: write and flush a temporary file, then rename it."""
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
    """Range of a file that is sent without a copy in Python, by sendfile if possible.

    It may replace bytes in any outgoing message.

    Attributes:
        file: Open file; it stays open until the slice is sent.
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
        """Return the bytes, for readers and for transports without sendfile."""
        return self.file.read_at(self.position, self.length)


WireBytes = bytes | bytearray | memoryview
"""Bytes in memory, in any form that the codecs accept."""

WirePart = WireBytes | FileSlice
"""Part of an outgoing message."""
