"""Run seeds: ``python -m tests.support.quorum [--seeds N] [--first N] [--plant N|all]``."""

import argparse
import logging
import sys
from typing import TextIO

from tests.support.quorum.checker import InvariantViolatedError
from tests.support.quorum.plants import PLANTS, planted
from tests.support.quorum.world import run_seed


def find(first: int, seeds: int, plant: int) -> tuple[int, str] | None:
    """Return the first seed with a violation, and the violation."""
    with planted(plant):
        for seed in range(first, first + seeds):
            try:
                run_seed(seed)
            except InvariantViolatedError as violation:
                return seed, str(violation)
    return None


def main(arguments: list[str], out: TextIO) -> int:
    parser = argparse.ArgumentParser(prog="tests.support.quorum")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--plant", default="0")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    plants = sorted(PLANTS) if options.plant == "all" else [int(options.plant)]
    failed = 0
    for plant in plants:
        found = find(options.first, options.seeds, plant)
        text = "no violation" if found is None else f"seed {found[0]}: {found[1]}"
        out.write(f"plant {plant}: {text}\n")
        out.flush()
        failed += (found is None) == (plant != 0)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout))
