"""Command that fuzzes targets: ``python -m tests.fuzz --seconds 600 --jobs 2 [--target NAME]``.

Findings go to ``build/fuzz/<target>/``: the input, and a text file that describes the failure.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from tests.fuzz.targets import NAMES

OUTPUT = Path(__file__).parents[2] / "build" / "fuzz"
_GRACE_SECONDS = 600  # for instrumentation, the corpus and the end, on a loaded machine
_RUNS = re.compile(r"^(?:#|Done |runs: )(\d+)", re.MULTILINE)


class Outcome(NamedTuple):
    """Result of one target."""

    name: str
    runs: int
    seconds: float
    findings: list[Path]
    failure: str


def main() -> int:
    """Run the command; return its exit status."""
    options = _options()
    names = options.target or list(NAMES)
    print(f"engine {options.engine}, seed {options.seed}")  # noqa: T201 - a command
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda name: _supervise(name, options), names))
    return int(any(outcome.findings or outcome.failure for outcome in outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--target", action="append", choices=NAMES, help="default: all")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1, 2**31))
    guided = "atheris" if importlib.util.find_spec("atheris") else "seeded"
    parser.add_argument("--engine", choices=("atheris", "seeded"), default=guided)
    return parser.parse_args()


def _supervise(name: str, options: argparse.Namespace) -> Outcome:
    """Run one target in its own process, since a finding may end the process."""
    directory = OUTPUT / name
    directory.mkdir(parents=True, exist_ok=True)
    known = set(directory.iterdir())
    command = [sys.executable, "-m", "tests.fuzz.worker", name, str(directory)]
    command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    command += ["--engine", options.engine]
    begun = time.monotonic()
    with (directory / "output.txt").open("w") as output:
        worker = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            status = worker.wait(options.seconds + _GRACE_SECONDS)
            failure = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
            failure = "timed out"
    text = (directory / "output.txt").read_text(errors="replace")
    runs = max((int(number) for number in _RUNS.findall(text)), default=0)
    new = sorted(set(directory.iterdir()) - known)
    found = [path for path in new if path.is_file() and path.suffix != ".txt"]
    outcome = Outcome(name, runs, time.monotonic() - begun, found, failure)
    _show(outcome)
    return outcome


def _show(outcome: Outcome) -> None:
    rate = outcome.runs / outcome.seconds
    figures = f"{outcome.runs:>9} inputs {outcome.seconds:>6.0f} s {rate:>7.0f}/s"
    line = f"{outcome.name:<12} {figures} {len(outcome.findings):>3} findings {outcome.failure}"
    places = [f"    {path}" for path in outcome.findings]
    print("\n".join([line, *places]), flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
