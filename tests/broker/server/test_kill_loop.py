"""A broker killed at random points under load; ``make crash KILLS=50`` repeats it."""

from pathlib import Path

import pytest

from tests.support.processes import cluster_kill_loop
from tests.support.processes.kill_loop import run


@pytest.mark.campaign
@pytest.mark.fault("B1", "B3")
def test_kills_keep_acknowledged_records_once_and_in_order(tmp_path: Path) -> None:
    report = run(tmp_path, kills=3, seed=57)
    assert report.kills == 3
    assert report.early_kills >= 1
    assert report.acknowledged > 1000
    assert report.batches > 0


@pytest.mark.fault("B1", "B10")
def test_kills_of_nodes_keep_acknowledged_records_in_all_replicas(tmp_path: Path) -> None:
    report = cluster_kill_loop.run(tmp_path, kills=3, seed=57)
    assert (report.kills, report.controllers >= 1) == (3, True)
    assert report.acknowledged > 100
    assert report.read == report.acknowledged
    assert report.replicated > 0
    assert 0 < report.leaderless_s < 15
