"""Offset index."""

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.log.offset_index import OffsetIndex, OffsetPosition
from kclient.common.errors import IllegalStateError
from kclient.common.system_files import SystemFiles

BASE = 1000


def offset_index(directory: Path, size: int = 80) -> OffsetIndex:
    index = OffsetIndex(SystemFiles(), directory / "x.index", BASE, size)
    index.open()
    return index


def test_full_offset_index_rejects_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, size=16)
    fullness = []
    for number in range(2):
        index.append(BASE + number, number)
        fullness.append(index.is_full)
    assert fullness == [False, True]
    with pytest.raises(IllegalStateError, match="the index is full"):
        index.append(BASE + 2, 2)
    index.close()


@given(
    gaps=st.lists(st.integers(1, 1000), min_size=1, max_size=60),
    targets=st.lists(st.integers(BASE - 5, BASE + 70_000), min_size=1, max_size=20),
    cut=st.integers(BASE, BASE + 70_000),
)
def test_offset_lookup_returns_floor(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], targets: list[int], cut: int
) -> None:
    index = offset_index(tmp_path_factory.mktemp("index"), size=8 * 60)
    entries: list[OffsetPosition] = []
    offset = BASE
    for number, gap in enumerate(gaps):
        offset += gap
        entries.append(OffsetPosition(offset, number * 10))
        index.append(offset, number * 10)
    for _ in range(2):
        known = [entry.offset for entry in entries]
        for target in targets:
            place = bisect_right(known, target)
            expected = entries[place - 1] if place else OffsetPosition(BASE, 0)
            assert index.lookup(target) == expected
        entries = [entry for entry in entries if entry.offset < cut]
        index.truncate_to(cut)
        assert index.entries == len(entries)
        assert index.last_offset == (entries[-1].offset if entries else BASE)
    index.close()
