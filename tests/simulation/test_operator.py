"""The simulation's operator sees every broken broker, and counts requests in every act."""

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
    """A broker that runs and hosts no partition yet."""
    with VirtualWorld(1) as world:
        operator = Operator(Stage(world, draw(1), History()))
        operator.start()
        world.run(lambda: operator.server is not None, START_MS)
        yield operator


def test_a_broker_whose_data_directory_is_offline_is_not_sound_though_it_hosts_no_partition(
    operator: Operator,
) -> None:
    assert operator.is_sound
    assert operator.server is not None
    logs = operator.server.services.replica_manager._log_manager
    logs.failures.take_offline("a directory could not be removed")
    assert not operator.is_sound


def test_the_ends_are_unknown_while_a_partition_is_not_hosted(operator: Operator) -> None:
    assert operator.ends() is None


def test_requests_are_counted_while_offset_look_ups_are_refused() -> None:
    history = simulate(2).history
    calm_ms = min(event.at_ms for event in history.of(Healthy))
    counted = {event.api for event in history.of(Repeated) if event.at_ms >= calm_ms}
    assert {"LIST_OFFSETS", "HEARTBEAT"} <= counted
