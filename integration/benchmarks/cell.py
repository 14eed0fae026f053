"""One measurement in a process of its own: a workload in, a measurement out, both as JSON."""

import dataclasses
import gc
import json
import os
import sys

from integration.benchmarks.contenders import contender
from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload


def main(argument: str) -> None:
    load = Workload.from_json(argument)
    drive = contender(load.operation, load.client).load()
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


if __name__ == "__main__":
    main(sys.argv[1])
    # Some clients take seconds to end their threads, and nothing is lost by not waiting.
    os._exit(0)
