"""The operator detects each failed broker, and counts requests in each phase."""

from collections.abc import Iterator

import pytest

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS
from kclient.common.types import TopicPartition
from kclient.testing.virtual.virtual_world import VirtualWorld
from tests.simulation.application import Stage
from tests.simulation.history import CommitSeen, Healthy, History, Repeated
from tests.simulation.operator import Operator
from tests.simulation.scenario import TOPIC, Scenario, draw
from tests.simulation.simulation import simulate

START_MS = 10_000.0
COMMITS = [(0, 1), (1, 5), (0, 2), (0, 3), (1, 4)]
"""Committed offsets by partition."""


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


def _scenario_without_flushes() -> Scenario:
    """Return a scenario in which an append does not wait for the disk."""
    return next(
        scenario
        for scenario in map(draw, range(1, 100))
        if "log.flush.interval.messages" not in scenario.broker
    )


def test_each_of_several_commits_of_one_step_is_in_the_history() -> None:
    """The state after the step has only the last of them."""
    history = History()
    with VirtualWorld(1, switch_probability=0.0) as world:
        operator = Operator(Stage(world, _scenario_without_flushes(), history))
        operator.start()
        world.on_step.append(operator.watch)
        world.run(lambda: operator.server is not None, START_MS)
        assert operator.server is not None
        assert operator.process is not None
        services, spawn = operator.server.services, operator.process.spawn
        created: list[object] = []
        create = services.topic_creation.create
        spawn("topic", lambda: create([CONSUMER_OFFSETS], created.append))
        world.run(lambda: bool(created), START_MS)
        codes: list[int] = []

        def commit_all() -> None:
            for number, offset in COMMITS:
                services.groups.commit_offsets(
                    "g",
                    ("", None, -1),
                    {TopicPartition(TOPIC, number): CommittedOffset(offset, -1, "", 0)},
                    lambda result: codes.extend(result.values()),
                )

        spawn("commits", commit_all)
        world.run(lambda: len(codes) == len(COMMITS), START_MS)
    assert codes == [0] * len(COMMITS)
    seen = [(each.partition, each.offset) for each in history.of(CommitSeen)]
    assert seen == COMMITS


def test_requests_are_counted_while_list_offsets_fails() -> None:
    history = simulate(2).history
    calm_ms = min(event.at_ms for event in history.of(Healthy))
    counted = {event.api for event in history.of(Repeated) if event.at_ms >= calm_ms}
    assert {"LIST_OFFSETS", "HEARTBEAT"} <= counted
