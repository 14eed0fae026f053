"""Lookup of the group coordinator, and its loss."""

import pytest

from kclient.common.errors import (
    KafkaTimeoutError,
)
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import (
    ORDERS_0,
    ConsumerWorld,
    Diary,
    EventLog,
    member,
    offsets,
)
from tests.support.virtual.virtual_log_broker import VirtualLogBroker

NOT_COORDINATOR = 16


@pytest.mark.fault("R13")
def test_moved_coordinator_is_found(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary)
    world.broker.fail(ApiKey.HEARTBEAT, NOT_COORDINATOR)
    found = world.broker.asked_for(ApiKey.FIND_COORDINATOR)
    world.background(8_000)
    assert world.broker.asked_for(ApiKey.FIND_COORDINATOR) == found + 1
    consumer.poll(0.1)
    assert diary.entries == [("assigned", [0, 1])]


_COORDINATOR_LOADING = 14


_NOT_COORDINATOR = 16


@pytest.mark.fault("R13")
def test_loading_coordinator_is_reported_at_the_timeout(
    world: ConsumerWorld,
) -> None:
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[_COORDINATOR_LOADING] * 500)
    before_ms = world.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        consumer.commit({ORDERS_0: 1}, timeout=4.0)
    assert 3_000 <= world.clock.now_ms - before_ms <= 4_100
    assert len(world.broker.group.commits) < 60
    world.broker.failures.clear()
    consumer.commit({ORDERS_0: 2})


@pytest.mark.fault("R13")
@pytest.mark.parametrize("how", ["moves", "dies"])
def test_group_continues_at_its_new_coordinator(world: ConsumerWorld, how: str) -> None:
    other = VirtualLogBroker(Node(2, "10.0.0.2", 9092), world.clock)
    other.logs, other.topics = world.broker.logs, world.broker.topics
    other.topic_ids, other.group = world.broker.topic_ids, world.broker.group
    world.broker.brokers = other.brokers = [world.broker.node, other.node]
    world.net.peers["10.0.0.2", 9092] = lambda: other
    world.fill(3)
    consumer = world.consumer(group_id="g", heartbeat_interval_ms=100, session_timeout_ms=6000)
    events = EventLog(consumer)
    assert len(world.read(consumer, 3)) == 3
    world.broker.group.node = other.node
    if how == "moves":
        world.broker.fail(ApiKey.HEARTBEAT, _NOT_COORDINATOR)
    else:
        world.broker.topics["orders"] = [2, 2]  # which leads the partitions, too
        world.net.stop(("10.0.0.1", 9092))
    world.poll_until(consumer, lambda: other.asked_for(ApiKey.HEARTBEAT) > 0)
    world.log().append(b"new")
    other.arrived()
    assert offsets(world.read(consumer, 1)) == [3]
    consumer.commit(timeout=2)
    assert other.asked_for(ApiKey.OFFSET_COMMIT) > 0
    assert events.what == ["assigned"], "no partition was revoked"
