"""Kills of Spark at some points; `make spark-kills` has all of them."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import StartCluster
from integration.harness.discovery import NEWEST
from integration.harness.running_kafka import RunningKafka
from integration.spark_kills.cells import CELLS, SHORT, Cell, Duplicates, named
from integration.spark_kills.crash_points import Arming, CrashPoints, Facts, Point
from integration.spark_kills.jobs import Kind
from integration.spark_kills.judgement import faults_of, replay_faults
from integration.spark_kills.matrix import Matrix
from integration.spark_kills.report import lines_of
from integration.spark_kills.workload import Count, count

_STRIKE = """
import sys
from pathlib import Path
from integration.spark_kills.crash_points import CrashPoints, Facts, Point
points = CrashPoints(Path(sys.argv[1]))
points.strike(Point.BEGUN, 1, jvm=int(sys.argv[2]))
points.strike(Point.MID_TASK, 0, jvm=int(sys.argv[2]))
points.strike(Point.MID_TASK, 1, Facts(5, 3), jvm=int(sys.argv[2]))
print("running")
"""
_ROOT = Path(__file__).parents[1]


@pytest.fixture
def victim() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.campaign
@pytest.mark.timeout(900)  # on a busy machine
@pytest.mark.parametrize("executor", [False, True], ids=["driver", "executor"])
def test_kills_lose_no_record_and_duplicate_repeated_ones(
    executor: bool, start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster()
    kafka = RunningKafka(NEWEST, cluster.bootstrap(), cluster)
    cells = [cell for cell in named(SHORT) if cell.executor == executor]
    with Matrix(tmp_path / "kills", kafka) as matrix:
        results = [matrix.run(cell) for cell in cells]
    assert [one.faults for one in results] == [[]] * len(cells), "\n".join(lines_of(results))
    assert any(one.count.duplicates for one in results)


def test_armed_point_kills_once(victim: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    points, awaited = CrashPoints(tmp_path), tmp_path / "offsets"
    points.arm(Arming(Point.MID_TASK, batch=1, exists=str(awaited)))
    strike = [sys.executable, "-c", _STRIKE, str(tmp_path), str(victim.pid)]
    assert subprocess.check_output(strike, cwd=_ROOT) == b"running\n"
    awaited.touch()
    struck = subprocess.run(strike, cwd=_ROOT, check=False, capture_output=True)
    assert (struck.returncode, struck.stdout) == (-9, b"")
    assert victim.wait(10) == -9
    assert points.facts() == Facts(5, 3, victim.pid)
    assert points.facts() is None
    assert subprocess.check_output(strike, cwd=_ROOT) == b"running\n"


def test_lost_duplicate_and_unexpected_records_are_counted() -> None:
    expected = Counter([b"0", b"1", b"2"])
    assert count(Counter([b"0", b"1", b"2"]), expected) == Count(0, 0, 0)
    assert count(Counter([b"0", b"0", b"0", b"2", b"7"]), expected) == Count(1, 2, 1)


@pytest.mark.parametrize(
    ("expected", "duplicates", "fits"),
    [
        (Duplicates.NOTHING, 0, True),
        (Duplicates.NOTHING, 1, False),
        (Duplicates.SOME, 0, False),
        (Duplicates.SOME, 39, True),
        (Duplicates.SOME, 40, False),
        (Duplicates.ALL, 39, False),
        (Duplicates.ALL, 40, True),
    ],
)
def test_duplicates_are_compared_with_the_documentation(
    expected: Duplicates, duplicates: int, fits: bool
) -> None:
    cell = Cell(Kind.STREAM, Point.MID_TASK, expected)
    faults = faults_of(cell, Count(0, duplicates, 0), duplicates, 40)
    assert faults == ([] if fits else [f"{duplicates} duplicates of 40, expected {expected}"])


def test_losses_and_wrong_counts_are_faults() -> None:
    cell = Cell(Kind.STREAM, Point.MID_TASK, Duplicates.SOME)
    assert faults_of(cell, Count(1, 20, 0), 20, 40) == ["1 records are lost"]
    assert faults_of(cell, Count(0, 20, 2), 20, 40) == ["2 records are not of the job"]
    expected = ["20 duplicates, expected 19"]
    assert faults_of(cell, Count(0, 20, 0), 19, 40) == expected


def test_restart_repeats_the_planned_micro_batch() -> None:
    plans = [("0", "4"), ("4", "8")]
    assert replay_faults(Point.PLANNED, plans, [("4", "8"), ("8", "9")]) == []
    assert replay_faults(Point.PLANNED, plans, [("4", "9")]) == [
        "planned ('4', '8'), but read ('4', '9')"
    ]
    assert replay_faults(Point.NEXT_PLAN, plans, [("8", "9")]) == []
    assert replay_faults(Point.NEXT_PLAN, plans, [("4", "8")]) == [
        "started at 4, but 8 was committed"
    ]


def test_matrix_covers_drivers_and_executors_in_batch_and_streaming() -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert {cell.name for cell in named(SHORT)} == set(SHORT)
    for kind in (Kind.STREAM, Kind.BATCH):
        for delivery in ("at-least-once", "exactly-once"):
            cells = [cell for cell in CELLS if (cell.kind, cell.delivery) == (kind, delivery)]
            assert len({cell.point for cell in cells if cell.victim == "driver"}) == 5
            points = {cell.point for cell in cells if cell.executor}
            assert points == {Point.MID_TASK, Point.TASK_DONE}
    assert {cell.duplicates for cell in CELLS if cell.streams} == set(Duplicates)
    with pytest.raises(ValueError, match="--only: got 'driver/x', expected a part"):
        named(["driver/x"])
