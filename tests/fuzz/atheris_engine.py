"""Coverage-guided engine: libFuzzer through atheris.

Atheris instruments modules when they are imported, so this module must not import kclient itself.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import atheris

from tests.fuzz.target import MAX_SIZE, Mutate

_HANG_SECONDS = 20
_MEMORY_MIB = 1024
_OWN_SHARE = 0.75


@contextmanager
def instrumenting() -> Iterator[None]:
    """Instrument kclient modules imported within the block, and codecs generated from then on."""
    with atheris.instrument_imports(include=["kclient"], enable_loader_override=False):
        yield
    from kclient.protocol.source import Source  # noqa: PLC0415 - must be instrumented

    generate = Source.compile

    def compile_instrumented(self: Source, name: str, label: str) -> Callable[..., Any]:
        generated: Callable[..., Any] = atheris.instrument_func(generate(self, name, label))
        return generated

    patch.object(Source, "compile", compile_instrumented).start()


def fuzz(
    check: Callable[[bytes], None], mutate: Mutate, corpus: Path, *, seconds: float, seed: int
) -> None:
    """Run libFuzzer until the time is up. It ends the process.

    Args:
        check: Runs an input.
        mutate: Mutates an input; a quarter of the mutations are libFuzzer's own.
        corpus: Directory with one file per input; inputs that reach new code are added.
        seconds: Time to spend.
        seed: Seed of the random numbers; libFuzzer is only roughly reproducible.
    """

    def mutated(data: bytes, max_size: int, number: int) -> bytes:
        random = Random(number)
        if random.random() < _OWN_SHARE:
            return mutate(bytes(data), random)[:max_size]
        made: bytes = atheris.Mutate(data, max_size)
        return made

    options: dict[str, object] = {
        "max_total_time": int(seconds),
        "timeout": _HANG_SECONDS,
        "rss_limit_mb": _MEMORY_MIB,
        "max_len": MAX_SIZE,
        "len_control": 0,
        "seed": seed % 2**31 or 1,
        "print_final_stats": 1,
        "artifact_prefix": f"{corpus.parent}/",
    }
    arguments = [sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), str(corpus)]
    atheris.Setup(arguments, check, custom_mutator=mutated)
    atheris.Fuzz()
