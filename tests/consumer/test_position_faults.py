"""Positions with late responses, dead replicas and deleted topics."""

from typing import Any

import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets, second_broker
from tests.support.virtual.virtual_log_broker import without_records

_FETCH_SESSION_ID_NOT_FOUND = 70


_INVALID_FETCH_SESSION_EPOCH = 71


_FETCH_SESSION_TOPIC_ID_ERROR = 106


_OTHER = "10.0.0.2"


_SESSION = 7


# --- R9: late responses


@pytest.mark.fault("R9")
def test_response_during_a_pause_is_kept(world: ConsumerWorld) -> None:
    world.fill(*[5] * 4)
    consumer = world.assigned(0, 1)
    consumer.poll(0.0)
    while not world.broker.fetches:
        world.sleep(1)
        consumer.poll(0.0)
    assert consumer.position(ORDERS_0) == 0
    consumer.pause(ORDERS_0)
    for _ in range(5):
        assert not consumer.poll(0.1)
    assert consumer.position(ORDERS_0) == 0
    consumer.resume(ORDERS_0)
    assert offsets(world.read(consumer, 20)) == list(range(20))


# --- R10: replicas and sessions


@pytest.mark.fault("R10")
def test_dead_preferred_replica_falls_back_to_leader(world: ConsumerWorld) -> None:
    other = second_broker(world)
    world.fill(5)
    world.log().preferred_replica = 2
    consumer = world.assigned(request_timeout_ms=3000)
    assert offsets(world.read(consumer, 5)) == list(range(5))
    world.fill(5)
    other.arrived()
    assert offsets(world.read(consumer, 5)) == list(range(5, 10))
    assert other.fetches, "the replica was never asked"
    world.net.stop((_OTHER, 9092))
    world.log().preferred_replica = -1
    before = len(world.broker.fetches)
    world.fill(5)
    assert offsets(world.read(consumer, 5, within_s=5)) == list(range(10, 15))
    assert len(world.broker.fetches) > before


@pytest.mark.fault("R10")
def test_session_of_a_broker_that_left_is_dropped(world: ConsumerWorld) -> None:
    other = second_broker(world)
    world.fill(5)
    world.log().preferred_replica = 2
    consumer = world.assigned(metadata_max_age_ms=1000)
    world.poll_until(consumer, lambda: len(other.fetches) > 0)
    fetcher: Any = consumer._core.fetching.fetcher
    assert fetcher._sessions.keys() == fetcher._plan.nodes.keys() == {1, 2}
    world.broker.brokers = other.brokers = [world.broker.node]
    world.log().preferred_replica = -1
    world.net.stop((_OTHER, 9092))
    world.poll_until(consumer, lambda: fetcher._plan.nodes.keys() == {1})
    assert fetcher._sessions.keys() == {1}
    world.fill(5)
    assert len(world.read(consumer, 5)) >= 5


@pytest.mark.fault("R10")
@pytest.mark.parametrize(
    "code",
    [_FETCH_SESSION_ID_NOT_FOUND, _INVALID_FETCH_SESSION_EPOCH, _FETCH_SESSION_TOPIC_ID_ERROR],
)
def test_lost_fetch_session_is_reopened(world: ConsumerWorld, code: int) -> None:
    world.fill(3)
    asked: list[FetchRequest] = []

    def response(header: RequestHeader, request: Request) -> Response:
        assert isinstance(request, FetchRequest)
        asked.append(request)
        if len(asked) == 1:
            opened = world.broker.fetch_response(request)
            opened.session_id = _SESSION
            return opened
        del world.broker.responses[ApiKey.FETCH]
        return FetchResponse(error_code=code)

    world.broker.responses[ApiKey.FETCH] = response
    consumer = world.assigned(0, 1)
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]
    world.poll_until(consumer, lambda: len(asked) == 2)
    assert asked[1].session_id == _SESSION
    world.fill(3)
    world.broker.arrived()
    assert offsets(world.read(consumer, 3, within_s=5)) == [3, 4, 5]
    again = world.broker.fetches[0]
    assert again.session_epoch == 0, "it begins a session"
    assert sum(len(topic.partitions) for topic in again.topics) == 2


# --- R19: compacted batches


@pytest.mark.fault("R19")
def test_position_moves_past_an_empty_batch(world: ConsumerWorld) -> None:
    """Compaction keeps the last batch of a producer even if it is empty."""
    world.fill(2, 3, 1)
    batches = world.log().batches
    batches[1] = (2, 5, without_records(batches[1][2]))
    consumer = world.assigned()
    assert offsets(world.read(consumer, 3)) == [0, 1, 5]
    world.fill(2)
    batches[3] = (6, 8, without_records(batches[3][2]))
    world.broker.arrived()
    world.poll_until(consumer, lambda: consumer.position(ORDERS_0) == 8)
    assert len(world.broker.fetches) < 12, "it was fetched over and over"


# --- R20: deleted and recreated topics


@pytest.mark.fault("R20")
@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_recreated_topic_is_read_by_policy(world: ConsumerWorld, policy: str) -> None:
    world.fill(8)
    consumer = world.assigned(auto_offset_reset=policy, metadata_max_age_ms=300)
    consumer.seek(ORDERS_0, 0)
    world.read(consumer, 8)
    del world.broker.topics["orders"], world.broker.topic_ids["orders"]
    for _ in range(5):
        assert not consumer.poll(0.2)
    world.broker.add_topic("orders", 2)
    world.broker.topic_ids["orders"] = b"orders, recreated".ljust(16)[:16]
    if policy == "earliest":
        world.fill(3)
        assert offsets(world.read(consumer, 3)) == [0, 1, 2]
    else:
        world.poll_until(consumer, lambda: consumer.position(ORDERS_0) == 0)
        world.fill(3)
        world.broker.arrived()
        assert offsets(world.read(consumer, 3)) == [0, 1, 2]


@pytest.mark.fault("R20")
def test_a_position_is_kept_when_its_topic_is_recreated(world: ConsumerWorld) -> None:
    """As in Kafka's consumer; `Consumer.topic_id` shows that it is another topic."""
    world.fill(8)
    consumer = world.assigned(auto_offset_reset="earliest", metadata_max_age_ms=300)
    world.read(consumer, 8)
    before = consumer.topic_id("orders")
    del world.broker.topics["orders"], world.broker.topic_ids["orders"]
    world.broker.add_topic("orders", 2)
    world.broker.topic_ids["orders"] = b"orders, created 2"[:16]
    world.fill(9)
    assert offsets(world.read(consumer, 1)) == [8]
    assert consumer.topic_id("orders") not in (None, before)


@pytest.mark.fault("R20")
def test_deleted_topic_blocks_neither_others_nor_close(world: ConsumerWorld) -> None:
    extra = world.broker.add_topic("extra")[0]
    world.fill(2)
    consumer = world.consumer(metadata_max_age_ms=300)
    consumer.assign([ORDERS_0, extra])
    assert len(world.read(consumer, 2)) == 2
    del world.broker.topics["extra"]
    for _ in range(10):
        assert not consumer.poll(0.2)
    world.fill(2)
    world.broker.arrived()
    assert offsets(world.read(consumer, 2)) == [2, 3]
    before_ms = world.clock.now_ms
    consumer.close(timeout=1)
    assert world.clock.now_ms - before_ms < 500


def test_recreated_topic_has_another_id(world: ConsumerWorld) -> None:
    world.fill(2)
    consumer = world.consumer(metadata_max_age_ms=300)
    assert consumer.topic_id("orders") is None  # no metadata yet
    consumer.assign([ORDERS_0])
    world.read(consumer, 2)
    before = consumer.topic_id("orders")
    world.broker.topic_ids["orders"] = b"orders, recreated".ljust(16)[:16]
    world.poll_until(consumer, lambda: consumer.topic_id("orders") != before)
    assert before is not None
    assert consumer.topic_id("orders") is not None
    with pytest.raises(InvalidArgumentError, match="topic: got 'a b'"):
        consumer.topic_id("a b")
