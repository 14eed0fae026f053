r"""The command line of the kill matrix.

A Spark driver or executor is killed at given points of a job from Kafka to Kafka. No record may be
lost, and the number of duplicates must be the documented one. It needs Spark 4.2 or newer, where
micro-batches can be limited.

    python -m integration.spark_kills
    python -m integration.spark_kills --list
    python -m integration.spark_kills --only driver/stream --only task-done
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from integration.spark_kills.cells import CELLS, named
from integration.spark_kills.matrix import Matrix
from integration.spark_kills.report import lines_of
from tests.support.checks.waiting import HarnessError


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.spark_kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="only list the cells")
    parser.add_argument(
        "--only", action="append", metavar="PART", help="cells whose name contains PART; repeatable"
    )
    parser.add_argument("--times", type=int, default=1, help="runs of each cell")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    chosen = arguments(given)
    try:
        cells = named(chosen.only) if chosen.only else list(CELLS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if chosen.list:
        for cell in cells:
            print(f"{cell.name:40} {cell.kind}: {cell.point}; duplicates: {cell.duplicates}")
        return 0
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="kclient-spark-kills-"))
    print(f"logs: {directory}, removed if there is no fault", flush=True)
    results, faults = [], []
    with Matrix(directory) as matrix:
        for cell in cells * chosen.times:
            try:
                result = matrix.run(cell)
            except HarnessError as error:
                outcome = "not completed"
                faults.append(f"{cell.name}: {error}")
            else:
                outcome = f"{result.count.lost} lost, {result.count.duplicates} duplicates"
                results.append(result)
                faults += [f"{cell.name}: {fault}" for fault in result.faults]
            print(f"{time.monotonic() - started:7.1f} s  {cell.name}: {outcome}", flush=True)
    for line in lines_of(results):
        print(line)
    for fault in faults:
        print(f"FAULT: {fault}")
    if not faults:
        shutil.rmtree(directory)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
