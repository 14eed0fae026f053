"""Positions with lost responses, dead replicas and deleted topics."""

import pytest

from kclient.common.errors import InvalidArgumentError, KafkaError
from kclient.common.types import Node, OffsetAndMetadata
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets
from tests.support.virtual.virtual_log_broker import VirtualLogBroker, without_records

_UNKNOWN_SERVER_ERROR = -1
_OFFSET_OUT_OF_RANGE = 1
_GROUP_AUTHORIZATION_FAILED = 30
_FETCH_SESSION_ID_NOT_FOUND = 70
_INVALID_FETCH_SESSION_EPOCH = 71
_FETCH_SESSION_TOPIC_ID_ERROR = 106
_OTHER = "10.0.0.2"
_SESSION = 7


def second_broker(world: ConsumerWorld) -> VirtualLogBroker:
    """A broker that is a follower of all partitions."""
    other = VirtualLogBroker(Node(2, _OTHER, 9092), world.clock)
    other.logs, other.topics = world.broker.logs, world.broker.topics
    other.topic_ids = world.broker.topic_ids
    nodes = [world.broker.node, other.node]
    world.broker.brokers = other.brokers = nodes
    world.net.peers[_OTHER, 9092] = lambda: other
    return other


# --- R7: no committed position is guessed


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


@pytest.mark.fault("R8", "R9")
def test_response_during_validation_is_fetched_again(world: ConsumerWorld) -> None:
    """Records fetched from the old leader may not be in the log of the new one."""
    world.fill(2, 2)
    consumer = world.assigned(max_partition_fetch_bytes=150)
    assert offsets(world.read(consumer, 2)) == [0, 1]
    consumer.poll(0.0)
    log = world.log()
    log.batches = log.batches[:1]
    log.end_offset = 2
    log.epoch_ends[1] = 2
    world.broker.epoch = 2
    log.append(b"other", b"other", epoch=2)
    consumer.seek(ORDERS_0, OffsetAndMetadata(2, "", 1))
    consumer._core.metadata.request_update()
    again = world.read(consumer, 2)
    assert [(record.offset, record.value) for record in again] == [(2, b"other"), (3, b"other")]


@pytest.mark.fault("R9")
@pytest.mark.parametrize("polls", range(1, 6))
def test_records_of_a_replaced_assignment_are_dropped(world: ConsumerWorld, polls: int) -> None:
    world.fill(*[5] * 4)
    world.fill(*[5] * 4, number=1)
    consumer = world.assigned(0)
    for _ in range(polls):
        consumer.poll(0.0, max_records=1)
        world.sleep(0.9)
    consumer.assign([ORDERS_1])
    taken = world.read(consumer, 20)
    assert [(record.partition, record.offset) for record in taken] == [(1, n) for n in range(20)]


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


@pytest.mark.fault("R6", "R10")
def test_lagging_replica_keeps_the_position(world: ConsumerWorld) -> None:
    """The log end of a follower is behind: the leader is asked before a position is reset."""
    other = second_broker(world)
    world.fill(5)
    world.log().preferred_replica = 2
    other.fail(ApiKey.FETCH, _OFFSET_OUT_OF_RANGE)
    consumer = world.assigned(auto_offset_reset="none")
    consumer.seek(ORDERS_0, 0)
    assert offsets(world.read(consumer, 5)) == list(range(5))
    world.log().preferred_replica = -1
    world.poll_until(consumer, lambda: not other.failures[ApiKey.FETCH])
    world.fill(5)
    assert offsets(world.read(consumer, 5)) == list(range(5, 10))
    assert len(other.fetches) == 1


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
