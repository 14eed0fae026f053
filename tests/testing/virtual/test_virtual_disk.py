"""The virtual disk: reads as on a real disk, and the effects of a power cut."""

import contextlib
import errno
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.files import File, Files
from kclient.common.system_files import SystemFiles
from kclient.testing.virtual.virtual_disk import PAGE_BYTES, VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.faulty_files import ErrorsOnDemand, FaultyFiles
from tests.support.disks.log_bench import ManualClock

DATA = Path("/data")
NAMES = ("a", "b", "d", "d/a", "d/b", "d/e", "a/x")


def mount(capacity: int | None = None) -> tuple[VirtualDisk, VirtualFiles]:
    disk = VirtualDisk(ManualClock(), capacity)
    files = VirtualFiles(disk)
    files.make_directory(DATA)
    files.flush_directory(Path("/"))
    return disk, files


def put(files: Files, path: Path, data: bytes, *, flush: bool = False) -> None:
    with contextlib.closing(files.open(path, create=True)) as file:
        file.truncate(0)
        file.write_at(0, data)
        if flush:
            file.flush()


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
    *("open", "read_bytes", "write_atomic", "rename", "remove", "remove_tree"),
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


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_virtual_disk_behaves_as_a_real_disk(
    steps: list[tuple[str, str, int, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        real, virtual = Side(SystemFiles(), Path(directory)), Side(mount()[1], DATA)
        try:
            for step in [("open", "a", 1, b""), ("make_directory", "d", 0, b""), *steps]:
                assert real.do(*step) == virtual.do(*step), step
        finally:
            real.end()
            virtual.end()


@pytest.mark.parametrize("seed", range(30))
def test_flushed_bytes_survive_a_power_cut(seed: int) -> None:
    disk, files = mount()
    put(files, DATA / "f", b"x" * 10_000, flush=True)
    files.flush_directory(DATA)
    files.write_atomic(DATA / "atomic", b"whole")
    disk.lose_unflushed(random.Random(seed))
    assert files.read_bytes(DATA / "f") == b"x" * 10_000
    assert files.list_directory(DATA) == ["atomic", "f"]
    assert files.read_bytes(DATA / "atomic") == b"whole"


def test_power_cut_keeps_loses_or_tears_unflushed_pages() -> None:
    seen = set()
    for seed in range(60):
        disk, files = mount()
        put(files, DATA / "f", b"o" * PAGE_BYTES * 2, flush=True)
        files.flush_directory(DATA)
        with contextlib.closing(files.open(DATA / "f")) as file:
            file.write_at(0, b"n" * PAGE_BYTES)
        disk.lose_unflushed(random.Random(seed))
        found = files.read_bytes(DATA / "f")
        assert found[PAGE_BYTES:] == b"o" * PAGE_BYTES
        kinds = {bytes([kind]) for kind in found[:PAGE_BYTES]}
        seen.add("torn" if len(kinds) == 2 else kinds.pop().decode())
        assert found[:512] in {b"o" * 512, b"n" * 512}
    assert seen == {"o", "n", "torn"}


def test_power_cut_leaves_any_earlier_unflushed_length() -> None:
    sizes = set()
    for seed in range(60):
        disk, files = mount()
        put(files, DATA / "f", b"x" * 100, flush=True)
        files.flush_directory(DATA)
        with contextlib.closing(files.open(DATA / "f")) as file:
            file.write_at(100, b"y" * 9_900)
        disk.lose_unflushed(random.Random(seed))
        size = files.size(DATA / "f")
        assert files.read_bytes(DATA / "f")[:100] == b"x" * 100 or size
        sizes.add(size if size in {100, 10_000} else -1)
    assert sizes == {100, 10_000, -1}


def test_power_cut_loses_some_unflushed_names() -> None:
    seen = set()
    for seed in range(40):
        disk, files = mount()
        put(files, DATA / "old", b"1", flush=True)
        files.flush_directory(DATA)
        files.remove(DATA / "old")
        put(files, DATA / "new", b"2", flush=True)
        disk.lose_unflushed(random.Random(seed))
        seen.add(tuple(files.list_directory(DATA)))
    assert seen == {(), ("old",), ("new",), ("new", "old")}


@pytest.mark.parametrize("seed", range(20))
def test_power_cut_keeps_renames_atomic(seed: int) -> None:
    disk, files = mount()
    put(files, DATA / "a", b"1", flush=True)
    files.flush_directory(DATA)
    directory = disk.directory(DATA)
    node = disk.file(DATA / "a")
    disk.change((directory, "a", None), (directory, "b", node))
    disk.change((directory, "b", None), (directory, "c", node))
    disk.lose_unflushed(random.Random(seed))
    assert files.list_directory(DATA) in (["a"], ["b"], ["c"])


def test_data_of_a_failed_flush_is_lost_at_a_power_cut() -> None:
    disk, virtual = mount()
    faults = ErrorsOnDemand()
    files = FaultyFiles(virtual, faults)
    put(files, DATA / "f", b"a" * PAGE_BYTES, flush=True)
    files.flush_directory(DATA)
    with contextlib.closing(files.open(DATA / "f")) as file:
        file.write_at(0, b"b" * PAGE_BYTES)
        faults.fail("flush", "f", times=1)
        with pytest.raises(OSError, match="Input/output"):
            file.flush()
        file.flush()
        assert file.read_at(0, 2) == b"bb"
    disk.lose_unflushed(random.Random(0))
    assert files.read_bytes(DATA / "f") == b"a" * PAGE_BYTES
    assert faults.struck == {"flush EIO": 1}


def test_full_disk_accepts_the_bytes_that_fit() -> None:
    disk, files = mount(capacity=3 * PAGE_BYTES)
    with contextlib.closing(files.open(DATA / "f", create=True)) as file:
        file.truncate(100 * PAGE_BYTES)  # a hole takes no pages
        with pytest.raises(OSError, match="No space left") as caught:
            file.write_at(100, b"x" * 5 * PAGE_BYTES)
        assert caught.value.errno == errno.ENOSPC
        assert file.read_at(3 * PAGE_BYTES - 1, 2) == b"x\0"
        assert disk.used == 3 * PAGE_BYTES
        files.remove(DATA / "f")
        assert disk.used == 3 * PAGE_BYTES
    assert disk.used == 0
    put(files, DATA / "g", b"fits")


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


def test_random_disk_errors_occur_the_given_number_of_times() -> None:
    faults = ErrorsOnDemand(random.Random(3))
    files = FaultyFiles(mount()[1], faults)
    faults.fail("create", "f", errno.ENOSPC, chance=0.5)
    outcomes = []
    for number in range(40):
        try:
            put(files, DATA / f"{number}-f", b"x")
            outcomes.append(True)
        except OSError:
            outcomes.append(False)
    assert 8 < outcomes.count(False) < 32
    faults.heal()
    faults.fail("write", "f", errno.ENOSPC, times=2)
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            files.write_atomic(DATA / "f", b"1234")
    files.write_atomic(DATA / "f", b"1234")
    assert files.list_directory(DATA).count("f.tmp") == 0
