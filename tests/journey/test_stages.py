"""Stages of a record: their code exists, and they leave no time out."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.journey.stages import BROKER_IN_ALL, PRODUCER_STAGES, Stage, durations

ROOT = Path(__file__).parents[2]
STAGES = (*PRODUCER_STAGES, BROKER_IN_ALL)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_code_of_a_stage_exists(stage: Stage) -> None:
    tree = ast.parse((ROOT / stage.file).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert stage.function in defined


def test_names_of_stages_differ() -> None:
    assert len({stage.name for stage in STAGES}) == len(STAGES)


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=20))
def test_stages_add_up_to_the_whole(points: list[int]) -> None:
    names = [str(number) for number in range(len(points) - 1)]
    found = durations(names, points)
    assert list(found) == names
    assert all(value >= 0 for value in found.values())
    assert sum(found.values()) == max(points) - points[0]


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=20).map(sorted))
def test_stages_of_ordered_points_are_their_differences(points: list[int]) -> None:
    names = [str(number) for number in range(len(points) - 1)]
    found = durations(names, points)
    assert [points[0] + sum(list(found.values())[:n]) for n in range(len(points))] == points
