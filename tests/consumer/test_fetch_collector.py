"""Positions, errors of partitions, and records put back, as records are collected."""

import pytest

from kclient.common.broker_errors import (
    TopicAuthorizationError,
)
from kclient.common.types import OffsetAndMetadata
from kclient.consumer.errors import OffsetsOutOfRangeError
from kclient.protocol.api_keys import ApiKey
from kclient.record import RecordDeserializationError
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets, second_broker


def test_returned_record_is_counted_once(world: ConsumerWorld) -> None:
    world.fill(20)
    consumer = world.assigned()
    for record in consumer:
        world.sleep(60)
        consumer.position(ORDERS_0)
        assert consumer.metrics()["records-consumed-total"] == record.offset + 1
        if record.offset == 9:
            break
    consumer.poll_columns(1.0, max_records=4)
    assert len(consumer.poll(1.0)) == 6
    assert consumer.metrics()["records-consumed-total"] == 20


def test_position_put_back_has_the_previous_epoch(world: ConsumerWorld) -> None:
    world.broker.epoch = 3
    for epoch in (1, 2, 3):
        first = world.log().end_offset
        world.log().append(*(b"%d" % number for number in range(first, first + 4)), epoch=epoch)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    for record in consumer:
        consumer.commit()
        committed = world.broker.group.committed[ORDERS_0]
        assert committed[0] == record.offset + 1
        assert committed[2] == record.leader_epoch == record.offset // 4 + 1
        if record.offset == 10:
            break


NOT_LEADER = 6


TOPIC_AUTHORIZATION_FAILED = 29


@pytest.mark.fault("R6")
def test_offset_out_of_range_resets_by_policy(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.fill(5, 5)
    consumer = world.assigned()
    consumer.seek(ORDERS_0, 2)
    world.log().start_offset = 5
    assert offsets(world.read(consumer, 5)) == [5, 6, 7, 8, 9]
    assert "position of orders-0 reset from 2 to 5 (earliest): 3 offsets skipped" in caplog.text
    assert consumer.metrics()["records-skipped-by-reset-total"] == 3


@pytest.mark.fault("R6")
def test_offset_out_of_range_raises_without_policy(world: ConsumerWorld) -> None:
    world.fill(5)
    world.log().start_offset = 5
    consumer = world.assigned(auto_offset_reset="none")
    consumer.seek(ORDERS_0, 2)
    with pytest.raises(OffsetsOutOfRangeError, match="orders-0 at 2") as caught:
        world.read(consumer, 1)
    assert caught.value.offsets == {ORDERS_0: 2}
    assert consumer.position(ORDERS_0) == 2


@pytest.mark.fault("R6")
def test_stale_offset_out_of_range_is_ignored(world: ConsumerWorld) -> None:
    world.fill(5)
    consumer = world.assigned(auto_offset_reset="none")
    consumer.seek(ORDERS_0, 99)
    consumer.poll(0.0)
    world.sleep(0.5)
    consumer.seek(ORDERS_0, 3)  # before the response arrives
    assert offsets(world.read(consumer, 2)) == [3, 4]


def test_retriable_fetch_errors_are_retried(world: ConsumerWorld) -> None:
    world.fill(2)
    world.broker.fail(ApiKey.FETCH, NOT_LEADER, 3, 56, 75, -1)
    assert offsets(world.read(world.assigned(), 2)) == [0, 1]
    assert len(world.broker.fetches) < 12


def test_topic_authorization_error_is_raised(world: ConsumerWorld) -> None:
    world.fill(1)
    world.broker.fail(ApiKey.FETCH, TOPIC_AUTHORIZATION_FAILED)
    consumer = world.assigned()
    with pytest.raises(TopicAuthorizationError, match="orders"):
        world.read(consumer, 1)
    assert offsets(world.read(consumer, 1)) == [0]


def test_records_before_an_error_are_returned(world: ConsumerWorld) -> None:
    world.fill(2)
    world.fill(2, number=1)
    world.broker.fail(ApiKey.FETCH, 0, TOPIC_AUTHORIZATION_FAILED)
    consumer = world.assigned(0, 1)
    assert [record.partition for record in world.read(consumer, 2)] == [0, 0]
    with pytest.raises(TopicAuthorizationError):
        world.read(consumer, 1)


@pytest.mark.fault("R10")
def test_preferred_replica_is_used_until_it_expires(world: ConsumerWorld) -> None:
    world.fill(2)
    world.log().preferred_replica = 9  # not in the metadata
    consumer = world.assigned()
    assert offsets(world.read(consumer, 2)) == [0, 1]
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [2]


@pytest.mark.fault("R17")
def test_position_stays_at_record_whose_deserializer_raises(
    world: ConsumerWorld,
) -> None:
    world.log().append(b"1", b"2", b"x", b"4")
    consumer = world.assigned(value_deserializer=lambda topic, headers, data: int(data))
    assert [record.value for record in world.read(consumer, 2)] == [1, 2]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            consumer.poll(5.0)
        assert caught.value.topic_partition == ORDERS_0
        assert (caught.value.offset, caught.value.value) == (2, b"x")
        assert isinstance(caught.value.__cause__, ValueError)
        assert consumer.position(ORDERS_0) == 2
    consumer.seek(ORDERS_0, 3)
    assert [record.value for record in world.read(consumer, 1)] == [4]


_OFFSET_OUT_OF_RANGE = 1


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
    consumer._core.network.metadata.request_update()
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
