"""ListOffsets requests: one per leader, and the results of their partitions."""

from collections.abc import Mapping

import pytest

from kclient.common.broker_errors import (
    LeaderNotAvailableError,
    NotLeaderOrFollowerError,
    TopicAuthorizationError,
)
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.consumer.auto_offset_reset import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kclient.consumer.consumer_core import ConsumerCore
from kclient.consumer.list_offsets_requests import ListOffsetsResult
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.log_offsets import ListOffsetsRequest
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, second_broker

LATEST = {ORDERS_0: LATEST_TIMESTAMP, ORDERS_1: LATEST_TIMESTAMP}


def connected(world: ConsumerWorld, **options: object) -> ConsumerCore:
    core = world.core(**options)
    core.network.metadata.set_topics(["orders"])
    for _ in range(100):
        if core.network.metadata.cluster().partition_count("orders"):
            return core
        core.network.poll(100.0, world.clock.now_ms)
    raise AssertionError("no metadata")


def look_up(
    world: ConsumerWorld, core: ConsumerCore, timestamps: Mapping[TopicPartition, int]
) -> ListOffsetsResult:
    (future,) = core.positions.requests.send(timestamps).values()
    for _ in range(100):
        if future.done:
            break
        core.network.poll(100.0, world.clock.now_ms)
    return future.value


def test_offsets_are_looked_up_by_time_and_position(world: ConsumerWorld) -> None:
    world.fill(3)
    core = connected(world)
    assert look_up(world, core, LATEST).found == {
        ORDERS_0: OffsetAndTimestamp(3, -1, 1),
        ORDERS_1: OffsetAndTimestamp(0, -1, 1),
    }
    earliest = look_up(world, core, {ORDERS_0: EARLIEST_TIMESTAMP})
    assert earliest.found[ORDERS_0] == OffsetAndTimestamp(0, -1, 1)
    assert earliest.to_retry == set()


def test_time_after_the_last_record_finds_nothing(world: ConsumerWorld) -> None:
    world.fill(3)
    result = look_up(world, connected(world), {ORDERS_0: 10**12})
    assert result.found == {ORDERS_0: None}
    assert result.to_retry == set()


def test_request_has_isolation_level_and_leader_epoch(world: ConsumerWorld) -> None:
    core = connected(world, isolation_level="read_committed")
    look_up(world, core, {ORDERS_0: LATEST_TIMESTAMP})
    request = next(each for each in world.broker.requests if isinstance(each, ListOffsetsRequest))
    assert (request.replica_id, request.isolation_level) == (-1, 1)
    (topic,) = request.topics
    assert (topic.name, topic.partitions[0].current_leader_epoch) == ("orders", world.broker.epoch)


def test_each_leader_gets_its_partitions(world: ConsumerWorld) -> None:
    second_broker(world)
    world.broker.topics["orders"] = [1, 2]
    futures = connected(world).positions.requests.send(LATEST)
    assert set(futures) == {(ORDERS_0,), (ORDERS_1,)}


def test_partition_without_leader_is_left_out_with_its_cause(world: ConsumerWorld) -> None:
    world.broker.topics["orders"] = [1, -1]
    core = connected(world)
    assert set(core.positions.requests.send(LATEST)) == {(ORDERS_0,)}
    (error,) = core.network.known_errors()
    assert isinstance(error, LeaderNotAvailableError)
    assert "orders-1" in str(error)
    assert core.network.metadata.time_to_next_update(world.clock.now_ms + 10_000) == 0


def test_failed_partition_is_to_be_retried(world: ConsumerWorld) -> None:
    core = connected(world)
    world.broker.fail(ApiKey.LIST_OFFSETS, 6, 0)
    result = look_up(world, core, LATEST)
    assert (result.to_retry, set(result.found)) == ({ORDERS_0}, {ORDERS_1})
    assert isinstance(result.retry_error, NotLeaderOrFollowerError)
    assert core.network.known_errors() == [result.retry_error]


def test_old_message_format_has_no_times(world: ConsumerWorld) -> None:
    core = connected(world)
    world.broker.fail(ApiKey.LIST_OFFSETS, 43)
    assert look_up(world, core, {ORDERS_0: 5}).found == {ORDERS_0: None}


def test_unauthorized_topic_raises_on_request(world: ConsumerWorld) -> None:
    core = connected(world)
    world.broker.fail(ApiKey.LIST_OFFSETS, 29)
    result = look_up(world, core, {ORDERS_0: LATEST_TIMESTAMP})
    assert (result.found, result.to_retry) == ({}, set())
    with pytest.raises(TopicAuthorizationError, match="not authorized to access topic 'orders'"):
        result.raise_unauthorized()
    ListOffsetsResult().raise_unauthorized()
