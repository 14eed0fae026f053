"""The outcome of a run as data: what the report, the picture and the documentation are made of."""

import dataclasses
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from integration.benchmarks.cases import FIGURES, FIGURES_OF, Block, Case, Cell, Figure, Goal
from integration.benchmarks.runner import LARGEST_SHARE, Measurements, Settings
from integration.benchmarks.spread import Spread
from integration.benchmarks.targets import SINK
from integration.benchmarks.workload import Measurement
from tests.support.checks.waiting import HarnessError

PEERS = ("confluent-kafka", "kafka-python", "aiokafka")


def setup(kafka_version: str, settings: Settings) -> dict[str, Any]:
    """Returns what must be equal for results in one file."""
    return {
        "broker": kafka_version,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "clients": {name: version(name) for name in PEERS},
        "settings": {**dataclasses.asdict(settings), "tree": None},
    }


def block_results(block: Block, found: Measurements, broker: str) -> dict[str, Any]:
    """Returns the figures of all cells of a block, its cases and whether they reach the goals."""
    return {
        "title": block.title,
        "operation": block.operation,
        "figures": FIGURES_OF[block.operation],
        "cells": [_cell(cell, rounds, broker) for cell, rounds in found.items()],
        "cases": [_case(case, block, found) for case in block.cases],
    }


def _cell(cell: Cell, rounds: list[Measurement], broker: str) -> dict[str, Any]:
    share = Spread.of(one.broker_share for one in rounds)
    figures = {
        name: dataclasses.asdict(Spread.of(map(FIGURES[name].of, rounds)))
        for name in FIGURES_OF[cell.operation]
    }
    return {
        **dataclasses.asdict(cell),
        "figures": figures,
        "broker_share": share.median,
        "usable": broker != SINK or share.median <= LARGEST_SHARE,
        "rounds": [dataclasses.asdict(one) for one in rounds],
    }


def _case(case: Case, block: Block, found: Measurements) -> dict[str, Any]:
    ratios = {
        name: dataclasses.asdict(ratio(FIGURES[name], found[case.cell], found[case.against]))
        for name in FIGURES_OF[block.operation]
    }
    cells = block.cells
    return {
        "name": case.name,
        "cell": cells.index(case.cell),
        "against": cells.index(case.against),
        "ratios": ratios,
        "goals": [
            {**dataclasses.asdict(goal), **_verdict(goal, case, found)} for goal in case.goals
        ],
    }


def _verdict(goal: Goal, case: Case, found: Measurements) -> dict[str, bool | None]:
    figure, ours = FIGURES[goal.figure], found[case.cell]
    if figure.relative:
        median = ratio(figure, ours, found[case.against]).median
    else:
        median = Spread.of(map(figure.of, ours)).median
    return {
        "met": reached(figure, median, goal.limit),
        "aim_met": None if goal.aim is None else reached(figure, median, goal.aim),
    }


def reached(figure: Figure, value: float, limit: float) -> bool:
    return value <= limit if figure.less_is_better else value >= limit


def ratio(figure: Figure, ours: list[Measurement], theirs: list[Measurement]) -> Spread:
    """Returns a figure relative to the other cell's, round by round."""
    pairs = zip(ours, theirs, strict=True)
    return Spread.of(figure.of(mine) / figure.of(other) for mine, other in pairs)


def merged(file: Path, setup: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the results in `file` with a block added, or put in the place of its last run.

    Raises:
        HarnessError: the file is of another setup.
    """
    results: dict[str, Any] = {"setup": setup, "blocks": []}
    if file.exists():
        results = json.loads(file.read_text())
    if json.loads(json.dumps(results["setup"])) != json.loads(json.dumps(setup)):
        msg = f"{file}: got results of another setup; name another file"
        raise HarnessError(msg)
    places = {one["title"]: number for number, one in enumerate(results["blocks"])}
    place = places.get(block["title"], len(places))
    results["blocks"][place : place + 1] = [block]
    return results
