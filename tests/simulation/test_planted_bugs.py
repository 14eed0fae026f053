"""The simulation finds planted bugs."""

import pytest

from tests.simulation.planted_bugs import BUGS, planted
from tests.simulation.simulation import simulate

SEEDS = 25
"""Number of seeds to try: changes of the code change the run of a seed."""

SAMPLE = {"no-flush", "cut-too-much", "no-dedup", "amnesia", "renumbered-retry", "lost-positions"}
"""Bugs of broker, producer and consumer that are searched for in each test run."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SAMPLE else pytest.mark.campaign)
        for name, bug in BUGS.items()
        if not bug.is_rare
    ],
)
def test_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    with planted(bug):
        assert any(simulate(seed).violations for seed in range(bug.seed, bug.seed + SEEDS))


def test_planted_bug_is_removed_completely() -> None:
    digest = simulate(2).digest
    for bug in BUGS.values():
        with planted(bug):
            pass
    assert simulate(2).digest == digest
