"""Fuzz target: a function of bytes, with its seeds and mutations."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from tests.fuzz.mutation import spoil

MEBIBYTE = 1 << 20

MAX_SIZE = 64 * 1024
"""Size limit of generated inputs, bytes; inputs of the corpus may be larger."""

CANARY = b"S3CRET-canary-5f1d"
"""Content of records in seeds; log lines and error texts must not contain it."""

Mutate = Callable[[bytes, Random], bytes]


def _nothing() -> None: ...


@dataclass(frozen=True)
class Target:
    """A fuzzed function.

    Attributes:
        run: Accepts arbitrary bytes. An exception is a finding.
        seeds: Generates valid inputs, the same in each run.
        mutate: Mutates an input so that lengths and checksums stay valid.
        memory: Memory limit in bytes for an input of a given size.
        finish: Closes what the target keeps between inputs, such as a broker.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    mutate: Mutate = spoil
    memory: Callable[[int], int] = lambda size: 8 * MEBIBYTE + 8 * size
    finish: Callable[[], None] = _nothing
