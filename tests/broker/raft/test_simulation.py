"""Simulated quorums keep the invariants, and the checker finds planted bugs."""

import pytest

from tests.support.quorum.checker import InvariantViolatedError
from tests.support.quorum.plants import PLANTS, planted
from tests.support.quorum.world import run_seed

FOUND_BY = {2: 0, 3: 11, 4: 24, 5: 0, 6: 6, 7: 10, 8: 0, 10: 0}
"""Planted bug -> a seed that finds it; ``python -m tests.support.quorum --plant all`` searches."""


@pytest.mark.parametrize("seed", range(12))
def test_invariants(seed: int) -> None:
    world = run_seed(seed, 5_000)
    assert world.checker.commits > 10


def test_seeds_are_of_planted_bugs() -> None:
    assert FOUND_BY.keys() <= PLANTS.keys()


@pytest.mark.parametrize("plant", FOUND_BY)
def test_planted_bug_is_found(plant: int) -> None:
    with planted(plant), pytest.raises(InvariantViolatedError):
        run_seed(FOUND_BY[plant])


def test_same_seed_is_the_same_run() -> None:
    first, second = run_seed(3, 2_000), run_seed(3, 2_000)
    assert (first.events, first.checker.committed_end) == (
        second.events,
        second.checker.committed_end,
    )
