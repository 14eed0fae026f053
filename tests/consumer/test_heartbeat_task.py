"""Heartbeats between the calls of the application."""

import math
import threading
from itertools import pairwise
from typing import cast

import pytest

from kclient.common.errors import (
    FatalError,
    IllegalStateError,
    KafkaError,
)
from kclient.common.types import TopicPartition
from kclient.common.waiting import run_steps
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.heartbeat_task import HeartbeatTask
from kclient.consumer.membership import Membership
from kclient.network.system_runtime import system_runtime
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ConsumerWorld, Diary, StoredTask, member
from tests.support.checks.waiting import wait_until

NOT_COORDINATOR = 16


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


def test_failed_heartbeat_is_repeated_after_the_backoff(world: ConsumerWorld, diary: Diary) -> None:
    member(world, diary, heartbeat_interval_ms=3000)
    group = world.broker.group
    world.broker.fail(ApiKey.HEARTBEAT, NOT_COORDINATOR)
    before = group.heartbeats
    while not group.heartbeats - before:
        world.background(1.0)
    lost_ms = world.clock.now_ms
    while group.heartbeats - before < 2:
        world.background(1.0)
    # Until the response is found, the lookup of the coordinator, and retry.backoff.ms.
    assert world.clock.now_ms - lost_ms <= 500.0


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


class Steps:
    """A heartbeat task with a scripted membership and network."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.lock = ConsumerLock(world.tasks)
        self.errors: list[KafkaError] = []
        self.waits_ms = math.inf
        self.in_flight = False
        self.steps = 0
        self.raises: Exception | None = None
        self.poll_raises: KafkaError | None = None
        self.heartbeats = HeartbeatTask(
            cast("Membership", self),
            cast("ConsumerNetworkClient", self),
            self.lock,
            world.clock,
            3000.0,
            self.errors.append,
        )

    def background_step(self, now_ms: float) -> float:
        self.steps += 1
        if self.raises is not None:
            raise self.raises
        return self.waits_ms

    def awaits_response(self) -> bool:
        return self.in_flight

    def poll_membership(self, now_ms: float) -> None:
        if self.poll_raises is not None:
            raise self.poll_raises

    def start(self) -> StoredTask:
        self.heartbeats.start(self.world.tasks, "beat")
        return self.world.tasks.started[-1]

    def pauses(self, task: StoredTask, count: int) -> list[float]:
        """Return the times between the next steps."""
        times = [self.world.clock.now_ms]
        for _ in range(count):
            assert task.step()
            times.append(self.world.clock.now_ms)
        return [after - before for before, after in pairwise(times)]


@pytest.fixture
def steps(world: ConsumerWorld) -> Steps:
    return Steps(world)


def test_task_waits_until_the_next_heartbeat(steps: Steps) -> None:
    task = steps.start()
    steps.waits_ms = 700.0
    assert steps.pauses(task, 3) == [200.0, 700.0, 700.0]
    steps.waits_ms = math.inf
    assert steps.pauses(task, 2) == [700.0, 3000.0]
    steps.waits_ms = 0.0
    assert steps.pauses(task, 2) == [3000.0, 1.0]


def test_pauses_double_while_a_response_is_awaited(steps: Steps) -> None:
    task = steps.start()
    steps.in_flight = True
    assert steps.pauses(task, 8) == [200.0, 10.0, 20.0, 40.0, 80.0, 160.0, 200.0, 200.0]
    steps.in_flight, steps.waits_ms = False, 500.0
    assert steps.pauses(task, 2) == [200.0, 500.0]
    steps.in_flight = True
    assert steps.pauses(task, 2) == [500.0, 10.0]


def test_task_does_nothing_while_the_application_is_in_a_call(steps: Steps) -> None:
    task = steps.start()
    steps.lock.acquire()
    # The end of the call, at most the heartbeat interval; then the next call may have begun.
    assert steps.pauses(task, 4) == [200.0, 3000.0, 200.0, 3000.0]
    assert steps.steps == 0
    steps.lock.release()
    assert steps.pauses(task, 1) == [200.0]
    assert steps.steps == 1


@pytest.mark.parametrize("in_callback", [False, True])
def test_end_of_a_call_wakes_the_task(*, in_callback: bool) -> None:
    lock = ConsumerLock(system_runtime().tasks)
    found: list[bool] = []

    def await_end() -> None:
        run_steps(lock.await_end_of_call(math.inf), system_runtime().clock)
        found.append(lock.acquire_in_background())
        lock.release_in_background()

    lock.acquire()
    waiting = threading.Thread(target=await_end)
    waiting.start()
    wait_until(lambda: lock._waiting, "the task waits")
    assert not found
    if in_callback:
        lock.run_user_code(lambda: waiting.join(10.0))
    else:
        lock.release()
        waiting.join(10.0)
    assert found == [True]


def test_unexpected_error_ends_the_task_and_fails_the_next_poll(steps: Steps) -> None:
    task = steps.start()
    steps.raises = ValueError("a bug")
    assert not task.step()
    (error,) = steps.errors
    assert isinstance(error, FatalError)
    assert "the heartbeats stopped by ValueError: a bug" in str(error)
    assert steps.lock.acquire()  # the task released it


def test_error_of_the_network_fails_the_next_poll_only(steps: Steps) -> None:
    task = steps.start()
    steps.poll_raises = KafkaError("refused")
    steps.pauses(task, 1)
    assert set(steps.errors) == {steps.poll_raises}
    steps.pauses(task, 1)
    assert steps.steps == 2


def test_task_ends_when_it_is_stopped(steps: Steps) -> None:
    task = steps.start()
    steps.heartbeats.start(steps.world.tasks, "beat")
    assert len(steps.world.tasks.started) == 1
    waits = list(steps.heartbeats.stop(0.0))
    assert len(waits) == 1
    assert not task.step()
    assert steps.steps == 0


def test_stop_without_task_does_not_wait(steps: Steps) -> None:
    assert list(steps.heartbeats.stop(0.0)) == []


def test_call_of_the_heartbeat_task_is_refused(steps: Steps) -> None:
    lock = steps.lock
    assert lock.acquire_in_background()
    with pytest.raises(IllegalStateError, match="heartbeat thread"):
        lock.acquire()
    lock.release_in_background()
    assert lock.acquire()
    lock.release()
