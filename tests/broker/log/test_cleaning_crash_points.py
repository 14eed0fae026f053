"""Crashes before, during and after each disk operation of the cleaner."""

import errno

import pytest

from tests.support.disks.clean_life import CleanLife, Lack
from tests.support.disks.mortal_files import Death, EndAt


def whole_life(faults: EndAt | Lack) -> None:
    CleanLife().live(faults)


@pytest.mark.fault("B1", "B4")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.campaign)])
def test_recovery_from_every_crash_point_of_the_cleaner(stride: int) -> None:
    counted = EndAt()
    whole_life(counted)
    assert counted.changes > 200
    for last in range(1, counted.changes + 1, stride):
        life = CleanLife()
        with pytest.raises(Death):
            life.live(EndAt(last))
        life.end(power_cut=last % 2 == 0)
        life.check()


@pytest.mark.fault("B1", "B4")
def test_crash_during_completion_of_swap() -> None:
    """The start that completes the swap crashes at each of its disk operations, and is repeated."""
    counted = EndAt()
    whole_life(counted)
    for last in range(60, counted.changes, 23):
        life = CleanLife()
        with pytest.raises(Death):
            life.live(EndAt(last))
        life.end(power_cut=False)
        for change in range(1, 100, 2):
            try:
                life.start(EndAt(change))
            except Death:
                life.end(power_cut=change % 4 == 1)
                continue
            life.manager.close(clean=False)
            break
        life.end(power_cut=False)
        life.check()


@pytest.mark.fault("B11", "B14")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE], ids=["space", "descriptors"])
@pytest.mark.parametrize("stride", [15, pytest.param(3, marks=pytest.mark.campaign)])
def test_cleaner_retries_after_transient_disk_error(code: int, stride: int) -> None:
    counted = Lack(code)
    whole_life(counted)
    assert counted.operations > 50
    for first in range(1, counted.operations, stride):
        life = CleanLife()
        life.live_patiently(Lack(code, first, times=1 + first % 4))
        life.end(power_cut=False)
        life.check()
