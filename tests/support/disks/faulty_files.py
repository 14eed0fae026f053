"""File systems whose operations can be made to fail."""

import errno
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kclient.common.files import TEMPORARY_SUFFIX, File, Files, replace_file
from kclient.common.system_files import SystemFiles
from kclient.testing.virtual.virtual_disk import failure
from kclient.testing.virtual.virtual_files import VirtualFile

Half = Callable[[], object]
"""Function that runs the first half of an operation."""


class DiskFaults(Protocol):
    """Decision which operations fail."""

    def before(self, action: str, path: Path, half: Half | None = None) -> None:
        """Raise if the operation is to fail.

        Args:
            action: One of create, open, read, write, truncate, flush, rename, link, remove,
                directory.
            path: File or directory of the operation.
            half: Runs half of the operation, if it has halves: for a fault in the middle.
        """
        ...


@dataclass
class _Rule:
    suffix: str
    code: int
    chance: float
    times: int | None


class ErrorsOnDemand:
    """Failures with an errno: always, a number of times, or at random.

    Attributes:
        struck: Number of failures by action and errno name.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self.struck: Counter[str] = Counter()
        self._rng = rng
        self._rules: dict[str, _Rule] = {}

    def fail(
        self,
        action: str,
        suffix: str = "",
        code: int = errno.EIO,
        *,
        chance: float = 1.0,
        times: int | None = None,
    ) -> None:
        """Make an action on files with a suffix fail from now on.

        A write that fails writes half of its data first. A file has the name that it replaces.

        Args:
            action: As in `DiskFaults.before`.
            suffix: Suffix of the names of the files.
            code: The errno.
            chance: Probability of each failure.
            times: Greatest number of failures; None for no limit.
        """
        self._rules[action] = _Rule(suffix, code, chance, times)

    def heal(self) -> None:
        """Remove all failures."""
        self._rules.clear()

    def before(self, action: str, path: Path, half: Half | None = None) -> None:
        """Fail if a rule applies."""
        rule = self._rules.get(action)
        if rule is None or not self._strikes(rule, path):
            return
        self.struck[f"{action} {errno.errorcode[rule.code]}"] += 1
        if half is not None:
            half()
        raise failure(rule.code, path)

    def _strikes(self, rule: _Rule, path: Path) -> bool:
        if rule.times == 0 or not path.name.removesuffix(TEMPORARY_SUFFIX).endswith(rule.suffix):
            return False
        if rule.chance < 1 and (self._rng is None or self._rng.random() >= rule.chance):
            return False
        if rule.times is not None:
            rule.times -= 1
        return True


class FaultyFiles:
    """File system of which some operations fail.

    Args:
        files: The underlying file system.
        faults: The failures.

    Attributes:
        files: As given.
        faults: As given.
    """

    def __init__(self, files: Files, faults: DiskFaults) -> None:
        self.files = files
        self.faults = faults

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing."""
        if create and not self.files.exists(path):
            self.faults.before("create", path, lambda: self.files.open(path, create=True).close())
        self.faults.before("open", path)
        return FaultyFile(self.files.open(path, create=create), self.faults)

    def read_bytes(self, path: Path) -> bytes:
        """Return the whole contents."""
        self.faults.before("read", path)
        return self.files.read_bytes(path)

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Replace the file's contents, in steps each of which may fail."""
        replace_file(self, path, data)

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        """Rename, replacing the target."""
        self.faults.before("rename", target)
        self.files.rename(source, target, flushed=flushed)

    def link(self, source: Path, target: Path) -> None:
        """Give a file another name."""
        self.faults.before("link", target)
        self.files.link(source, target)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        if self.files.exists(path):
            self.faults.before("remove", path)
        self.files.remove(path)

    def remove_tree(self, path: Path) -> None:
        """Delete a directory and its contents."""
        if self.files.exists(path):
            self.faults.before("remove", path, lambda: self._remove_some(path))
        self.files.remove_tree(path)

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        """Create a directory and its parents."""
        if not self.files.exists(path):
            self.faults.before("directory", path)
        self.files.make_directory(path, flushed=flushed)

    def flush_directory(self, path: Path) -> None:
        """Flush the entries of a directory."""
        self.faults.before("flush", path)
        self.files.flush_directory(path)

    def list_directory(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""
        return self.files.list_directory(path)

    def exists(self, path: Path) -> bool:
        """Return whether a path exists."""
        return self.files.exists(path)

    def is_directory(self, path: Path) -> bool:
        """Return whether a path is a directory."""
        return self.files.is_directory(path)

    def size(self, path: Path) -> int:
        """Return a file's length in bytes."""
        return self.files.size(path)

    def modified_ms(self, path: Path) -> int:
        """Return the time of the last write."""
        return self.files.modified_ms(path)

    def volume_size(self, path: Path) -> tuple[int, int]:
        """Return the bytes of the volume of a path."""
        return self.files.volume_size(path)

    def lock(self, path: Path) -> AbstractContextManager[None]:
        """Acquire an exclusive lock on a file."""
        return self.files.lock(path)

    def _remove_some(self, path: Path) -> None:
        for name in self.files.list_directory(path)[::2]:
            if not self.files.is_directory(path / name):
                self.files.remove(path / name)


class FaultyFile:
    """File of which some reads, writes, truncations and flushes fail."""

    def __init__(self, file: File, faults: DiskFaults) -> None:
        self._file = file
        self._faults = faults

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @path.setter
    def path(self, path: Path) -> None:
        self._file.path = path

    def size(self) -> int:
        """Return the length in bytes."""
        return self._file.size()

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        self._faults.before("read", self.path)
        return self._file.read_at(position, length)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`; a failure leaves half of it."""
        half = memoryview(data)[: len(data) // 2]
        self._faults.before("write", self.path, lambda: self._file.write_at(position, half))
        self._file.write_at(position, data)

    def truncate(self, length: int) -> None:
        """Truncate or extend the file."""
        self._faults.before("truncate", self.path)
        self._file.truncate(length)

    def flush(self) -> None:
        """Flush the contents; a failure loses them at a power cut."""
        file = self._file
        fails = file.flush_fails if isinstance(file, VirtualFile) else None
        self._faults.before("flush", self.path, fails)
        file.flush()

    def fileno(self) -> int:
        """Return the descriptor for sendfile."""
        return self._file.fileno()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FaultySystemFiles(FaultyFiles):
    """The real file system, with failures until `heal`."""

    def __init__(self) -> None:
        self._errors = ErrorsOnDemand()
        super().__init__(SystemFiles(), self._errors)

    def fail(self, action: str, suffix: str, code: int = errno.EIO) -> None:
        """Make an action on files with a suffix fail from now on."""
        self._errors.fail(action, suffix, code)

    def heal(self) -> None:
        """Remove all failures."""
        self._errors.heal()
