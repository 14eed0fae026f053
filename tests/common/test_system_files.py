"""`SystemFiles`: positions, atomic replacement, locks, errors."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kclient.common.files import File, Files, FileSlice
from kclient.common.system_files import SystemFile, SystemFiles


@pytest.fixture
def files() -> Files:
    return SystemFiles()


def make(files: Files, path: Path) -> None:
    files.open(path, create=True).close()


def opened(files: Files, path: Path) -> contextlib.closing[File]:
    return contextlib.closing(files.open(path, create=True))


def test_open_without_create_needs_the_file(files: Files, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(tmp_path / "absent")


def test_reads_and_writes_by_position(files: Files, tmp_path: Path) -> None:
    with opened(files, tmp_path / "f") as file:
        file.write_at(4, b"efgh")
        file.write_at(0, memoryview(b"abcd"))
        assert file.size() == 8
        assert file.read_at(2, 4) == b"cdef"
        assert file.read_at(6, 100) == b"gh"
        assert file.read_at(100, 1) == b""
        file.truncate(3)
        file.flush()
        assert FileSlice(file, 1, 2).read() == b"bc"
    assert (tmp_path / "f").read_bytes() == b"abc"


def test_files_are_private(files: Files, tmp_path: Path) -> None:
    files.make_directory(tmp_path / "a" / "b")
    make(files, tmp_path / "a" / "b" / "f")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "f").stat().st_mode) == 0o600


def test_closed_file_has_no_descriptor(files: Files, tmp_path: Path) -> None:
    file = files.open(tmp_path / "f", create=True)
    file.close()
    file.close()
    with pytest.raises(OSError, match="closed") as caught:
        file.fileno()
    assert caught.value.errno == errno.EBADF


@pytest.mark.parametrize("action", ["open", "create", "read", "lock"])
def test_links_are_not_followed(files: Files, tmp_path: Path, action: str) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    actions: dict[str, Callable[[], object]] = {
        "open": lambda: files.open(link),
        "create": lambda: files.open(link, create=True),
        "read": lambda: files.read_bytes(link),
        "lock": lambda: files.lock(link),
    }
    with pytest.raises(OSError, match=r"[Ss]ymbolic") as caught:
        actions[action]()
    assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "target").read_bytes() == b"precious"


def test_only_regular_files_can_be_opened(files: Files, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular"):
        files.open(tmp_path / "pipe")


def test_failed_write_raises(files: Files) -> None:
    descriptor = os.open("/dev/full", os.O_RDWR)
    with (
        contextlib.closing(SystemFile(Path("/dev/full"), descriptor)) as file,
        pytest.raises(OSError, match="space") as caught,
    ):
        file.write_at(0, b"x" * 10)
    assert caught.value.errno == errno.ENOSPC


def test_atomic_write_replaces_file_and_removes_temporary_file(
    files: Files, tmp_path: Path
) -> None:
    files.write_atomic(tmp_path / "c", b"one")
    files.write_atomic(tmp_path / "c", b"two")
    assert files.read_bytes(tmp_path / "c") == b"two"
    assert files.list_directory(tmp_path) == ["c"]


def test_rename_remove_and_list(files: Files, tmp_path: Path) -> None:
    for name in ("b", "a"):
        make(files, tmp_path / name)
    assert files.list_directory(tmp_path) == ["a", "b"]
    files.rename(tmp_path / "a", tmp_path / "b")
    assert files.list_directory(tmp_path) == ["b"]
    files.remove(tmp_path / "b")
    files.remove(tmp_path / "b")
    assert not files.exists(tmp_path / "b")


def test_directories(files: Files, tmp_path: Path) -> None:
    files.make_directory(tmp_path / "d" / "e")
    files.make_directory(tmp_path / "d" / "e")
    files.flush_directory(tmp_path / "d")
    assert files.is_directory(tmp_path / "d")
    (tmp_path / "link").symlink_to(tmp_path / "d")
    assert not files.is_directory(tmp_path / "link")
    files.remove_tree(tmp_path / "d")
    files.remove_tree(tmp_path / "d")
    assert not files.exists(tmp_path / "d")
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(OSError, match="directory"):
        files.make_directory(tmp_path / "f")


def test_size_and_age(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    os.utime(path, ns=(0, 1_234_567_890_000_000))
    assert files.size(path) == 5
    assert files.modified_ms(path) == 1_234_567_890


def test_lock_excludes_its_own_process(files: Files, tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with files.lock(path):
        for _ in range(2):
            with pytest.raises(BlockingIOError):
                files.lock(path)
    with files.lock(path):
        pass


def test_lock_excludes_posix_lock_of_another_process(files: Files, tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    attempt = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b')\n"
        "try: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: sys.exit(7)\n"
    )
    command = [sys.executable, "-I", "-c", attempt, str(path)]
    with files.lock(path):
        assert subprocess.run(command, check=False).returncode == 7
    assert subprocess.run(command, check=False).returncode == 0


def test_parents_of_new_directories_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(SystemFiles, "flush_directory", lambda _, path: flushed.append(path))
    files = SystemFiles()
    files.make_directory(tmp_path / "a" / "b")
    assert flushed == [tmp_path, tmp_path / "a"]
    files.make_directory(tmp_path / "a" / "b")
    assert flushed == [tmp_path, tmp_path / "a"]
