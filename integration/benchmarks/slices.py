"""Repeated measurements of one kclient in a process: ``slices.py TREE WORKLOAD``.

kclient is imported from the tree, the benchmark from where this file is. Each line of the standard
input asks for a measurement, which is written as JSON.
"""

import dataclasses
import gc
import importlib
import json
import sys
from pathlib import Path


def main(tree: str, workload: str) -> None:
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
        records = outcome.records if isinstance(outcome, Consumed) else outcome
        if records != load.records:
            sys.exit(f"{load.client}: got {records} records, expected {load.records}")
        print(json.dumps(dataclasses.asdict(meter.measurement(records))), flush=True)
    session.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
