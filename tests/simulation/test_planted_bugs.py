"""The simulation finds planted bugs."""

import re
from itertools import count, islice
from pathlib import Path

import pytest

from tests.simulation.planted_bugs import BUGS, PlantedBug, planted
from tests.simulation.scenario import draw
from tests.simulation.simulation import simulate

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "simulation.md"

SEEDS = 25
"""Number of seeds to try, of the load that provokes the bug: at least one in four finds it."""

SAMPLE = {"no-flush", "cut-too-much", "no-dedup", "amnesia", "renumbered-retry", "lost-positions"}
"""Bugs of broker, producer and consumer that are searched for in each test run.

Of the seeds that are tried for each of them, at least nine in ten find it.
"""


def seeds_of(bug: PlantedBug) -> list[int]:
    """Return the first seeds of the load that provokes a bug."""
    matching = (seed for seed in count(1) if bug.load is None or draw(seed).load == bug.load)
    return list(islice(matching, SEEDS))


def finds(bug: PlantedBug, seed: int) -> bool:
    with planted(bug):
        return any(simulate(seed).violations)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.campaign) for name in BUGS],
)
def test_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    assert any(finds(bug, seed) for seed in seeds_of(bug))


@pytest.mark.campaign
@pytest.mark.parametrize("name", BUGS)
def test_noted_seed_finds_its_bug(name: str) -> None:
    """A change of the code may change the seed: `make simulate-mutations` prints the new one."""
    bug = BUGS[name]
    with planted(bug):
        assert bug.invariant in {found.invariant for found in simulate(bug.seed).violations}


def test_page_has_the_seed_and_the_invariant_of_each_bug() -> None:
    rows = re.findall(
        r"^\| ([a-z-]+) \| [^|]+ \| (\d+) \| ([a-z-]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    noted = {name: (bug.seed, bug.invariant) for name, bug in BUGS.items()}
    assert {name: (int(seed), invariant) for name, seed, invariant in rows} == noted


def test_planted_bug_is_removed_completely() -> None:
    digest = simulate(2).digest
    for bug in BUGS.values():
        with planted(bug):
            pass
    assert simulate(2).digest == digest
