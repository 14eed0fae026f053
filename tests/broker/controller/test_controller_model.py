"""Invariants of cluster metadata over random brokers, requests and failovers."""

import os

import pytest

from tests.support.virtual.controller_model import ControllerModel

SEEDS = int(os.environ.get("CONTROLLER_MODEL_SEEDS", "30"))
STEPS = 300


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_run(seed: int) -> None:
    model = ControllerModel(seed)
    model.run(STEPS)
    assert model.responses["AlterPartitionRequest"]
