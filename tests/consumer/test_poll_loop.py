"""A poll that raises loses and repeats no record."""

import pytest

from kclient.common.broker_errors import GroupAuthorizationError
from kclient.common.errors import WakeupError
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets

LONG_AFTER_MS = 10_000.0
GROUP_AUTHORIZATION_FAILED = 30


def test_woken_poll_keeps_records_of_the_previous_poll(
    world: ConsumerWorld,
) -> None:
    world.fill(10)
    consumer = world.assigned()
    assert offsets(world.read(consumer, 10)) == list(range(10))
    world.sleep(LONG_AFTER_MS)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1.0)
    assert consumer.position(ORDERS_0) == 10
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [10]


def test_woken_iteration_continues_after_its_last_record(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    assert [next(consumer).offset for _ in range(4)] == [0, 1, 2, 3]
    world.sleep(LONG_AFTER_MS)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        next(consumer)
    assert consumer.position(ORDERS_0) == 4
    assert [next(consumer).offset for _ in range(6)] == [4, 5, 6, 7, 8, 9]


def test_group_error_does_not_repeat_records(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 10)) == list(range(10))
    world.broker.fail(ApiKey.HEARTBEAT, GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(GroupAuthorizationError):
        world.poll_until(consumer, lambda: False)
    assert consumer.position(ORDERS_0) == 10
