"""Time index."""

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.log.time_index import TimeIndex, TimestampOffset
from kclient.common.system_files import SystemFiles

BASE = 1000


def time_index(directory: Path, size: int = 120) -> TimeIndex:
    index = TimeIndex(SystemFiles(), directory / "x.timeindex", BASE, size)
    index.open()
    return index


def test_time_index_has_kafkas_format(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    index.maybe_append(5, BASE + 1)
    index.close()
    data = (tmp_path / "x.timeindex").read_bytes()
    assert data == bytes.fromhex("0000000000000005 00000001")


def test_time_index_reserves_capacity_for_final_entry(tmp_path: Path) -> None:
    index = time_index(tmp_path, size=24)
    fullness = [index.is_full]
    index.maybe_append(1, BASE)
    fullness.append(index.is_full)
    assert fullness == [False, True]
    index.maybe_append(2, BASE + 1, closing=True)
    index.maybe_append(3, BASE + 2, closing=True)
    assert [index.entry(n).timestamp for n in range(index.entries)] == [1, 2, 3]
    index.close()


@given(
    gaps=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    targets=st.lists(st.integers(-1, 1600), min_size=1, max_size=20),
    cut=st.integers(BASE, BASE + 31),
)
def test_time_lookup_returns_floor(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], targets: list[int], cut: int
) -> None:
    index = time_index(tmp_path_factory.mktemp("index"), size=12 * 31)
    entries: list[TimestampOffset] = []
    timestamp = 0
    for number, gap in enumerate(gaps):
        timestamp += gap
        entries.append(TimestampOffset(timestamp, BASE + number))
        index.maybe_append(*entries[-1])
    for _ in range(2):
        known = [entry.timestamp for entry in entries]
        for target in targets:
            place = bisect_right(known, target)
            expected = entries[place - 1] if place else TimestampOffset(-1, BASE)
            assert index.lookup(target) == expected
        entries = [entry for entry in entries if entry.offset < cut]
        index.truncate_to(cut)
        assert index.last_entry == (entries[-1] if entries else TimestampOffset(-1, BASE))
    index.close()
