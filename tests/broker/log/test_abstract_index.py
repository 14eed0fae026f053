"""Behaviour that offset index and time index share."""

from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.offset_index import OffsetIndex
from kclient.broker.log.time_index import TimeIndex
from kclient.common.errors import InvalidOffsetError
from kclient.common.system_files import SystemFiles

BASE = 1000


def offset_index(directory: Path, size: int = 80) -> OffsetIndex:
    index = OffsetIndex(SystemFiles(), directory / "x.index", BASE, size)
    index.open()
    return index


def time_index(directory: Path, size: int = 120) -> TimeIndex:
    index = TimeIndex(SystemFiles(), directory / "x.timeindex", BASE, size)
    index.open()
    return index


def test_index_file_contains_only_its_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, size=85)
    assert (tmp_path / "x.index").read_bytes() == b""
    index.append(BASE + 3, 17)
    assert (tmp_path / "x.index").stat().st_size == 8
    index.close()
    assert (tmp_path / "x.index").read_bytes() == bytes.fromhex("00000003 00000011")
    index.open()
    assert (index.entries, index.last_offset, index.is_full) == (1, BASE + 3, True)
    index.close()


def test_index_entries_must_ascend(tmp_path: Path) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    offsets.append(BASE + 5, 5)
    with pytest.raises(InvalidOffsetError, match="1005"):
        offsets.append(BASE + 5, 6)
    times.maybe_append(10, BASE + 5)
    times.maybe_append(10, BASE + 9)
    times.maybe_append(9, BASE + 9)
    assert times.entries == 1
    with pytest.raises(InvalidOffsetError, match="1005"):
        times.maybe_append(11, BASE + 4)
    offsets.close()
    times.close()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.index", bytes(7)),
        ("x.index", bytes.fromhex("00000005 00000000 00000003 00000009")),
        ("x.index", bytes.fromhex("ffffffff 00000000")),
        ("x.timeindex", bytes(11)),
        ("x.timeindex", bytes.fromhex("0000000000000005 00000001 0000000000000004 00000002")),
        ("x.timeindex", bytes.fromhex("0000000000000005 ffffffff")),
    ],
)
def test_sanity_check_detects_damage(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    index = offset_index(tmp_path) if name == "x.index" else time_index(tmp_path)
    with pytest.raises(CorruptIndexError, match=name):
        index.sanity_check()
    index.release()


def test_empty_index_file_passes_sanity_check(tmp_path: Path) -> None:
    (tmp_path / "x.index").write_bytes(b"")
    index = offset_index(tmp_path)
    index.sanity_check()
    assert index.lookup(BASE + 7) == (BASE, 0)
    index.resize_for_append()
    index.append(BASE + 1, 3)
    assert index.lookup(BASE + 7) == (BASE + 1, 3)
    index.close()
