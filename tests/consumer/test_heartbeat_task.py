"""Heartbeats between the calls of the application."""

import pytest

from kclient.common.errors import (
    FatalError,
)
from kclient.common.types import TopicPartition
from tests.consumer.conftest import ConsumerWorld, Diary, member


@pytest.mark.fault("R23")
def test_heartbeats_continue_between_polls(world: ConsumerWorld, diary: Diary) -> None:
    member(world, diary)
    before = world.broker.group.heartbeats
    world.background(60_000)
    assert 15 <= world.broker.group.heartbeats - before <= 21


@pytest.mark.fault("R16")
def test_heartbeats_continue_during_callbacks(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    beats: list[int] = []

    def slow(given: list[TopicPartition]) -> None:
        before = world.broker.group.heartbeats
        world.background(20_000)
        beats.append(world.broker.group.heartbeats - before)

    consumer.subscribe("orders", on_assigned=slow)
    world.poll_until(consumer, lambda: bool(beats))
    assert beats[0] >= 5


def test_heartbeat_task_does_nothing_during_a_call(world: ConsumerWorld) -> None:
    consumer = world.subscribed()
    started = world.tasks.started[0]
    assert started.name == "kclient-consumer-heartbeat"
    with consumer._core.call():
        asked = len(world.broker.asked)
        for _ in range(5):
            assert started.step()
        assert len(world.broker.asked) == asked


def test_heartbeat_task_is_not_started_without_group(world: ConsumerWorld) -> None:
    world.fill(1)
    world.read(world.assigned(group_id="g"), 1)
    world.read(world.assigned(), 1)
    assert world.tasks.started == []


def test_unexpected_heartbeat_error_is_raised_by_poll(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = world.subscribed()
    group = consumer._core.group
    assert group is not None

    def broken(_: float) -> float:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(group.membership, "background_step", broken)
    (loop,) = world.tasks.started
    assert loop.step() is False
    with pytest.raises(FatalError, match="ZeroDivisionError: planted") as caught:
        consumer.poll(0.0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_records_received_between_polls_are_returned_without_waiting(world: ConsumerWorld) -> None:
    consumer = world.subscribed(enable_auto_commit=False)
    assert not consumer.poll(0.1)
    world.fill(3)
    world.background(4000)
    for _ in range(3):  # until the response to the last heartbeat
        world.tasks.started[-1].step()
    before_ms = world.clock.now_ms
    assert len(consumer.poll(1.0)) == 3
    assert world.clock.now_ms == before_ms
