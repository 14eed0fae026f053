"""Command that runs seeds.

``python -m tests.simulation --seed 7 --trace out.txt`` or ``--seeds 99 --jobs 2``.
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
from itertools import islice
from pathlib import Path

from tests.simulation.clients import KINDS
from tests.simulation.planted_bugs import BUGS
from tests.simulation.runs import run_all
from tests.simulation.simulation import Result, simulate

_HASH_SEED = "0"


def main() -> int:
    """Run the command; return 1 if an invariant was violated."""
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # A run depends on the order of sets of strings, so hashing must be the same in each run.
        os.environ["PYTHONHASHSEED"] = _HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])  # noqa: S606 (itself)
    logging.disable(logging.CRITICAL)
    arguments = _arguments()
    if arguments.bug is not None:
        return _hunt(arguments.bug or list(BUGS), arguments.first, arguments.seeds, arguments.jobs)
    if arguments.seed is not None:
        return _one(arguments.seed, arguments.trace, arguments.clients)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    return _many(seeds, arguments.jobs, arguments.clients)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, help="run only this seed")
    parser.add_argument("--trace", type=Path, help="with --seed: write the history to this file")
    parser.add_argument(
        "--bug", nargs="*", choices=BUGS, help="search for these planted bugs; all without a name"
    )
    parser.add_argument("--seeds", type=int, default=100, help="number of seeds")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--clients", choices=KINDS, default="blocking", help="kind of the clients")
    return parser.parse_args()


def _one(seed: int, trace: Path | None, clients: str) -> int:
    result = simulate(seed, KINDS[clients], keep_trace=trace is not None)
    if trace is not None:
        lines = [*result.history.lines(), "", *result.trace]
        trace.write_text("\n".join(lines) + "\n")
    _say(
        f"seed {seed}: {result.records} records, {result.virtual_ms / 1000:.1f} s of virtual time, "
        f"{result.steps} steps, trace {result.digest}"
    )
    for kind, count in sorted(result.faults.items()):
        _say(f"  {count:4} {kind}")
    report(result)
    return 1 if result.violations else 0


def _many(seeds: Iterable[int], jobs: int, clients: str) -> int:
    started = time.monotonic()
    faults: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for result in run_all(seeds, jobs, clients):
        faults.update(result.faults)
        totals["seeds"] += 1
        totals["records"] += result.records
        totals["virtual seconds"] += int(result.virtual_ms / 1000)
        totals["turns"] += result.steps
        totals["seeds with violations"] += bool(result.violations)
        report(result)
    _say(f"{time.monotonic() - started:.0f} seconds")
    for counted in (totals, faults):
        for what, count in counted.items() if counted is totals else sorted(counted.items()):
            _say(f"{count:10} {what}")
    return 1 if totals["seeds with violations"] else 0


def _hunt(names: Iterable[str], first: int, count: int, jobs: int) -> int:
    """Print the first seed that finds each planted bug; return 1 if one is not found."""
    missed = 0
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for name, found in pool.imap_unordered(partial(_search, first, count), names):
            missed += found is None
            _say(f"{name:20} {found or f'not found by {count} seeds of its load'}")
    return 1 if missed else 0


def _search(first: int, count: int, name: str) -> tuple[str, str | None]:
    """Return the name of a bug, and the first of so many seeds of its load that finds it."""
    bug = BUGS[name]
    for number, seed in enumerate(islice(bug.seeds(first), count), 1):
        found = bug.violations(seed)
        if found:
            text = str(found[0]).splitlines()[0][:150]
            return name, f"seed {seed}, number {number} of its load: {text}"
    return name, None


def report(result: Result) -> None:
    """Print the violations, and the command that reproduces them."""
    if result.violations:
        _say(f"seed {result.seed}: {len(result.violations)} violations")
        for violation in result.violations:
            _say(f"  {violation}"[:3000])
        _say(
            f"  reproduce: PYTHONHASHSEED=0 python -m tests.simulation --seed {result.seed} "
            f"--clients {result.clients} --trace history.txt"
        )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
