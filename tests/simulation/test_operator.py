"""The operator detects each failed broker, and counts requests in each phase."""

from collections.abc import Iterator

import pytest

from kclient.testing.virtual.virtual_world import VirtualWorld
from tests.simulation.application import Stage
from tests.simulation.history import Healthy, History, Repeated
from tests.simulation.operator import Operator
from tests.simulation.scenario import draw
from tests.simulation.simulation import simulate

START_MS = 10_000.0


@pytest.fixture
def operator() -> Iterator[Operator]:
    """Running broker without partitions."""
    with VirtualWorld(1) as world:
        operator = Operator(Stage(world, draw(1), History()))
        operator.start()
        world.run(lambda: operator.server is not None, START_MS)
        yield operator


def test_broker_with_offline_directory_and_no_partition_is_not_sound(
    operator: Operator,
) -> None:
    assert operator.is_sound
    assert operator.server is not None
    logs = operator.server.services.replica_manager._log_manager
    logs.failures.take_offline("a directory could not be removed")
    assert not operator.is_sound


def test_log_ends_are_unknown_while_a_partition_is_not_hosted(operator: Operator) -> None:
    assert operator.ends() is None


def test_requests_are_counted_while_list_offsets_fails() -> None:
    history = simulate(2).history
    calm_ms = min(event.at_ms for event in history.of(Healthy))
    counted = {event.api for event in history.of(Repeated) if event.at_ms >= calm_ms}
    assert {"LIST_OFFSETS", "HEARTBEAT"} <= counted
