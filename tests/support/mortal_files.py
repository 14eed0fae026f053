"""The real file system, on which a process dies at a chosen change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kclient.common.files import File
from kclient.common.system_files import SystemFiles


class Death(BaseException):
    """The process ends here; no handler sees it."""


class MortalFiles(SystemFiles):
    """Dies at a chosen change: before it, or, where the change has halves, in its middle."""

    def __init__(self, last: int) -> None:
        self._left = last
        self.changes = 0

    def change(self, half: Callable[[], object] | None = None) -> None:
        self.changes += 1
        if self.changes == self._left:
            if half is not None:
                half()
            raise Death

    def open(self, path: Path, *, create: bool = False) -> File:
        if create and not self.exists(path):
            self.change(lambda: super(MortalFiles, self).open(path, create=True).close())
        return MortalFile(super().open(path, create=create), self)

    def write_atomic(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(path.name + ".tmp")
        self.change(lambda: temporary.write_bytes(data[: len(data) // 2]))
        super().write_atomic(path, data)

    def rename(self, source: Path, target: Path) -> None:
        self.change()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        if self.exists(path):
            self.change()
        super().remove(path)

    def remove_tree(self, path: Path) -> None:
        if self.exists(path):
            self.change(lambda: self.remove_some(path))
        super().remove_tree(path)

    def remove_some(self, path: Path) -> None:
        for file in sorted(path.iterdir())[::2]:
            file.unlink()

    def make_directory(self, path: Path) -> None:
        if not self.exists(path):
            self.change()
        super().make_directory(path)


class MortalFile:
    """A file that may be left half-written."""

    def __init__(self, file: File, files: MortalFiles) -> None:
        self._file = file
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "path":
            self._file.path = value
        else:
            super().__setattr__(name, value)

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        half = memoryview(data)[: len(data) // 2]
        self._files.change(lambda: self._file.write_at(position, half))
        self._file.write_at(position, data)

    def truncate(self, length: int) -> None:
        self._files.change()
        self._file.truncate(length)
