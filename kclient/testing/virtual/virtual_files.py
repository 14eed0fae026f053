"""The files of one process on a virtual disk, in the place of the operating system.

Every call behaves like the one of `kclient.common.system_files`, errors included, which a test
compares. There are no symbolic links on a virtual disk.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from kclient.common.files import File, replace_file
from kclient.testing.virtual.virtual_disk import (
    VirtualDirectory,
    VirtualDisk,
    VirtualInode,
    failure,
)

_OPEN_FILES = 1024
_VOLUME = 1 << 40


class VirtualFiles:
    """File access of a process to its machine's disk.

    Args:
        disk: The machine's disk.
        gate: Called before every operation; an exception prevents the operation.
        open_limit: Number of files that may be open at once; more fail with EMFILE.

    Attributes:
        open_limit: As given; may be changed.
    """

    def __init__(
        self,
        disk: VirtualDisk,
        gate: Callable[[], None] = lambda: None,
        open_limit: int = _OPEN_FILES,
    ) -> None:
        self.disk = disk
        self.gate = gate
        self.open_limit = open_limit
        self._open: dict[int, tuple[Path, VirtualInode]] = {}

    def open_files(self) -> list[str]:
        """Return the paths of all open files, with repetitions."""
        return sorted(str(path) for path, _ in self._open.values())

    def end(self) -> None:
        """Close all files, as the operating system does at the end of a process."""
        for number in list(self._open):
            self.give_back(number)

    def take(self, path: Path, inode: VirtualInode) -> int:
        """Allocate a descriptor; the number is not a descriptor of the real system.

        Raises:
            OSError: There is none left (EMFILE).
        """
        self._check_limit(path)
        number = self.disk.next_number()
        self._open[number] = (path, inode)
        inode.refer(1)
        return number

    def give_back(self, number: int) -> None:
        """Close a descriptor. Idempotent."""
        _, inode = self._open.pop(number, (None, None))
        if inode is not None:
            self.disk.unlock(number, inode)
            inode.refer(-1)

    def inode(self, number: int, path: Path) -> VirtualInode:
        """Return the file of a descriptor.

        Raises:
            OSError: It was closed (EBADF).
        """
        self.gate()
        if number not in self._open:
            raise failure(errno.EBADF, path)
        return self._open[number][1]

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, make the file if it is absent."""
        return self._opened(path, create=create)

    def read_bytes(self, path: Path) -> bytes:
        """Return the whole contents."""
        file = self._opened(path)
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Replace the file's contents so that a crash leaves either the old or the new, flushed."""
        replace_file(self, path, data)

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Rename, replacing the target, and flush the directories unless `flushed` is false."""
        self.gate()
        parents = list(dict.fromkeys([target.parent, source.parent]))
        opened = [self._open_directory(parent, others) for others, parent in enumerate(parents)]
        old, new = opened[-1], opened[0]
        node, replaced = old.entries.get(source.name), new.entries.get(target.name)
        if node is None:
            raise failure(errno.ENOENT, source)
        if source in target.parents:
            raise failure(errno.EINVAL, target)
        if target in source.parents:
            raise failure(errno.ENOTEMPTY, target)
        if replaced is not node:
            _check_replaceable(node, replaced, target)
            self.disk.change((old, source.name, None), (new, target.name, node))
        for directory in opened if flushed else ():
            self.disk.flush_directory(directory)

    def link(self, source: Path, target: Path) -> None:
        """Give a file another name, and flush the directory of that name."""
        self.gate()
        directory = self._open_directory(target.parent, 0)
        node = self.disk.find(source)
        if node is None:
            raise failure(errno.ENOENT, source)
        if target.name in directory.entries:
            raise failure(errno.EEXIST, target)
        if isinstance(node, VirtualDirectory):
            raise failure(errno.EPERM, source)
        self.disk.change((directory, target.name, node))
        self.disk.flush_directory(directory)

    def remove(self, path: Path) -> None:
        """Delete a file; absent is no error."""
        self.gate()
        node = self.disk.find(path)
        if isinstance(node, VirtualDirectory):
            raise failure(errno.EISDIR, path)
        if node is not None:
            self.disk.change((self.disk.directory(path.parent), path.name, None))

    def remove_tree(self, path: Path) -> None:
        """Delete a directory and its contents; absent is no error."""
        self.gate()
        if self.disk.find(path) is None:
            return
        for name in self.list_directory(path):
            child = path / name
            (self.remove_tree if self.is_directory(child) else self.remove)(child)
        self.disk.change((self.disk.directory(path.parent), path.name, None))

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        """Create a directory and its parents; existing is no error."""
        self.gate()
        for directory in (*reversed(path.parents), path):
            if self.disk.find(directory) is None:
                parent = self.disk.directory(directory.parent)
                self.disk.change((parent, directory.name, VirtualDirectory()))
                if flushed:
                    self.flush_directory(directory.parent)
        self.disk.directory(path)

    def flush_directory(self, path: Path) -> None:
        """Force a directory's entries to the disk."""
        self.gate()
        self.disk.flush_directory(self._open_directory(path))

    def list_directory(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""
        self.gate()
        return sorted(self._open_directory(path).entries)

    def exists(self, path: Path) -> bool:
        """Return whether a path exists."""
        return self._find(path) is not None

    def is_directory(self, path: Path) -> bool:
        """Return whether a path is a directory."""
        return isinstance(self._find(path), VirtualDirectory)

    def size(self, path: Path) -> int:
        """Return a file's length in bytes."""
        self.gate()
        return len(self.disk.file(path).data)

    def modified_ms(self, path: Path) -> int:
        """Return when the file was last written, milliseconds since the epoch."""
        self.gate()
        return self.disk.file(path).modified_ms

    def volume_size(self, path: Path) -> tuple[int, int]:
        """Return the bytes of a volume, whose size is not simulated."""
        del path
        return _VOLUME, _VOLUME

    def lock(self, path: Path) -> AbstractContextManager[None]:
        """Take an exclusive lock on a file, held until the context ends or the process does.

        Raises:
            BlockingIOError: The file is locked.
        """
        file = self._opened(path, create=True)
        inode = self.disk.file(path)
        if not self.disk.lock(file.number, inode):
            file.close()
            raise BlockingIOError(errno.EAGAIN, "locked by another", str(path))
        return _held(file)

    def _check_limit(self, path: Path, others: int = 0) -> None:
        if len(self._open) + others >= self.open_limit:
            self.disk.refused["descriptors"] += 1
            raise failure(errno.EMFILE, path)

    def _open_directory(self, path: Path, others: int = 0) -> VirtualDirectory:
        """Return a directory, which needs a descriptor in addition to `others` for a moment."""
        self._check_limit(path, others)
        return self.disk.directory(path)

    def _opened(self, path: Path, *, create: bool = False) -> "VirtualFile":
        self.gate()
        self._check_limit(path)
        inode = self.disk.create(path) if create else self.disk.file(path)
        return VirtualFile(self, path, self.take(path, inode))

    def _find(self, path: Path) -> object:
        self.gate()
        try:
            return self.disk.find(path)
        except NotADirectoryError:
            return None


class VirtualFile:
    """An open file, addressed by position."""

    __slots__ = ("_disk", "_files", "number", "path")

    def __init__(self, files: VirtualFiles, path: Path, number: int) -> None:
        self._files = files
        self._disk = files.disk
        self.path = path
        self.number = number

    def __del__(self) -> None:
        self.close()

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self._inode().data)

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer at the end of the file."""
        return self._inode().read(position, length)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `position`, or raise OSError."""
        self._inode().write(position, memoryview(data).cast("B"), self._now_ms())

    def truncate(self, length: int) -> None:
        """Cut or extend the file to `length` bytes."""
        self._inode().truncate(length, self._now_ms())

    def flush(self) -> None:
        """Force the contents to the disk."""
        self._inode().flush()

    def flush_fails(self) -> None:
        """Fail a flush: written data is readable, and never reaches the disk."""
        self._inode().flush_fails()

    def fileno(self) -> int:
        """Return -1: there is no descriptor for sendfile.

        Raises:
            OSError: The file was closed (EBADF).
        """
        self._inode()
        return -1

    def close(self) -> None:
        """Close the file; idempotent."""
        self._files.give_back(self.number)

    def _inode(self) -> VirtualInode:
        return self._files.inode(self.number, self.path)

    def _now_ms(self) -> int:
        return self._disk.wall_ms()


def _check_replaceable(
    node: VirtualDirectory | VirtualInode,
    replaced: VirtualDirectory | VirtualInode | None,
    target: Path,
) -> None:
    if isinstance(replaced, VirtualDirectory):
        if not isinstance(node, VirtualDirectory):
            raise failure(errno.EISDIR, target)
        if replaced.entries:
            raise failure(errno.ENOTEMPTY, target)
    elif replaced is not None and isinstance(node, VirtualDirectory):
        raise failure(errno.ENOTDIR, target)


@contextmanager
def _held(file: VirtualFile) -> Iterator[None]:
    try:
        yield
    finally:
        file.close()
