"""Calls of a consumer: steps, kinds of subscription, wakeups, and reads by other threads."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.errors import (
    ConcurrentAccessError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    WakeupError,
)
from kclient.common.waiting import NetworkWait, Steps, run_steps
from kclient.consumer.consumer_core import ConsumerCore
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def test_subscribe_and_assign_are_exclusive(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders")
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        consumer.assign([ORDERS_0])
    other = world.assigned(group_id="g")
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        other.subscribe("orders")
    with pytest.raises(IllegalStateError, match="group_id"):
        world.consumer().subscribe("orders")


@pytest.mark.fault("R16")
def test_poll_in_a_callback_is_rejected(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders", on_assigned=lambda _: consumer.poll(0.0) and None)
    with pytest.raises(IllegalStateError, match="from within"):
        world.poll_until(consumer, lambda: False)
    assert consumer.assignment() == {ORDERS_0, ORDERS_1}


@pytest.mark.fault("R21")
def test_other_threads_may_read_state_at_any_time(world: ConsumerWorld) -> None:
    world.fill(10)
    seen: list[str] = []

    def look_on(position: int | None) -> None:
        world.tasks.caller = 8
        assert consumer.assignment() == {ORDERS_0}
        assert consumer.subscription() == set()
        assert consumer.paused() == set()
        assert consumer.metrics()["assigned-partitions"] == 1
        if position is not None:
            assert consumer.position(ORDERS_0) == position
            assert consumer.lag(ORDERS_0) == 10 - position
        else:
            with pytest.raises(IllegalStateError, match="lag of orders-0: not known yet"):
                consumer.lag(ORDERS_0)
        with pytest.raises(IllegalStateError, match="not assigned"):
            consumer.lag(ORDERS_1)
        world.tasks.caller = 7

    def deserialize(_topic: str, _headers: object, data: bytes) -> bytes:
        if data == b"0":
            assert consumer.assignment()
            world.tasks.caller = 8
            with pytest.raises(ConcurrentAccessError):
                consumer.poll(0.0)
            world.tasks.caller = 7
            look_on(position=0)
            seen.append("inside")
        return data

    consumer = world.assigned(value_deserializer=deserialize, max_poll_records=10)
    consumer.poll(0.0)
    look_on(position=None)
    assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
    assert seen
    look_on(position=3)  # the iteration has seven records left
    assert [next(consumer).offset for _ in range(7)] == list(range(3, 10))
    with pytest.raises(IllegalStateError):
        consumer.seek(ORDERS_1, 0)


def test_reading_state_from_another_thread_does_not_wait(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.pause(ORDERS_0)
    before_ms = world.clock.now_ms
    world.tasks.caller = 8
    with pytest.raises(IllegalStateError, match="has not fetched from the partition yet"):
        consumer.lag(ORDERS_0)
    assert world.clock.now_ms == before_ms
    assert world.net.connects == []


@pytest.mark.fault("R21")
def test_wakeup_ends_wait(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.poll(0.1)
    world.clock.after(200, consumer.wakeup)
    before_ms = world.clock.now_ms
    with pytest.raises(WakeupError):
        consumer.poll(10.0)
    assert world.clock.now_ms - before_ms < 210
    assert not consumer.poll(0.1)


def test_wakeup_before_a_wait_ends_it(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned()
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1.0)
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]


def test_wakeup_does_not_interrupt_close(world: ConsumerWorld) -> None:
    consumer = world.subscribed()
    consumer.wakeup()
    consumer.close()
    assert world.broker.group.left == ["member-1"]


def test_poll_without_subscription_raises(world: ConsumerWorld) -> None:
    with pytest.raises(IllegalStateError, match=r"subscribe\(\) or assign\(\)"):
        world.consumer(group_id="g").poll(0.0)


_WAITING_CALLS: dict[str, Callable[[ConsumerCore], Steps[object]]] = {
    "poll": lambda core: core.poll(1.0, None),
    "poll_columns": lambda core: core.poll_columns(1.0, None),
    "fetch_pending": lambda core: core.fetch_pending(),
    "position": lambda core: core.position(ORDERS_0, 1.0),
    "lag": lambda core: core.lag(ORDERS_0),
    "beginning_offsets": lambda core: core.beginning_offsets([ORDERS_0], 1.0),
    "end_offsets": lambda core: core.end_offsets([ORDERS_0], 1.0),
    "offsets_for_times": lambda core: core.offsets_for_times({ORDERS_0: 0}, 1.0),
    "commit": lambda core: core.commit({ORDERS_0: 1}, 1.0),
    "committed": lambda core: core.committed([ORDERS_0], 1.0),
}


@pytest.mark.parametrize("name", _WAITING_CALLS)
def test_call_that_waits_yields_its_waits(world: ConsumerWorld, name: str) -> None:
    core = world.core(group_id="g")
    core.assign([ORDERS_0])
    steps = _WAITING_CALLS[name](core)
    assert not core.lock.is_held()
    wait = next(steps)
    assert isinstance(wait, NetworkWait)
    assert world.clock.now_ms < wait.until_ms <= world.clock.now_ms + 1000
    assert core.lock.is_held()
    steps.close()
    assert not core.lock.is_held()


@pytest.mark.parametrize("timeout", [-1, "1"])
def test_arguments_are_checked_before_the_first_step(world: ConsumerWorld, timeout: Any) -> None:
    core = world.core(group_id="g")
    for call in (
        lambda: core.poll(timeout, None),
        lambda: core.poll_columns(1.0, timeout),
        lambda: core.position(ORDERS_0, timeout),
        lambda: core.lag(timeout),
        lambda: core.end_offsets(timeout, 1.0),
        lambda: core.offsets_for_times({ORDERS_0: timeout}, 1.0),
        lambda: core.commit({ORDERS_0: timeout}, 1.0),
        lambda: core.committed([timeout], 1.0),
        lambda: core.close(timeout),
    ):
        with pytest.raises((InvalidArgumentError, InvalidTypeError)):
            call()


def test_records_of_a_poll_without_a_receiver_are_returned_again(world: ConsumerWorld) -> None:
    world.fill(3)
    core = world.core(auto_offset_reset="earliest")
    core.assign([ORDERS_0])
    lost = run_steps(core.poll(1.0, None), world.clock)
    while not lost:
        lost = run_steps(core.poll(1.0, None), world.clock)
    assert core.unreturned is lost
    found = run_steps(core.poll(1.0, None), world.clock)
    core.unreturned = None
    assert offsets(list(found or ())) == offsets(list(lost)) == [0, 1, 2]


def test_no_request_is_sent_before_the_first_call(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    consumer.seek(ORDERS_0, 0)
    consumer.pause(ORDERS_0)
    assert consumer.assignment() == {ORDERS_0}
    assert world.net.connects == []


def test_log_lines_identify_the_consumer(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    for name in ("one", None, None):
        world.consumer(group_id="g", **({"client_id": name} if name else {})).committed([ORDERS_0])
    prefixes = {record.getMessage().partition("]")[0] for record in caplog.records}
    assert "[Consumer clientId=one, groupId=g" in prefixes
    assert len(prefixes) == 3
