"""A fuzz target: one plain function from bytes to nothing, and where its inputs come from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from tests.fuzz.mutation import spoil

MEBIBYTE = 1 << 20

MAX_SIZE = 64 * 1024
"""Bytes of the largest input that is made; what is kept in the corpus may be larger."""

CANARY = b"S3CRET-canary-5f1d"
"""Stands in the records of seeds: what a log line or an error text must not show."""

Mutate = Callable[[bytes, Random], bytes]


def _nothing() -> None: ...


@dataclass(frozen=True)
class Target:
    """What is fuzzed.

    Attributes:
        run: Takes any bytes; returns, whatever they are. What leaves it is a finding.
        seeds: Good inputs to begin with, the same ones on every run.
        mutate: Makes another input of one, such that it gets past lengths and checksums.
        memory: Bytes that an input of a given size may make the target hold at a time.
        settle: Brings what the target keeps between inputs (a broker, say) to its end.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    mutate: Mutate = spoil
    memory: Callable[[int], int] = lambda size: 8 * MEBIBYTE + 8 * size
    settle: Callable[[], None] = _nothing
