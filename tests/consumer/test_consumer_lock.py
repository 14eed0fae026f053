"""Access to a consumer by threads and processes."""

import pytest

from kclient.common.errors import (
    ConcurrentAccessError,
    ForkedClientError,
    WakeupError,
)
from kclient.consumer.consumer_lock import ConsumerLock
from tests.consumer.conftest import ConsumerWorld, offsets


@pytest.mark.fault("R21")
def test_call_from_second_thread_is_rejected(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    turned_away: list[str] = []

    def from_elsewhere(_: object) -> None:
        world.tasks.caller = 8
        for call in (consumer.unsubscribe, lambda: consumer.poll(0.0)):
            with pytest.raises(ConcurrentAccessError, match="thread 8 called while thread 7"):
                call()
        with pytest.raises(ConcurrentAccessError, match="another thread did not end in time"):
            consumer.close(timeout=1.0)  # which wakes the call
        turned_away.append("yes")
        world.tasks.caller = 7

    consumer.subscribe("orders", on_assigned=from_elsewhere)
    with pytest.raises(WakeupError):
        world.poll_until(consumer, lambda: False)
    assert turned_away
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [0]


def test_threads_may_call_in_turn(world: ConsumerWorld) -> None:
    world.fill(4)
    consumer = world.assigned()
    assert offsets(list(consumer.poll(1.0, max_records=2))) == [0, 1]
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
