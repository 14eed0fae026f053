"""Access to a consumer by threads and processes, wakeup, timeouts and wrong use."""

import gc

import pytest

from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    ForkedClientError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    WakeupError,
)
from kclient.consumer import Consumer
from kclient.consumer.consumer_lock import ConsumerLock
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def test_no_request_is_sent_before_the_first_call(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    consumer.seek(ORDERS_0, 0)
    consumer.pause(ORDERS_0)
    assert consumer.assignment() == {ORDERS_0}
    assert world.net.connects == []


@pytest.mark.fault("R21")
def test_call_from_second_thread_is_rejected(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    turned_away: list[str] = []

    def from_elsewhere(_: object) -> None:
        world.tasks.caller = 8
        for call in (consumer.unsubscribe, consumer.close, lambda: consumer.poll(0.0)):
            with pytest.raises(ConcurrentAccessError, match="thread 8 called while thread 7"):
                call()
        consumer.wakeup()
        turned_away.append("yes")
        world.tasks.caller = 7

    consumer.subscribe("orders", on_assigned=from_elsewhere)
    with pytest.raises(WakeupError):
        world.poll_until(consumer, lambda: False)
    assert turned_away
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [0]


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


def test_threads_may_call_in_turn(world: ConsumerWorld) -> None:
    world.fill(4)
    consumer = world.assigned()
    consumer.poll(1.0, max_records=2)
    world.tasks.caller = 8
    assert offsets(list(consumer.poll(1.0))) == [2, 3]


def test_call_in_child_process_is_rejected(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    world.tasks.process = 2
    for call in (consumer.assignment, consumer.commit, lambda: consumer.poll(0.0)):
        with pytest.raises(ForkedClientError, match="created in process 1"):
            call()
    consumer.close()
    assert world.net.connects == []


def test_calls_on_closed_consumer_raise(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.close()
    consumer.close()
    for call in (
        consumer.assignment,
        consumer.unsubscribe,
        consumer.metrics,
        lambda: consumer.poll(0.0),
        lambda: consumer.seek(ORDERS_0, 0),
    ):
        with pytest.raises(ClosedError):
            call()


def test_end_of_block_closes_consumer(world: ConsumerWorld) -> None:
    with world.assigned() as consumer:
        pass
    with pytest.raises(ClosedError):
        consumer.poll(0.0)


def test_missing_close_warns(world: ConsumerWorld) -> None:
    consumer = Consumer(runtime=world.runtime, bootstrap_servers="10.0.0.1:9092", group_id="g")
    with pytest.warns(ResourceWarning, match="group 'g'.* was never closed"):
        consumer.__del__()
    consumer.close()
    del consumer
    gc.collect()


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


@pytest.mark.parametrize("value", [-0.5, float("nan")])
def test_invalid_timeouts_are_rejected(world: ConsumerWorld, value: float) -> None:
    consumer = world.assigned(group_id="g")
    for call in (
        lambda: consumer.poll(value),
        lambda: consumer.poll_columns(value),
        lambda: consumer.commit(timeout=value),
        lambda: consumer.position(ORDERS_0, timeout=value),
        lambda: consumer.close(value),
    ):
        with pytest.raises(InvalidArgumentError, match="timeout"):
            call()


def test_invalid_arguments_are_rejected(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    wrong: list[tuple[object, type[Exception]]] = [
        (lambda: consumer.poll("1"), InvalidTypeError),  # type: ignore[arg-type]  # the wrong use under test
        (lambda: consumer.poll(1.0, max_records=0), InvalidArgumentError),
        (lambda: consumer.poll(1.0, max_records=2.5), InvalidTypeError),  # type: ignore[arg-type]  # the wrong use under test
        (lambda: consumer.assign("orders"), InvalidTypeError),  # type: ignore[arg-type]  # the wrong use under test
        (lambda: consumer.assign([("orders", "0")]), InvalidTypeError),  # type: ignore[list-item]  # the wrong use under test
        (lambda: consumer.subscribe([None]), InvalidTypeError),  # type: ignore[list-item]  # the wrong use under test
        (lambda: consumer.subscribe(["a b"]), InvalidArgumentError),
        (lambda: consumer.subscribe(pattern="("), InvalidArgumentError),
        (consumer.subscribe, InvalidArgumentError),
        (lambda: consumer.subscribe("a", pattern="b"), InvalidArgumentError),
        (lambda: consumer.subscribe("a", on_assigned=3), InvalidTypeError),  # type: ignore[arg-type]  # the wrong use under test
        (lambda: consumer.offsets_for_times({ORDERS_0: -1}), InvalidArgumentError),
        (lambda: consumer.offsets_for_times([1]), InvalidTypeError),  # type: ignore[arg-type]  # the wrong use under test
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()  # type: ignore[operator]  # each is a lambda
    assert world.net.connects == []


def test_poll_without_subscription_raises(world: ConsumerWorld) -> None:
    with pytest.raises(IllegalStateError, match=r"subscribe\(\) or assign\(\)"):
        world.consumer(group_id="g").poll(0.0)


def test_consumer_recovers_when_brokers_return(world: ConsumerWorld) -> None:
    world.fill(2)
    consumer = world.assigned()
    assert offsets(world.read(consumer, 2)) == [0, 1]
    world.net.stop(("10.0.0.1", 9092))
    before = len(world.net.connects)
    for _ in range(60):
        assert not consumer.poll(1.0)
    assert len(world.net.connects) - before <= 80
    world.net.peers["10.0.0.1", 9092] = lambda: world.broker
    world.fill(1)
    assert offsets(world.read(consumer, 1, within_s=3.0)) == [2]


# --- the lock


def test_lock_is_held_by_one_thread_at_a_time() -> None:
    lock = ConsumerLock(ConsumerWorld().tasks)
    assert lock.acquire_in_background()
    lock.release_in_background()
    assert not lock.is_held()
    assert lock.acquire()
    assert not lock.acquire_in_background()
    assert lock.is_held()
    assert not lock.acquire()
    lock.release()
    assert not lock.acquire_in_background()

    def during_a_callback() -> None:
        assert lock.acquire_in_background()
        lock.release_in_background()
        assert not lock.acquire()
        assert not lock.acquire_in_background()
        lock.release()
        assert lock.acquire_in_background()
        lock.release_in_background()

    lock.run_user_code(during_a_callback)
    assert not lock.acquire_in_background()
    lock.release()
    assert lock.acquire_in_background()
    lock.release_in_background()
    lock.stop()
    assert not lock.acquire_in_background()
