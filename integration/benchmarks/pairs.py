"""Comparison of this kclient with that of another checkout: ``make bench-pairs BASE=…``.

Both run at the same time in processes of their own and take turns in slices of a fraction of a
second, so that whatever slows the machine slows both. A second process of the base is the control:
its ratios, which should be 1, show how far the others can be trusted.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Self

from integration.benchmarks.cases import Cell
from integration.benchmarks.contenders import COMPILED, CONTENDERS, KCLIENT
from integration.benchmarks.measuring import CellError
from integration.benchmarks.runner import LARGEST_SHARE, Runner, Settings
from integration.benchmarks.slices import CANNOT_RUN
from integration.benchmarks.spread import Spread
from integration.benchmarks.targets import SINK, target
from integration.benchmarks.workload import CONSUME, PRODUCE, Measurement, Workload
from integration.harness.discovery import NEWEST
from integration.harness.running_kafka import RunningKafka
from tests.support.checks.waiting import HarnessError

PROJECT = Path(__file__).parents[2]
_WARM_UP = 2
_SLICE_TIMEOUT_S = 120.0  # after which a worker is killed; a slice takes less than a second
_CONFIDENCE = 1.96  # standard deviations, for an interval of 95 %


class CannotRunError(CellError):
    """A tree lacks what a workload uses.

    Attributes:
        tree: The checkout.
        reason: What it lacks.
    """

    def __init__(self, tree: Path, reason: str) -> None:
        super().__init__(f"{tree}: {reason}")
        self.tree = tree
        self.reason = reason


class Worker:
    """A process that measures one slice at a time; the end of the block kills it."""

    def __init__(self, tree: Path, load: Workload) -> None:
        self._tree = tree
        script = Path(__file__).with_name("slices.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(tree), load.to_json()],
            cwd=tree,
            env={**os.environ, "KCLIENT_REQUIRE_EXTENSION": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.__exit__(None, None, None)

    def wait_until_ready(self) -> None:
        self._line()

    def measure(self) -> Measurement:
        requests = _open(self._process.stdin)
        requests.write("\n")
        requests.flush()
        return Measurement(**json.loads(self._line()))

    def _line(self) -> str:
        deadline = threading.Timer(_SLICE_TIMEOUT_S, self._process.kill)
        deadline.start()
        try:
            line = _open(self._process.stdout).readline()
        finally:
            deadline.cancel()
        if not line:
            status = self._process.wait()
            raise CellError(f"a worker ended with status {status}; see its error, if any")
        if line.startswith(CANNOT_RUN):
            raise CannotRunError(self._tree, line.removeprefix(CANNOT_RUN).strip())
        return line


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def measure(pairs: Sequence[tuple[Path, Workload]], slices: int) -> list[list[Measurement]]:
    """Returns the measurements of each tree and workload; they take turns, in a rotating order."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(tree, load)) for tree, load in pairs]
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers * _WARM_UP:
            worker.measure()
        found: list[list[Measurement]] = [[] for _ in workers]
        for number in range(slices):
            for place in range(len(workers)):
                turn = (place + number) % len(workers)
                found[turn].append(workers[turn].measure())
        return found


def median_interval(values: Sequence[float]) -> Spread:
    """Returns the median, and the order statistics that enclose it with 95 % confidence."""
    ordered = sorted(values)
    half = _CONFIDENCE * math.sqrt(len(ordered)) / 2
    low = max(0, math.floor(len(ordered) / 2 - half))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + half))
    return Spread(statistics.median(ordered), ordered[low], ordered[high])


def ratio(
    figure: Callable[[Measurement], float], over: Sequence[Measurement], of: Sequence[Measurement]
) -> Spread:
    """Returns the median of a figure of one series over that of another, slice by slice."""
    return median_interval([figure(a) / figure(b) for a, b in zip(over, of, strict=True)])


def row(cell: Cell, found: Sequence[Sequence[Measurement]]) -> str:
    """Returns a line: the work per CPU second and the rate relative to the base."""
    base, ours, control = found
    per_million = statistics.median(one.cpu_per_million for one in ours)
    cells = [_name(cell), f"{per_million:8.3f}"]
    for figure, against in ((_cpu, (base, ours)), (_rate, (ours, base))):
        found_ratio = ratio(figure, *against)
        cells.append(f"{found_ratio.median:6.3f} {found_ratio.range_text('.3f')}")
        of_control = (base, control) if figure is _cpu else (control, base)
        cells.append(f"{ratio(figure, *of_control).median:7.3f}")
    return "  ".join(cells)


def _name(cell: Cell) -> str:
    return f"{cell.operation} {cell.size} B: {cell.contender}".ljust(44)


def _cpu(one: Measurement) -> float:
    return one.cpu_per_million


def _rate(one: Measurement) -> float:
    return one.records_per_second


HEAD = (
    f"{'':44}  {'CPU s/M':>8}  {'work/CPU':<19}  control  {'rate':<19}  control\n"
    "Medians of the ratios to the base, with the interval of 95 %; above 1 is better."
)


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.pairs",
        description="Compares this kclient with that of another checkout.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("base", type=Path, help="checkout with compiled extensions")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these contenders alone")
    parser.add_argument("--against", metavar="NAME", help="this contender in the base")
    parser.add_argument("--operations", nargs="+", default=[PRODUCE, CONSUME], metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1024], metavar="BYTES")
    parser.add_argument("--slices", type=int, default=90)
    parser.add_argument("--scale", type=float, default=0.15, help="times the benchmark's records")
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=256 << 10)
    parser.add_argument(
        "--defaults", action="store_true", help="each client's default configuration"
    )
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--codec", default="none", choices=["none", "lz4", "zstd"])
    parser.add_argument("--sink", action="store_true", help="the sink broker instead of Kafka")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> None:
    chosen = arguments(given)
    base = chosen.base.resolve()
    if not (base / "kclient" / "__init__.py").exists():
        raise HarnessError(f"base: got {base}, expected a checkout of kclient")
    print(HEAD, flush=True)
    for line in compare(base, chosen):
        print(line, flush=True)


def compare(base: Path, chosen: argparse.Namespace) -> Iterator[str]:
    """Yields a line for each of kclient's ways of use and each size.

    The line of those that the base cannot run has the client or method that it lacks.
    """
    settings = Settings(
        rounds=1,
        scale=chosen.scale,
        acks="all",
        linger_ms=chosen.linger_ms,
        batch_bytes=chosen.batch_bytes,
        tree=PROJECT,
    )
    with target(SINK if chosen.sink else NEWEST) as kafka:
        runner = Runner(kafka, settings, lambda _: None)
        for size in chosen.sizes:
            for cell in _cells(size, chosen):
                with runner.workload(cell) as load:
                    line = _compared(cell, load, kafka, base, chosen)
                yield line


def _compared(
    cell: Cell, load: Workload, kafka: RunningKafka, base: Path, chosen: argparse.Namespace
) -> str:
    before = kafka.cpu_seconds()
    try:
        former = base, replace(load, client=chosen.against or load.client)
        found = measure([former, (PROJECT, load), former], chosen.slices)
    except CannotRunError as error:
        if error.tree != base:
            raise
        return f"{_name(cell)}  skipped, the base cannot run it: {error.reason}"
    used = kafka.cpu_seconds() - before
    return row(cell, found) + (_sink_share(used, found) if chosen.sink else "")


def _sink_share(used: float, found: Sequence[Sequence[Measurement]]) -> str:
    """Returns the part of a core that the sink used, at most, and whether that was too much."""
    share = used / sum(one.seconds for each in found for one in each)
    return f"  sink {share:.0%}{', unusable' if share > LARGEST_SHARE else ''}"


def _cells(size: int, chosen: argparse.Namespace) -> list[Cell]:
    return [
        Cell(
            operation=one.operation,
            contender=one.name,
            size=size,
            partitions=chosen.partitions,
            codec=chosen.codec,
            defaults=chosen.defaults,
        )
        for one in CONTENDERS
        if one.package == KCLIENT
        and one.implementation == COMPILED
        and not one.is_long
        and not (chosen.sink and one.needs_kafka)
        and one.operation in chosen.operations
        and (not chosen.only or one.name in chosen.only)
    ]


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HarnessError as error:
        sys.exit(str(error))
