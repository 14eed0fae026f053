"""A broker killed at random points under load; ``make crash KILLS=50`` repeats it."""

from pathlib import Path

import pytest

from tests.support.processes.kill_loop import run


@pytest.mark.campaign
@pytest.mark.fault("B1", "B3")
def test_kills_keep_acknowledged_records_once_and_in_order(tmp_path: Path) -> None:
    report = run(tmp_path, kills=3, seed=57)
    assert report.kills == 3
    assert report.early_kills >= 1
    assert report.acknowledged > 1000
    assert report.batches > 0
