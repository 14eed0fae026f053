"""Command that runs seeds.

``python -m tests.cluster_simulation --seed 7 --trace out.txt``, ``--seeds 200 --jobs 2``, or
``--bug any-log``.
"""

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tests.cluster_simulation.planted_bugs import BUGS, planted
from tests.cluster_simulation.simulation import Result, simulate

_HASH_SEED = "0"


def main() -> int:
    """Run the command; return 1 if an invariant was violated, or a planted bug was not found."""
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # A run depends on the order of sets of strings, so hashing must be the same in each run.
        os.environ["PYTHONHASHSEED"] = _HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", "tests.cluster_simulation", *sys.argv[1:]])  # noqa: S606 (itself)
    logging.disable(logging.CRITICAL)
    arguments = _arguments()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    if arguments.bug is not None:
        return _hunt(arguments.bug or list(BUGS), seeds, arguments.jobs)
    if arguments.seed is not None:
        return _one(arguments.seed, arguments.trace)
    return _many(seeds, arguments.jobs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_simulation")
    parser.add_argument("--seed", type=int, help="run only this seed")
    parser.add_argument("--trace", type=Path, help="with --seed: write the events to this file")
    parser.add_argument(
        "--bug", nargs="*", choices=BUGS, help="search for these planted bugs; all without a name"
    )
    parser.add_argument("--seeds", type=int, default=100, help="number of seeds")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    return parser.parse_args()


def _one(seed: int, trace: Path | None) -> int:
    result = simulate(seed, keep_trace=trace is not None)
    if trace is not None:
        trace.write_text("\n".join(result.trace) + "\n")
    _say(
        f"seed {seed}: {result.records} records, {result.batches} batches of metadata, "
        f"{result.virtual_ms / 1000:.1f} s of virtual time, {result.steps} turns, "
        f"trace {result.digest}"
    )
    for kind, count in sorted(result.faults.items()):
        _say(f"  {count:4} {kind}")
    report(result)
    return 1 if result.violation else 0


def _many(seeds: Iterable[int], jobs: int) -> int:
    started = time.monotonic()
    faults: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for result in pool.imap_unordered(simulate, seeds):
            faults.update(result.faults)
            totals["seeds"] += 1
            totals["records"] += result.records
            totals["batches of metadata"] += result.batches
            totals["virtual seconds"] += int(result.virtual_ms / 1000)
            totals["violations"] += result.violation is not None
            report(result)
    _say(", ".join(f"{count} {what}" for what, count in totals.items()))
    _say("faults: " + ", ".join(f"{count} {kind}" for kind, count in sorted(faults.items())))
    _say(f"{time.monotonic() - started:.0f} s")
    return 1 if totals["violations"] else 0


def _hunt(names: list[str], seeds: Iterable[int], jobs: int) -> int:
    missed = 0
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for name, found in pool.imap_unordered(partial(search, seeds=seeds), names):
            missed += found is None
            _say(f"{name}: {'not found' if found is None else _short(found)}")
    return 1 if missed else 0


def search(name: str, seeds: Iterable[int]) -> tuple[str, Result | None]:
    """Return the result of the first seed that finds a planted bug, or None."""
    with planted(BUGS[name]):
        for seed in seeds:
            result = simulate(seed)
            if result.violation is not None:
                return name, result
    return name, None


def report(result: Result) -> None:
    """Print the violation of a run, and how to reproduce it."""
    if result.violation is not None:
        _say(f"seed {result.seed}, {result.phase}: {result.violation}")
        command = f"python -m tests.cluster_simulation --seed {result.seed} --trace trace.txt"
        _say(f"  to reproduce: {command}")


def _short(result: Result) -> str:
    first = (result.violation or "").partition("\n")[0]
    return f"seed {result.seed}: {first[:160]}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
