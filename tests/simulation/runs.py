"""Runs in parallel processes."""

import multiprocessing
from collections.abc import Iterable, Iterator
from functools import partial

from tests.simulation.clients import KINDS
from tests.simulation.history import History
from tests.simulation.simulation import Result, simulate


def run_all(seeds: Iterable[int], jobs: int, clients: str = "blocking") -> Iterator[Result]:
    """Run seeds in several processes; the results have no histories."""
    if jobs == 1:
        yield from map(partial(_summary, clients), seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(partial(_summary, clients), seeds)


def _summary(clients: str, seed: int) -> Result:
    result = simulate(seed, KINDS[clients])
    result.history = History()
    return result
