"""A planted bug, and the search for a seed that finds it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any
from unittest.mock import patch

from tests.simulation.checker import Violation
from tests.simulation.scenario import draw
from tests.simulation.simulation import simulate

Replace = Callable[[Any, str, Callable[..., Any]], None]
"""Replaces a function, by its owner and name."""


@dataclass(frozen=True)
class PlantedBug:
    """A planted bug.

    Attributes:
        summary: Description.
        plant: Applies it.
        invariant: The invariant that it violates first in most seeds.
        load: Load whose seeds find it most often; None if seeds of every load do.
    """

    summary: str
    plant: Callable[[Replace], None]
    invariant: str
    load: str | None = None

    def seeds(self, first: int = 1) -> Iterator[int]:
        """Iterate over the seeds of its load, without end."""
        return (seed for seed in count(first) if self.load in {None, draw(seed).load})

    def violations(self, seed: int) -> list[Violation]:
        """Run a seed with the bug; return the violations."""
        with planted(self):
            return simulate(seed).violations


@contextmanager
def planted(bug: PlantedBug) -> Iterator[None]:
    """Apply a bug for a ``with`` block."""
    with ExitStack() as stack:

        def replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
            stack.enter_context(patch.object(owner, name, function))

        bug.plant(replace)
        yield
