"""Stages of a record: their code exists, and they leave no time out."""

import ast
from pathlib import Path

import pytest

from kclient.journey.stages import (
    BROKER_IN_ALL,
    CONSUMER_STAGES,
    FETCH_STAGES,
    PRODUCER_STAGES,
    Stage,
)

ROOT = Path(__file__).parents[2]
STAGES = (*PRODUCER_STAGES, BROKER_IN_ALL, *CONSUMER_STAGES)


@pytest.mark.parametrize("stage", [*STAGES, *FETCH_STAGES], ids=lambda stage: stage.name)
def test_code_of_a_stage_exists(stage: Stage) -> None:
    tree = ast.parse((ROOT / stage.file).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert stage.function in defined


def test_names_of_stages_differ() -> None:
    assert len({stage.name for stage in STAGES}) == len(STAGES)


def test_stages_of_a_fetch_have_the_names_of_those_of_a_produce_request() -> None:
    names = [stage.name for stage in PRODUCER_STAGES]
    first = names.index("wire to broker")
    assert [stage.name for stage in FETCH_STAGES] == names[first : first + 6]
