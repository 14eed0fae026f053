"""Lookup of committed offsets, and its errors."""

import pytest

from kclient.common.errors import (
    KafkaError,
)
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets

_UNKNOWN_SERVER_ERROR = -1


_GROUP_AUTHORIZATION_FAILED = 30


@pytest.mark.fault("R7")
@pytest.mark.parametrize("fault", ["hangs up", "is silent"])
def test_lost_offset_fetch_response_is_retried(world: ConsumerWorld, fault: str) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    consumer = world.consumer(group_id="g", request_timeout_ms=2000)
    consumer.assign([ORDERS_0])
    if fault == "hangs up":
        world.broker.hang_up_on = {ApiKey.OFFSET_FETCH}
    else:
        world.broker.responses[ApiKey.OFFSET_FETCH] = lambda *_: None
    assert not consumer.poll(5.0)
    assert world.broker.asked_for(ApiKey.OFFSET_FETCH) >= 2
    assert world.broker.asked_for(ApiKey.LIST_OFFSETS) == 0
    world.broker.hang_up_on = set()
    world.broker.responses.clear()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R7")
@pytest.mark.parametrize("code", [_GROUP_AUTHORIZATION_FAILED, _UNKNOWN_SERVER_ERROR])
def test_fatal_offset_fetch_error_is_raised_without_reset(world: ConsumerWorld, code: int) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    world.broker.fail(ApiKey.OFFSET_FETCH, code)
    consumer = world.assigned(group_id="g", auto_offset_reset="latest")
    with pytest.raises(KafkaError) as caught:
        world.read(consumer, 1)
    assert caught.value.code == code
    assert world.broker.asked_for(ApiKey.LIST_OFFSETS) == 0
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


NOT_COORDINATOR = 16


COORDINATOR_LOADING = 14


def test_reading_starts_at_the_committed_offset(world: ConsumerWorld) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R7")
@pytest.mark.parametrize("code", [NOT_COORDINATOR, COORDINATOR_LOADING, 15, 88, 7])
def test_failed_offset_fetch_does_not_reset_by_policy(world: ConsumerWorld, code: int) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    world.broker.fail(ApiKey.OFFSET_FETCH, *[code] * 5)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]
