"""The engine that needs nothing: mutates corpus and seeds at random, the same way for a seed."""

import time
from collections.abc import Callable
from random import Random

from tests.fuzz.target import MAX_SIZE, Mutate


def new_input(mutate: Mutate, inputs: list[bytes], random: Random) -> bytes:
    """Return an input that was not there before."""
    data = random.choice(inputs)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        data = mutate(data, random)
    return data[:MAX_SIZE]


def fuzz(
    check: Callable[[bytes], None],
    mutate: Mutate,
    inputs: list[bytes],
    *,
    seconds: float,
    seed: int,
) -> int:
    """Run new inputs until the time is up; return how many.

    Args:
        check: Runs an input.
        mutate: Makes another input of one.
        inputs: What to begin with.
        seconds: Time to spend.
        seed: Number n of a seed's inputs is always the same.
    """
    until = time.monotonic() + seconds
    runs = 0
    while time.monotonic() < until:
        check(new_input(mutate, inputs, Random(f"{seed} {runs}")))
        runs += 1
    return runs
