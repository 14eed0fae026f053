"""Repeated measurements of one kclient in a process: ``slices.py TREE WORKLOAD``.

kclient is imported from the tree, the benchmark from where this file is. Each line of the standard
input asks for a measurement, which is written as JSON, or `CANNOT_RUN` and the reason if the tree
lacks what the workload uses.
"""

import dataclasses
import gc
import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from integration.benchmarks.workload import Measurement, Workload


CANNOT_RUN = "cannot run: "


def main(tree: str, workload: str) -> None:
    try:
        measure(tree, workload)
    except (AttributeError, ImportError) as error:
        print(f"{CANNOT_RUN}{error}", flush=True)


def measure(tree: str, workload: str) -> None:
    # An editable install would add modules of its own checkout to a tree that lacks them.
    sys.meta_path[:] = [
        each for each in sys.meta_path if "__editable__" not in getattr(each, "__module__", "")
    ]
    sys.path[0] = tree
    importlib.import_module("kclient")
    sys.path[0] = str(Path(__file__).parents[2])

    from integration.benchmarks.contenders import contender  # noqa: PLC0415 - see the path above
    from integration.benchmarks.meter import Meter  # noqa: PLC0415
    from integration.benchmarks.workload import Consumed, Workload  # noqa: PLC0415

    load = Workload.from_json(workload)
    session = contender(load.operation, load.client).session()(load)
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    for _ in sys.stdin:
        meter = Meter()
        outcome = session.run(meter)
        if isinstance(outcome, Consumed):
            found = meter.measurement(outcome.records, outcome)
        else:
            found = meter.measurement(outcome)
        check(load, found)
        print(json.dumps(dataclasses.asdict(found)), flush=True)
    session.close()


def check(load: "Workload", found: "Measurement") -> None:
    """Compares the number of records, and of the bytes of their values where they were read."""
    if found.claimed != load.records:
        sys.exit(f"{load.client}: got {found.claimed} records, expected {load.records}")
    if found.value_bytes not in (0, load.records * load.size):
        sys.exit(f"{load.client}: got {found.value_bytes} bytes of values")


if __name__ == "__main__":
    main(*sys.argv[1:])
