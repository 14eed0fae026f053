"""Replacement of a file in steps that a crash cannot separate, and slices of a file."""

from pathlib import Path

import pytest

from kclient.common.files import TEMPORARY_SUFFIX, File, Files, FileSlice, replace_file
from kclient.common.system_files import SystemFiles


class RecordingFile:
    """A file that records its calls, and fails in one of them."""

    def __init__(self, file: File, calls: list[str], fails_in: str) -> None:
        self.path = file.path
        self._file = file
        self._calls = calls
        self._fails_in = fails_in

    def _call(self, name: str) -> None:
        self._calls.append(name)
        if name == self._fails_in:
            raise OSError(name)

    def truncate(self, length: int) -> None:
        self._call("truncate")
        self._file.truncate(length)

    def write_at(self, position: int, data: bytes) -> None:
        self._call("write")
        self._file.write_at(position, data)

    def flush(self) -> None:
        self._call("flush")
        self._file.flush()

    def close(self) -> None:
        self._call("close")
        self._file.close()


class RecordingFiles(SystemFiles):
    """Files that record the calls of a replacement."""

    def __init__(self, fails_in: str = "") -> None:
        self.calls: list[str] = []
        self._fails_in = fails_in

    def open(self, path: Path, *, create: bool = False) -> File:
        self.calls.append(f"open {path.name}")
        file = super().open(path, create=create)
        return RecordingFile(file, self.calls, self._fails_in)  # type: ignore[return-value]  # enough

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        self.calls.append(f"rename {flushed}")
        super().rename(source, target, flushed=flushed)


def replace(files: Files, path: Path, data: bytes) -> None:
    replace_file(files, path, data)


def test_new_contents_are_on_disk_before_the_rename(tmp_path: Path) -> None:
    files = RecordingFiles()
    path = tmp_path / "checkpoint"
    path.write_bytes(b"the old contents")
    replace(files, path, b"new")
    assert path.read_bytes() == b"new"
    assert files.calls == [
        "open checkpoint.tmp",
        "truncate",
        "write",
        "flush",
        "close",
        "rename True",
    ]


def test_temporary_file_of_a_crash_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    left = path.with_name(path.name + TEMPORARY_SUFFIX)
    left.write_bytes(b"longer than the new contents")
    replace(SystemFiles(), path, b"new")
    assert path.read_bytes() == b"new"
    assert not left.exists()


@pytest.mark.parametrize("step", ["truncate", "write", "flush"])
def test_failure_keeps_the_old_contents(tmp_path: Path, step: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"old")
    files = RecordingFiles(step)
    with pytest.raises(OSError, match=step):
        replace(files, path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint"]
    assert files.calls[-1] == "close"


def test_slice_reads_its_range(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    file = SystemFiles().open(path)
    part = FileSlice(file, 3, 4)
    assert (len(part), part.read()) == (4, b"3456")
    assert FileSlice(file, 8, 4).read() == b"89"
    file.close()
