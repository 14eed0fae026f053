"""Values that take effect at an offset."""

import pytest

from kclient.broker.raft.offset_history import STATIC_OFFSET, Entry, OffsetHistory
from kclient.common.errors import IllegalStateError


def history() -> OffsetHistory[str]:
    found = OffsetHistory("static")
    for offset in (-1, 4, 9):
        found.add(offset, f"v{offset}")
    return found


def test_value_is_in_force_from_its_offset_on() -> None:
    found = history()
    assert OffsetHistory("static").last == Entry(STATIC_OFFSET, "static")
    values = [found.value_at(each).value for each in (-2, -1, 3, 4, 8, 9, 99)]
    assert values == ["static", "v-1", "v-1", "v4", "v4", "v9", "v9"]


def test_truncation_restores_the_value_before() -> None:
    found = history()
    found.truncate_from_end(9)
    assert found.last == Entry(4, "v4")
    found.truncate_from_end(0)
    assert found.last == Entry(-1, "v-1")
    found.clear()
    assert found.last.value == "static"


def test_truncation_at_the_start_keeps_the_value_in_force() -> None:
    found = history()
    found.truncate_from_start(5)
    assert [entry.offset for entry in found.entries] == [4, 9]


def test_offsets_rise() -> None:
    with pytest.raises(IllegalStateError):
        history().add(9, "again")
