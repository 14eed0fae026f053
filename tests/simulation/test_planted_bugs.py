"""A checker that finds nothing proves nothing: it finds what was put there to be found."""

import pytest

from tests.simulation.planted_bugs import BUGS, planted
from tests.simulation.simulation import simulate

SEEDS = 25
"""How many seeds may be tried: a change of the code moves what a seed does."""


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if not bug.is_rare])
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
