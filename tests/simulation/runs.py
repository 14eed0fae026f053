"""Runs in parallel processes."""

import multiprocessing
from collections.abc import Iterable, Iterator

from tests.simulation.history import History
from tests.simulation.simulation import Result, simulate


def run_all(seeds: Iterable[int], jobs: int) -> Iterator[Result]:
    """Run seeds in several processes; the results have no histories."""
    if jobs == 1:
        yield from map(_summary, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(_summary, seeds)


def _summary(seed: int) -> Result:
    result = simulate(seed)
    result.history = History()
    return result
