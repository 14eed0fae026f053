"""Positions in virtual time: initial position, seek, lag."""

import pytest

from kclient.common.errors import (
    BootstrapError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
)
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets

ROUND_TRIP_MS = 2.0


@pytest.mark.parametrize(
    ("policy", "position"),
    # The record at offset n has the timestamp 1000 + n, which is 1.7e12 ms ago.
    [("earliest", 3), ("latest", 10), ("by_duration:P1D", 10), ("by_duration:P99999D", 3)],
)
def test_reading_starts_by_reset_policy(world: ConsumerWorld, policy: str, position: int) -> None:
    world.fill(10)
    world.log().start_offset = 3
    assert world.assigned(auto_offset_reset=policy).position(ORDERS_0) == position


def test_missing_position_raises_without_policy(world: ConsumerWorld) -> None:
    consumer = world.assigned(auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
        consumer.poll(1.0)
    consumer.seek(ORDERS_0, 0)
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [0]


def test_position_times_out_without_response(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.beginning_offsets([ORDERS_0])
    world.broker.silent = True
    before_ms = world.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match="position of orders-0"):
        consumer.position(ORDERS_0, timeout=2.0)
    assert world.clock.now_ms - before_ms <= 2010


def test_unreachable_cluster_is_reported_with_cause(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    world.net.peers.clear()
    with pytest.raises(KafkaTimeoutError, match=r"10\.0\.0\.1:9092.*refused") as caught:
        consumer.position(ORDERS_0, timeout=1.0)
    assert isinstance(caught.value.__cause__, BootstrapError)


def test_seek_to_beginning_and_end(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    consumer.seek_to_end(ORDERS_0)
    assert consumer.position(ORDERS_0) == 10
    consumer.seek_to_beginning()
    assert consumer.position(ORDERS_0) == 0
    assert consumer.metrics()["records-skipped-by-reset-total"] == 0


def test_lag_counts_to_the_end_of_the_log(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    assert consumer.lag(ORDERS_0) == 10
    world.read(consumer, 10)
    assert consumer.lag(ORDERS_0) == 0


def test_unassigned_partitions_are_rejected(world: ConsumerWorld) -> None:
    consumer = world.assigned(0)
    for call in (
        lambda: consumer.seek(ORDERS_1, 0),
        lambda: consumer.pause(ORDERS_1),
        lambda: consumer.position(ORDERS_1),
        lambda: consumer.seek_to_end(ORDERS_1),
        lambda: consumer.lag(ORDERS_1),
    ):
        with pytest.raises(IllegalStateError, match="orders-1 is not assigned"):
            call()
    with pytest.raises(InvalidArgumentError, match="offset of orders-0: got -1"):
        consumer.seek(ORDERS_0, -1)
    with pytest.raises(InvalidTypeError, match="got '5'"):
        consumer.seek(ORDERS_0, "5")  # type: ignore[arg-type]  # the wrong use under test


def test_committed_position_is_validated_without_a_backoff(world: ConsumerWorld) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (4, "", 1)
    options = {"group_id": "g", "retry_backoff_ms": 700, "retry_backoff_max_ms": 700}
    consumer = world.assigned(**options)
    consumer.beginning_offsets([ORDERS_0])  # the leader is connected
    consumer.committed([ORDERS_0])  # and the coordinator, by a connection of its own
    began_ms = world.clock.now_ms
    assert world.read(consumer, 1)[0].offset == 4
    # Look-up of the committed offset, validation, and the fetch.
    assert world.broker.asked_for(ApiKey.OFFSET_FOR_LEADER_EPOCH) == 1
    assert world.clock.now_ms - began_ms <= 3 * ROUND_TRIP_MS
