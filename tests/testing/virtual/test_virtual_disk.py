"""The virtual disk: space, failures, and the effects of a power cut."""

import contextlib
import errno
import random
from pathlib import Path

import pytest

from kclient.common.files import Files
from kclient.testing.virtual.virtual_disk import PAGE_BYTES, VirtualDisk
from kclient.testing.virtual.virtual_files import VirtualFiles
from tests.support.disks.faulty_files import ErrorsOnDemand, FaultyFiles
from tests.support.disks.log_bench import ManualClock

DATA = Path("/data")


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


@pytest.mark.parametrize("seed", range(5))
def test_file_with_two_names_survives_a_power_cut(seed: int) -> None:
    disk, files = mount()
    put(files, DATA / "a", b"whole", flush=True)
    files.link(DATA / "a", DATA / "b")
    disk.lose_unflushed(random.Random(seed))
    assert files.list_directory(DATA) == ["a", "b"]
    files.remove(DATA / "a")
    assert files.read_bytes(DATA / "b") == b"whole"


def test_space_of_a_file_is_free_when_its_last_name_is_removed() -> None:
    disk, files = mount()
    put(files, DATA / "a", b"1" * PAGE_BYTES)
    files.link(DATA / "a", DATA / "b")
    used = [disk.used]
    for name in ("a", "b"):
        files.remove(DATA / name)
        used.append(disk.used)
    assert used == [PAGE_BYTES, PAGE_BYTES, 0]


@pytest.mark.parametrize("seed", range(10))
def test_files_that_survive_a_power_cut_use_space(seed: int) -> None:
    disk, files = mount()
    put(files, DATA / "kept", b"1" * 2 * PAGE_BYTES, flush=True)
    files.flush_directory(DATA)
    put(files, DATA / "new", b"1" * PAGE_BYTES)
    put(files, DATA / "removed", b"1" * PAGE_BYTES, flush=True)
    files.remove(DATA / "removed")
    disk.lose_unflushed(random.Random(seed))
    contents = {name: files.read_bytes(DATA / name) for name in files.list_directory(DATA)}
    used = {
        name: PAGE_BYTES * -(-len(found.strip(b"\0")) // PAGE_BYTES)
        for name, found in contents.items()
    }
    assert used["kept"] == 2 * PAGE_BYTES
    assert disk.used == sum(used.values())
    files.remove(DATA / "kept")
    assert disk.used == sum(used.values()) - 2 * PAGE_BYTES


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
