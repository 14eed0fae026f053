"""Crashes before, during and after each disk operation of the broker."""

import random
from pathlib import Path

import pytest

from tests.support.disks.log_life import Life, check
from tests.support.disks.mortal_files import Death, MortalFiles


def count_changes(data_dir: Path) -> int:
    files = MortalFiles(last=-1)
    Life(data_dir, files).live()
    return files.changes


@pytest.mark.fault("B1", "B4")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.campaign)])
def test_recovery_from_every_crash_point(tmp_path: Path, stride: int) -> None:
    total = count_changes(tmp_path / "whole")
    assert total > 80
    for last in range(1, total + 1, stride):
        data_dir = tmp_path / str(last)
        life = Life(data_dir, MortalFiles(last))
        with pytest.raises(Death):
            life.live()
        life.die()
        check(data_dir, life)


@pytest.mark.fault("B1", "B4")
def test_crash_during_recovery(tmp_path: Path) -> None:
    """Recovery crashes at each of its disk operations, and is repeated."""
    rng = random.Random(7)
    total = count_changes(tmp_path / "whole")
    for round_number in range(10):
        data_dir = tmp_path / str(round_number)
        life = Life(data_dir, MortalFiles(rng.randrange(total // 2, total)))
        with pytest.raises(Death):
            life.live()
        life.die()
        for last in range(1, 200, 3):
            files = MortalFiles(last)
            again = Life(data_dir, files)
            try:
                again.manager.load()
            except Death:
                continue
            finally:
                again.die()
            break
        check(data_dir, life)
