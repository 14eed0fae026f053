"""`Files` of the operating system.

No other module of the package opens, locks or deletes files.
"""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

from kclient.common.files import File, replace_file

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
_LOCK_WHOLE_FILE = struct.Struct("hhqqi0q")


def _open(path: Path, flags: int) -> int:
    return os.open(path, flags | _FLAGS, _FILE_MODE)


def _open_existing(path: Path) -> int:
    """Open for reading and writing or, without the permission to write, for reading only.

    That is sufficient for a dump of another user's files; a writer fails at its first write.
    """
    try:
        return _open(path, os.O_RDWR)
    except OSError as problem:
        if problem.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        return _open(path, os.O_RDONLY)


def _write_rest(
    descriptor: int, position: int, data: bytes | bytearray | memoryview, done: int
) -> None:
    """Write what follows the first `done` bytes of `data`."""
    view = memoryview(data).cast("B")
    while done < len(view):
        # A short write is no error by itself: the next call raises the reason.
        written = os.pwrite(descriptor, view[done:], position + done)
        if written <= 0:
            raise OSError(errno.EIO, f"wrote {done} of {len(view)} bytes")
        done += written


class SystemFile:
    """File of the operating system, addressed by position."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def __del__(self) -> None:
        self.close()

    def size(self) -> int:
        """Return the length in bytes."""
        return os.fstat(self.fileno()).st_size

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer at the end of the file."""
        data = os.pread(self.fileno(), length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        missing = length - len(data)
        while missing:
            part = os.pread(self.fileno(), missing, position + length - missing)
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `position`, or raise OSError."""
        written = os.pwrite(self._descriptor, data, position)  # EBADF if the file was closed
        if written < len(data):
            _write_rest(self.fileno(), position, data, max(written, 0))

    def truncate(self, length: int) -> None:
        """Truncate or extend the file to `length` bytes."""
        os.ftruncate(self.fileno(), length)

    def flush(self) -> None:
        """Force the contents to the disk (fsync)."""
        os.fsync(self.fileno())

    def fileno(self) -> int:
        """Return the descriptor for sendfile.

        Raises:
            OSError: The file was closed (EBADF).
        """
        descriptor = self._descriptor
        if descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed", str(self.path))
        return descriptor

    def close(self) -> None:
        """Close the file; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class SystemFiles:
    """File system of the operating system. Symbolic links as last part are not followed."""

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, create the file if it is absent."""
        descriptor = _open(path, os.O_RDWR | os.O_CREAT) if create else _open_existing(path)
        file = SystemFile(path, descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            file.close()
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file

    def read_bytes(self, path: Path) -> bytes:
        """Return the contents of a file."""
        with os.fdopen(_open(path, os.O_RDONLY), "rb") as stream:
            return stream.read()

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Replace a file atomically: after a crash it has either the old or the new contents."""
        replace_file(self, path, data)

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Rename, replacing the target, and flush the directories unless `flushed` is false."""
        if not flushed:
            os.rename(source, target)
            return
        # Opened before the rename: if no descriptor is left, nothing is changed.
        with ExitStack() as stack:
            directories = [
                stack.enter_context(_opened_directory(parent))
                for parent in dict.fromkeys([target.parent, source.parent])
            ]
            os.rename(source, target)
            for directory in directories:
                os.fsync(directory)

    def link(self, source: Path, target: Path) -> None:
        """Give a file another name, and flush the directory of that name."""
        with _opened_directory(target.parent) as directory:
            os.link(source, target, follow_symlinks=False)
            os.fsync(directory)

    def remove(self, path: Path) -> None:
        """Delete a file, if it exists."""
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        """Delete a directory with its contents, if it exists."""
        # Imported with the first directory: it imports three compression libraries.
        rmtree = import_module("shutil").rmtree
        try:
            rmtree(path)
        except FileNotFoundError:
            # Either the directory does not exist, or a file in it was deleted concurrently.
            if self.exists(path):
                rmtree(path)

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        """Create a directory and its parents with mode 0700, if they do not exist."""
        if path.is_dir():
            return
        missing = []
        parent = path
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        for directory in reversed(missing):
            directory.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
            if flushed:
                self.flush_directory(directory.parent)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))

    def flush_directory(self, path: Path) -> None:
        """Flush a directory's entries."""
        with _opened_directory(path) as directory:
            os.fsync(directory)

    def list_directory(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(os.listdir(path))

    def exists(self, path: Path) -> bool:
        """Return whether a path exists."""
        return os.path.lexists(path)

    def is_directory(self, path: Path) -> bool:
        """Return whether a path is a directory and not a link to one."""
        return path.is_dir() and not path.is_symlink()

    def size(self, path: Path) -> int:
        """Return a file's length in bytes."""
        return os.stat(path, follow_symlinks=False).st_size

    def modified_ms(self, path: Path) -> int:
        """Return when the file was last written, milliseconds since the epoch."""
        return os.stat(path, follow_symlinks=False).st_mtime_ns // 1_000_000

    def volume_size(self, path: Path) -> tuple[int, int]:
        """Return the bytes of the volume of a path: all, and those that can still be written."""
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def lock(self, path: Path) -> AbstractContextManager[None]:
        """Acquire an exclusive lock on a file, held until the context ends.

        The lock is acquired by this call, not when the context is entered. It excludes other
        holders in this process as well as other processes, including the file lock of a JVM.

        Raises:
            BlockingIOError: The file is locked.
        """
        descriptor = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(descriptor)
        except OSError as problem:
            os.close(descriptor)
            if problem.errno in {errno.EACCES, errno.EAGAIN}:
                raise BlockingIOError(errno.EAGAIN, "locked by another", str(path)) from None
            raise
        return _held(descriptor)


@contextmanager
def _opened_directory(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    # Bound to the open file, not to the process: two brokers in one process exclude each other,
    # and closing another descriptor of the same file does not release the lock.
    whole_file = _LOCK_WHOLE_FILE.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(descriptor, command, whole_file)


@contextmanager
def _held(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
