"""Runs of three nodes: a sample of the seeds without a violation, and planted bugs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster_simulation.__main__ import report, search
from tests.cluster_simulation.planted_bugs import BUGS, planted
from tests.cluster_simulation.simulation import Result, simulate

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "simulation.md"

SEEDS_PER_TEST = 5
SAMPLE = ("lone-commit", "any-leader", "fenced-member", "ignored-newcomer", "empty-coordinator")
"""Bugs that one of the first seeds finds; `make simulate-mutations` searches for all of them."""


@pytest.mark.fault("B2", "B5", "B6", "B7", "B10")
@pytest.mark.parametrize("first", range(1, 11, SEEDS_PER_TEST))
def test_no_invariant_is_violated(first: int) -> None:
    arguments = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster_simulation", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS_PER_TEST} seeds" in done.stdout


def test_seed_reproduces_its_run() -> None:
    first, second = simulate(3), simulate(3)
    assert first.digest == second.digest
    assert first.records == second.records
    assert simulate(4).digest != first.digest


@pytest.mark.parametrize("name", SAMPLE)
def test_planted_bug_is_found(name: str) -> None:
    _, found = search(name, range(1, 11))
    assert found is not None
    violation = (found.violation or "").removeprefix("AssertionError: ")
    assert violation.startswith(tuple(BUGS[name].invariants)), violation


def test_planted_bug_is_removed_completely() -> None:
    digest = simulate(2).digest
    for bug in BUGS.values():
        with planted(bug):
            pass
    assert simulate(2).digest == digest


def test_page_has_each_planted_bug() -> None:
    rows = re.findall(r"^\| ([a-z-]+) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    expected = {(name, bug.summary, ", ".join(bug.invariants)) for name, bug in BUGS.items()}
    assert expected <= set(rows)


def test_violation_is_reported_with_a_command_to_reproduce_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(Result(7, violation="R1: lost", phase="end"))
    output = capsys.readouterr().out
    assert "seed 7, end: R1: lost" in output
    assert "python -m tests.cluster_simulation --seed 7 --trace" in output
    report(Result(8))
    assert capsys.readouterr().out == ""
