"""The real file system, whose n-th operation fails as if a resource were exhausted."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kclient.common.files import File
from kclient.common.system_files import SystemFiles

NO_DESCRIPTORS = errno.EMFILE
NO_SPACE = errno.ENOSPC


class NthFault(SystemFiles):
    """File system that fails `times` operations in a row, from the `first` one that can fail.

    With NO_DESCRIPTORS operations that open a file can fail, with NO_SPACE those that need space;
    the first half of an operation stays done.

    Attributes:
        operations: How many operations could have failed so far.
    """

    def __init__(self, code: int, first: int = -1, times: int = 1) -> None:
        self.operations = 0
        self._code = code
        self._failing = range(first, first + times)

    @property
    def is_over(self) -> bool:
        """Whether every operation that was to fail has failed."""
        return self.operations >= self._failing.stop - 1

    def needs_descriptor(self, path: Path) -> None:
        if self._code == NO_DESCRIPTORS:
            self._maybe_fail(path)

    def needs_space(self, path: Path, half: Callable[[], object] | None = None) -> None:
        if self._code == NO_SPACE:
            self._maybe_fail(path, half)

    def _maybe_fail(self, path: Path, half: Callable[[], object] | None = None) -> None:
        self.operations += 1
        if self.operations in self._failing:
            if half is not None:
                half()
            raise OSError(self._code, os.strerror(self._code), str(path))

    def open(self, path: Path, *, create: bool = False) -> File:
        self.needs_descriptor(path)
        if create and not self.exists(path):
            self.needs_space(path)
        return _File(super().open(path, create=create), self)

    def read_bytes(self, path: Path) -> bytes:
        self.needs_descriptor(path)
        return super().read_bytes(path)

    def write_atomic(self, path: Path, data: bytes) -> None:
        self.needs_descriptor(path)
        self.needs_space(path)
        super().write_atomic(path, data)

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        if flushed:
            self.needs_descriptor(target.parent)
        self.needs_space(target)
        super().rename(source, target, flushed=flushed)

    def link(self, source: Path, target: Path) -> None:
        self.needs_descriptor(target.parent)
        self.needs_space(target)
        super().link(source, target)

    def flush_directory(self, path: Path) -> None:
        self.needs_descriptor(path)
        super().flush_directory(path)

    def list_directory(self, path: Path) -> list[str]:
        self.needs_descriptor(path)
        return super().list_directory(path)

    def remove_tree(self, path: Path) -> None:
        if self.exists(path):
            self.needs_descriptor(path)
        super().remove_tree(path)

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        if not self.exists(path):
            self.needs_space(path)
        super().make_directory(path, flushed=flushed)


class _File:
    """File whose writes may find no space."""

    def __init__(self, file: File, faults: NthFault) -> None:
        self._file = file
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "path":
            self._file.path = value
        else:
            super().__setattr__(name, value)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        half = memoryview(data)[: len(data) // 2]
        self._faults.needs_space(self._file.path, lambda: self._file.write_at(position, half))
        self._file.write_at(position, data)

    def truncate(self, length: int) -> None:
        if length > self._file.size():
            self._faults.needs_space(self._file.path)
        self._file.truncate(length)
