"""The real file system, with ways to make it fail."""

import errno
import os
from pathlib import Path

from kclient.common.files import File
from kclient.common.system_files import SystemFiles


class FaultyFile:
    """A file whose writes, truncations and flushes fail when told to."""

    def __init__(self, file: File, faults: "FaultyFiles") -> None:
        self._file = file
        self._faults = faults

    @property
    def path(self) -> Path:
        return self._file.path

    @path.setter
    def path(self, path: Path) -> None:
        self._file.path = path

    def size(self) -> int:
        return self._file.size()

    def read_at(self, position: int, length: int) -> bytes:
        return self._file.read_at(position, length)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        if self._faults.strikes("write", self.path):
            self._file.write_at(position, memoryview(data)[: len(data) // 2])
            raise OSError(self._faults.code, os.strerror(self._faults.code))
        self._file.write_at(position, data)

    def truncate(self, length: int) -> None:
        self._faults.maybe_raise("truncate", self.path)
        self._file.truncate(length)

    def flush(self) -> None:
        self._faults.maybe_raise("flush", self.path)
        self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


class FaultyFiles(SystemFiles):
    """The real file system until `fail` is called."""

    def __init__(self) -> None:
        self.code = errno.EIO
        self._armed: dict[str, str] = {}

    def fail(self, action: str, suffix: str, code: int = errno.EIO) -> None:
        """Let an action on files with a suffix fail from now on."""
        self._armed[action] = suffix
        self.code = code

    def heal(self) -> None:
        self._armed.clear()

    def strikes(self, action: str, path: Path) -> bool:
        suffix = self._armed.get(action)
        return suffix is not None and path.name.endswith(suffix)

    def maybe_raise(self, action: str, path: Path) -> None:
        if self.strikes(action, path):
            raise OSError(self.code, os.strerror(self.code), str(path))

    def open(self, path: Path, *, create: bool = False) -> File:
        self.maybe_raise("open", path)
        return FaultyFile(super().open(path, create=create), self)

    def write_atomic(self, path: Path, data: bytes) -> None:
        self.maybe_raise("write", path)
        super().write_atomic(path, data)
