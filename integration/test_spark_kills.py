"""Spark is killed in the middle of its work; `make spark-kills` does that at every point."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import StartCluster
from integration.harness.discovery import NEWEST
from integration.harness.running_kafka import RunningKafka
from integration.spark_kills.cells import CELLS, SHORT, Cell, Twice, named
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
print("still there")
"""
_ROOT = Path(__file__).parents[1]


@pytest.fixture
def victim() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.campaign
@pytest.mark.timeout(900)  # on a machine that is busy with other things
@pytest.mark.parametrize("executor", [False, True], ids=["driver", "executor"])
def test_nothing_is_lost_and_what_is_repeated_is_there_twice(
    executor: bool, start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster()
    kafka = RunningKafka(NEWEST, cluster.bootstrap(), cluster)
    cells = [cell for cell in named(SHORT) if cell.executor == executor]
    with Matrix(tmp_path / "kills", kafka) as matrix:
        results = [matrix.run(cell) for cell in cells]
    assert [one.faults for one in results] == [[]] * len(cells), "\n".join(lines_of(results))
    assert any(one.count.duplicates for one in results)


def test_a_point_kills_once_where_and_when_it_is_armed(
    victim: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    points, awaited = CrashPoints(tmp_path), tmp_path / "offsets"
    points.arm(Arming(Point.MID_TASK, batch=1, exists=str(awaited)))
    strike = [sys.executable, "-c", _STRIKE, str(tmp_path), str(victim.pid)]
    assert subprocess.check_output(strike, cwd=_ROOT) == b"still there\n"
    awaited.touch()
    struck = subprocess.run(strike, cwd=_ROOT, check=False, capture_output=True)
    assert (struck.returncode, struck.stdout) == (-9, b"")
    assert victim.wait(10) == -9
    assert points.facts() == Facts(5, 3, victim.pid)
    assert points.facts() is None
    assert subprocess.check_output(strike, cwd=_ROOT) == b"still there\n"


def test_what_is_lost_double_or_strange_is_counted() -> None:
    expected = Counter([b"0", b"1", b"2"])
    assert count(Counter([b"0", b"1", b"2"]), expected) == Count(0, 0, 0)
    assert count(Counter([b"0", b"0", b"0", b"2", b"7"]), expected) == Count(1, 2, 1)


@pytest.mark.parametrize(
    ("twice", "duplicates", "fits"),
    [
        (Twice.NOTHING, 0, True),
        (Twice.NOTHING, 1, False),
        (Twice.SOME, 0, False),
        (Twice.SOME, 39, True),
        (Twice.SOME, 40, False),
        (Twice.ALL, 39, False),
        (Twice.ALL, 40, True),
    ],
)
def test_duplicates_are_held_to_what_the_documentation_says(
    twice: Twice, duplicates: int, fits: bool
) -> None:
    cell = Cell(Kind.STREAM, Point.MID_TASK, twice)
    faults = faults_of(cell, Count(0, duplicates, 0), duplicates, 40)
    assert faults == ([] if fits else [f"{duplicates} duplicates of 40, expected {twice}"])


def test_losses_strangers_and_what_was_not_foreseen_are_faults() -> None:
    cell = Cell(Kind.STREAM, Point.MID_TASK, Twice.SOME)
    assert faults_of(cell, Count(1, 20, 0), 20, 40) == ["1 records are lost"]
    assert faults_of(cell, Count(0, 20, 2), 20, 40) == ["2 records are none of the job's"]
    expected = ["20 duplicates, 19 were to be expected"]
    assert faults_of(cell, Count(0, 20, 0), 19, 40) == expected


def test_a_second_life_begins_with_what_was_planned() -> None:
    plans = [("0", "4"), ("4", "8")]
    assert replay_faults(Point.PLANNED, plans, [("4", "8"), ("8", "9")]) == []
    assert replay_faults(Point.PLANNED, plans, [("4", "9")]) == [
        "planned ('4', '8'), but read ('4', '9')"
    ]
    assert replay_faults(Point.NEXT_PLAN, plans, [("8", "9")]) == []
    assert replay_faults(Point.NEXT_PLAN, plans, [("4", "8")]) == ["began at 4, but 8 was done"]


def test_the_matrix_kills_drivers_and_executors_in_batch_and_streaming() -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert {cell.name for cell in named(SHORT)} == set(SHORT)
    for kind in (Kind.STREAM, Kind.BATCH):
        points = {cell.point for cell in CELLS if cell.kind is kind and not cell.executor}
        assert len(points) == 5
        points = {cell.point for cell in CELLS if cell.kind is kind and cell.executor}
        assert points == {Point.MID_TASK, Point.TASK_DONE}
    assert {cell.twice for cell in CELLS if cell.streams} == set(Twice)
    with pytest.raises(ValueError, match="--only: got 'driver/x', expected a part"):
        named(["driver/x"])
