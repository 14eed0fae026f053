"""Runs a cell and compares its claim with the cluster."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from integration.benchmarks.contenders import contender
from integration.benchmarks.workload import CONSUME, Measurement, Workload
from integration.harness.wire_probe import end_offsets
from kclient import Consumer, TopicPartition
from tests.support.checks.waiting import HarnessError

_PROJECT = Path(__file__).parents[2]
_CELL_TIMEOUT = 180


class CellError(HarnessError):
    """A cell failed, or its claim is wrong. The run fails, since no round may be dropped."""


def run_cell(load: Workload, tree: Path) -> Measurement:
    """Runs `load` with the kclient of `tree` in a process of its own, and checks the outcome.

    Raises:
        CellError: when it fails, loses or repeats a record.
    """
    command = [sys.executable, "-m", "integration.benchmarks.cell", load.to_json(), str(tree)]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=_CELL_TIMEOUT,
            cwd=_PROJECT,
            env={**os.environ, **contender(load.operation, load.client).environment},
        )
    except subprocess.TimeoutExpired as error:
        msg = f"{load.operation} by {load.client}: not done after {_CELL_TIMEOUT} s"
        raise CellError(msg) from error
    if done.returncode:
        msg = f"{load.operation} by {load.client} failed:\n{done.stderr[-2000:]}"
        raise CellError(msg)
    measured = Measurement(**json.loads(done.stdout.splitlines()[-1]))
    check_claim(load, measured)
    return measured


def check_claim(load: Workload, measured: Measurement) -> None:
    """Compares a client's claim with the records that the broker stored.

    Raises:
        CellError: naming each difference.
    """
    ends = end_offsets(load.bootstrap, load.topic, load.partitions)
    expected = _expected(load, ends)
    actual = {
        "claimed": measured.claimed,
        "stored": _committed(load, ends) if load.transaction_ms else sum(ends.values()),
        "value bytes": measured.value_bytes,
        "sum of offsets": measured.offset_sum,
    }
    wrong = {
        name: (actual[name], value) for name, value in expected.items() if actual[name] != value
    }
    if wrong:
        differences = ", ".join(
            f"{name}: got {got}, expected {want}" for name, (got, want) in wrong.items()
        )
        msg = f"{load.operation} by {load.client}: {differences}"
        raise CellError(msg)


def _committed(load: Workload, ends: Mapping[int, int]) -> int:
    """Returns the number of records of committed transactions: end offsets count markers, too."""
    partitions = [TopicPartition(load.topic, partition) for partition in ends]
    deadline = time.monotonic() + _CELL_TIMEOUT
    records = 0
    with Consumer(
        bootstrap_servers=load.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign(partitions)
        while any(consumer.position(each) < ends[each.partition] for each in partitions):
            records += consumer.poll_columns(1.0).num_rows
            if time.monotonic() > deadline:
                msg = f"{load.topic}: only {records} records are committed after {_CELL_TIMEOUT} s"
                raise CellError(msg)
    return records


def _expected(load: Workload, ends: Mapping[int, int]) -> dict[str, int]:
    expected = {"claimed": load.records, "stored": load.records}
    if load.operation == CONSUME:
        expected["value bytes"] = load.records * load.size
        # 0 + 1 + … + (end - 1) in each partition: a lost record and a repeated one change it.
        expected["sum of offsets"] = sum(end * (end - 1) // 2 for end in ends.values())
    return expected
