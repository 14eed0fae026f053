"""One measurement in a process of its own: a workload in, a measurement out, both as JSON.

kclient is imported from the given checkout, the benchmark from where this file is.
"""

import dataclasses
import gc
import importlib
import json
import os
import sys
from pathlib import Path

from integration.benchmarks.contenders import KCLIENT, Contender, contender
from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload


def main(argument: str, tree: str) -> None:
    load = Workload.from_json(argument)
    way = contender(load.operation, load.client)
    if way.package == KCLIENT:
        import_kclient(way, tree)
    drive = way.load()
    meter = Meter()
    # What the imports left behind is not the client's to walk through again and again.
    gc.collect()
    gc.freeze()
    outcome = drive(load, meter)
    if isinstance(outcome, Consumed):
        measured = meter.measurement(outcome.records, outcome)
    else:
        measured = meter.measurement(outcome)
    print(json.dumps(dataclasses.asdict(measured)), flush=True)


def import_kclient(way: Contender, tree: str) -> None:
    """Imports the kclient of `tree`, and ends the process where another would be measured."""
    sys.path.insert(0, tree)
    found = importlib.import_module("kclient").__file__
    active = importlib.import_module("kclient.record").IMPLEMENTATION
    sys.path.remove(tree)
    if found is None or Path(found).parents[1] != Path(tree):
        sys.exit(f"kclient: got that of {found}, expected that of {tree}")
    if active != way.implementation:
        sys.exit(f"{way.name}: got the record code {active!r}, expected {way.implementation!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Some clients take seconds to end their threads, and nothing is lost by not waiting.
    os._exit(0)
