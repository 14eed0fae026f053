"""Files of a process on a virtual disk: the same behaviour as real files, and their limits."""

import contextlib
import errno
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.files import File, Files
from kclient.common.system_files import SystemFiles
from kclient.testing.virtual.virtual_disk import VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.log_bench import ManualClock

DATA = Path("/data")


NAMES = ("a", "b", "d", "d/a", "d/b", "d/e", "a/x")


def mounted() -> VirtualFiles:
    files = VirtualFiles(VirtualDisk(ManualClock()))
    files.make_directory(DATA)
    return files


class Side:
    """One of two file systems that run the same operations."""

    def __init__(self, files: Files, root: Path) -> None:
        self.files = files
        self.root = root
        self.opened: list[File] = []
        self.held: list[contextlib.AbstractContextManager[None]] = []

    def do(self, action: str, name: str, number: int, data: bytes) -> object:
        try:
            return self.act(action, self.root / name, number, data)
        except OSError as problem:
            return errno.errorcode[problem.errno] if problem.errno else repr(problem)
        except ValueError:
            return "ValueError"

    def act(self, action: str, path: Path, number: int, data: bytes) -> object:
        if action.startswith("file."):
            return self.act_on_file(action, number, data)
        if action == "open":
            self.opened.append(self.files.open(path, create=bool(number % 2)))
        elif action == "rename":
            self.files.rename(path, self.root / NAMES[number % len(NAMES)])
        elif action == "link":
            self.files.link(path, self.root / NAMES[number % len(NAMES)])
        elif action == "write_atomic":
            self.files.write_atomic(path, data)
        elif action == "lock":
            self.held.append(self.files.lock(path))
            self.held[-1].__enter__()
        elif action == "size" and self.files.is_directory(path):
            return None  # of a directory, it is the file system's own affair
        else:
            return getattr(self.files, action)(path)
        return None

    def act_on_file(self, action: str, number: int, data: bytes) -> object:
        if not self.opened:
            return None
        file = self.opened[number % len(self.opened)]
        position = number * 37 % 9000
        actions: dict[str, Callable[[], object]] = {
            "file.size": file.size,
            "file.read": lambda: file.read_at(position, len(data) * 3),
            "file.write": lambda: file.write_at(position, data * 40),
            "file.truncate": lambda: file.truncate(position),
            "file.flush": file.flush,
            "file.fileno": lambda: bool(file.fileno()),
            "file.close": file.close,
        }
        return actions[action]()

    def end(self) -> None:
        for held in self.held:
            held.__exit__(None, None, None)
        for opened in self.opened:
            opened.close()


ACTIONS = (
    *("open", "read_bytes", "write_atomic", "rename", "link", "remove", "remove_tree"),
    *("make_directory", "flush_directory", "list_directory", "exists", "is_directory", "size"),
    *("lock", "file.size", "file.read", "file.write", "file.truncate", "file.flush"),
    *("file.fileno", "file.close"),
)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        st.sampled_from(NAMES),
        st.integers(0, 300),
        st.binary(max_size=30),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(STEPS)
def test_virtual_disk_behaves_as_a_real_disk(
    steps: list[tuple[str, str, int, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        real, virtual = Side(SystemFiles(), Path(directory)), Side(mounted(), DATA)
        try:
            for step in [("open", "a", 1, b""), ("make_directory", "d", 0, b""), *steps]:
                assert real.do(*step) == virtual.do(*step), step
        finally:
            real.end()
            virtual.end()


def test_open_limit_counts_open_files() -> None:
    disk = VirtualDisk(ManualClock())
    files = VirtualFiles(disk, open_limit=2)
    first = files.open(Path("/a"), create=True)
    second = files.open(Path("/b"), create=True)
    with pytest.raises(OSError, match="Too many") as caught:
        files.open(Path("/c"), create=True)
    assert caught.value.errno == errno.EMFILE
    assert not files.exists(Path("/c"))
    assert files.open_files() == ["/a", "/b"]
    first.close()
    assert files.open(Path("/c"), create=True).size() == 0
    del second
    assert files.open_files() == []


def test_process_end_closes_files_and_releases_locks() -> None:
    disk = VirtualDisk(ManualClock())
    dead, heir = VirtualFiles(disk), VirtualFiles(disk)
    file = dead.open(Path("/f"), create=True)
    held = dead.lock(Path("/lock"))
    held.__enter__()
    with pytest.raises(BlockingIOError):
        heir.lock(Path("/lock"))
    dead.end()
    assert dead.open_files() == []
    with pytest.raises(OSError, match="Bad file"):
        file.size()
    with heir.lock(Path("/lock")):
        held.__exit__(None, None, None)
        with pytest.raises(BlockingIOError):
            heir.lock(Path("/lock"))


def test_closed_gate_prevents_all_effects() -> None:
    class Shut(BaseException):
        pass

    def shut() -> None:
        raise Shut

    disk = VirtualDisk(ManualClock())
    files = VirtualFiles(disk)
    file = files.open(Path("/f"), create=True)
    file.write_at(0, b"before")
    files.gate = shut
    actions: list[Callable[[], object]] = [
        lambda: file.write_at(0, b"behind"),
        lambda: file.truncate(0),
        file.flush,
        lambda: files.remove(Path("/f")),
        lambda: files.write_atomic(Path("/f"), b"behind"),
        lambda: files.rename(Path("/f"), Path("/g")),
        lambda: files.make_directory(Path("/d")),
        lambda: files.remove_tree(Path("/")),
    ]
    for action in actions:
        with pytest.raises(Shut):
            action()
    assert VirtualFiles(disk).read_bytes(Path("/f")) == b"before"
