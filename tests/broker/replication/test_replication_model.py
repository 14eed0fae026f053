"""Replication under faults: the invariants hold after each of some hundred actions by chance."""

import pytest

from tests.broker.replication.replicas_model import World


@pytest.mark.parametrize("seed", range(30))
def test_nothing_acknowledged_or_visible_is_lost(seed: int) -> None:
    world = World(seed)
    world.run(400)
    assert world.truth.acknowledged
