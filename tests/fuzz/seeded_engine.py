"""Engine without coverage guidance: mutates the corpus at random, reproducibly for a seed."""

import math
import time
from collections.abc import Callable
from random import Random

from tests.fuzz.target import MAX_SIZE, Mutate


def new_input(mutate: Mutate, inputs: list[bytes], random: Random) -> bytes:
    """Return a mutation of a random input."""
    data = random.choice(inputs)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        data = mutate(data, random)
    return data[:MAX_SIZE]


def fuzz(
    check: Callable[[bytes], None],
    mutate: Mutate,
    inputs: list[bytes],
    *,
    seed: int,
    seconds: float = math.inf,
    limit: float = math.inf,
) -> int:
    """Run mutated inputs until a limit is reached; return their number.

    Args:
        check: Runs an input.
        mutate: Mutates an input.
        inputs: Inputs to mutate.
        seed: Seed of the mutations; input n of a seed is always the same.
        seconds: Time limit.
        limit: Largest number of inputs.
    """
    until = time.monotonic() + seconds
    runs = 0
    while runs < limit and time.monotonic() < until:
        check(new_input(mutate, inputs, Random(f"{seed} {runs}")))
        runs += 1
    return runs
