"""Offsets looked up by reset policy and by time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kclient.common.errors import (
    KafkaTimeoutError,
)
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def test_failed_lookup_is_retried(world: ConsumerWorld) -> None:
    world.fill(3)
    world.broker.fail(ApiKey.LIST_OFFSETS, 6, 3, 5)
    assert offsets(world.read(world.assigned(), 3)) == [0, 1, 2]


@pytest.mark.fault("R9")
def test_seek_overrides_a_lookup_in_flight(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(auto_offset_reset="latest")
    for _ in range(4):
        consumer.poll(0.0)
        world.sleep(0.9)
    consumer.seek(ORDERS_0, 4)
    assert offsets(world.read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


def test_lookups_need_no_assignment(world: ConsumerWorld) -> None:
    world.fill(7)
    world.log().start_offset = 2
    consumer = world.consumer()
    assert consumer.beginning_offsets([ORDERS_0, ORDERS_1]) == {ORDERS_0: 2, ORDERS_1: 0}
    assert consumer.end_offsets([ORDERS_0, ORDERS_1]) == {ORDERS_0: 7, ORDERS_1: 0}
    assert consumer.offsets_for_times({ORDERS_0: 1004, ORDERS_1: 1004}) == {
        ORDERS_0: OffsetAndTimestamp(4, 1004, 1),
        ORDERS_1: None,
    }
    assert consumer.beginning_offsets([]) == {}


def test_lookup_of_unknown_topic_times_out(world: ConsumerWorld) -> None:
    with pytest.raises(KafkaTimeoutError, match="nowhere-0"):
        world.consumer().end_offsets([TopicPartition("nowhere", 0)], timeout=1.5)


def test_lookup_by_datetime_result_can_be_sought(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    moment = datetime(1970, 1, 1, 0, 0, 1, 4_999, tzinfo=UTC)  # the record at 4 has 1004 ms
    found = consumer.offsets_for_times({ORDERS_0: moment, ORDERS_1: moment})
    assert found == {ORDERS_0: OffsetAndTimestamp(4, 1004, 1), ORDERS_1: None}
    assert found == consumer.offsets_for_times({ORDERS_0: 1004, ORDERS_1: 1004})
    elsewhere = moment.astimezone(timezone(timedelta(hours=5)))
    assert consumer.offsets_for_times({ORDERS_0: elsewhere})[ORDERS_0] == found[ORDERS_0]
    at = found[ORDERS_0]
    assert at is not None
    consumer.seek(ORDERS_0, at)
    assert offsets(world.read(consumer, 6)) == list(range(4, 10))


@pytest.mark.fault("R9")
@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1S"])
@pytest.mark.parametrize("polls", range(1, 14))
def test_seek_overrides_all_lookups_in_flight(
    world: ConsumerWorld, policy: str, polls: int
) -> None:
    world.fill(10)
    consumer = world.assigned(auto_offset_reset=policy)
    for _ in range(polls):
        consumer.poll(0.0, max_records=1)
        world.sleep(0.9)
    consumer.seek(ORDERS_0, 4)
    assert offsets(world.read(consumer, 6)) == [4, 5, 6, 7, 8, 9]
    assert consumer.position(ORDERS_0) == 10
