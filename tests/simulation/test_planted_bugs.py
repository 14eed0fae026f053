"""The simulation finds planted bugs."""

import re
from itertools import islice
from pathlib import Path

import pytest

from tests.simulation.planted_bug import planted
from tests.simulation.planted_bugs import BUGS
from tests.simulation.simulation import simulate

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "simulation.md"

SEEDS = 25
"""Number of seeds to try, of the load that provokes the bug."""

SAMPLE = (
    *("no-flush", "cut-too-much", "no-dedup", "amnesia", "renumbered-retry", "lost-positions"),
    *("no-rewind", "open-read"),
)
"""Bugs of broker, producer and consumer that are searched for in each test run.

At least two in three seeds of its load find each; `make simulate-mutations` searches for all bugs.
"""


@pytest.mark.parametrize("name", SAMPLE)
def test_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    assert any(bug.violations(seed) for seed in islice(bug.seeds(), SEEDS))


def test_page_has_the_load_and_the_invariant_of_each_bug() -> None:
    rows = re.findall(
        r"^\| ([a-z-]+) \| [^|]+ \| ([a-z ]+) \| ([a-z-]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert set(rows) == {(name, bug.load or "any", bug.invariant) for name, bug in BUGS.items()}


def test_planted_bug_is_removed_completely() -> None:
    digest = simulate(2).digest
    for bug in BUGS.values():
        with planted(bug):
            pass
    assert simulate(2).digest == digest
