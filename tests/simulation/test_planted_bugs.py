"""A checker that finds nothing proves nothing: it finds what was put there to be found."""

import pytest

from tests.simulation.planted_bugs import BUGS, planted
from tests.simulation.simulation import simulate

SEEDS = 25
"""Seeds that may be tried: a change of the code changes the run of a seed."""

SAMPLE = {"no-flush", "cut-too-much", "no-dedup", "amnesia", "renumbered-retry", "lost-positions"}
"""Bugs of the broker, the producer and the consumer that plain runs look for."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SAMPLE else pytest.mark.campaign)
        for name, bug in BUGS.items()
        if not bug.is_rare
    ],
)
def test_a_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    with planted(bug):
        assert any(simulate(seed).violations for seed in range(bug.seed, bug.seed + SEEDS))


def test_nothing_is_left_of_a_planted_bug() -> None:
    digest = simulate(2).digest
    for bug in BUGS.values():
        with planted(bug):
            pass
    assert simulate(2).digest == digest
