"""Positions in virtual time: reset, seek, validation, offset lookup."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kclient.common.errors import (
    BootstrapError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
)
from kclient.common.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kclient.consumer.errors import LogTruncationError
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


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


def test_failed_lookup_is_retried(world: ConsumerWorld) -> None:
    world.fill(3)
    world.broker.fail(ApiKey.LIST_OFFSETS, 6, 3, 5)
    assert offsets(world.read(world.assigned(), 3)) == [0, 1, 2]


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


# --- truncation detection by KIP-320


@pytest.mark.fault("R8")
def test_new_leader_epoch_is_validated_before_fetching(world: ConsumerWorld) -> None:
    world.fill(6)
    consumer = world.assigned(metadata_max_age_ms=200)
    world.read(consumer, 6)
    world.broker.epoch = 2
    world.log().epoch_ends[1] = 6
    world.log().append(b"new", epoch=2)
    world.broker.arrived()
    assert [record.value for record in world.read(consumer, 1)] == [b"new"]
    assert world.broker.asked_for(ApiKey.OFFSET_FOR_LEADER_EPOCH) >= 1


def truncate(world: ConsumerWorld, end: int) -> None:
    """Cut the log as an unclean election does; the new leader has epoch 2."""
    log = world.log()
    log.batches = [batch for batch in log.batches if batch[1] <= end]
    log.end_offset = end
    log.epoch_ends[1] = end
    world.broker.epoch = 2
    log.append(*[b"other"] * 5, epoch=2)


@pytest.mark.fault("R8")
def test_truncation_moves_position_to_divergence(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.fill(2, 2, 2)
    consumer = world.assigned(metadata_max_age_ms=200)
    world.read(consumer, 6)
    truncate(world, 4)
    again = world.read(consumer, 5)
    assert [(record.offset, record.value) for record in again[:2]] == [(4, b"other"), (5, b"other")]
    assert "truncated: position goes from 6 back to 4" in caplog.text


@pytest.mark.fault("R8")
def test_truncation_raises_without_policy(world: ConsumerWorld) -> None:
    world.fill(2, 2, 2)
    consumer = world.assigned(auto_offset_reset="none", metadata_max_age_ms=200)
    consumer.seek(ORDERS_0, 0)
    world.read(consumer, 6)
    truncate(world, 4)
    with pytest.raises(LogTruncationError) as caught:
        world.read(consumer, 1)
    assert caught.value.positions == {ORDERS_0: 6}
    assert caught.value.divergent == {ORDERS_0: OffsetAndMetadata(4, "", 1)}
    consumer.seek(ORDERS_0, 4)
    assert world.read(consumer, 1)[0].value == b"other"


@pytest.mark.fault("R8")
def test_committed_offset_beyond_truncated_log_is_detected(world: ConsumerWorld) -> None:
    world.fill(2, 2, 2)
    truncate(world, 4)
    world.broker.group.committed[ORDERS_0] = (6, "", 1)
    consumer = world.assigned(group_id="g")
    assert consumer.position(ORDERS_0) == 4


def test_validation_is_skipped_without_broker_support(world: ConsumerWorld) -> None:
    del world.broker.versions[ApiKey.OFFSET_FOR_LEADER_EPOCH]
    world.fill(6)
    consumer = world.assigned()
    consumer.seek(ORDERS_0, OffsetAndMetadata(3, "", 0))
    assert offsets(world.read(consumer, 3)) == [3, 4, 5]


@pytest.mark.fault("R8")
def test_validation_is_retried(world: ConsumerWorld) -> None:
    world.fill(6)
    world.broker.fail(ApiKey.OFFSET_FOR_LEADER_EPOCH, 6, 74, 75)
    consumer = world.assigned()
    consumer.beginning_offsets([ORDERS_0])
    consumer.seek(ORDERS_0, OffsetAndMetadata(3, "", 1))
    assert offsets(world.read(consumer, 3)) == [3, 4, 5]
    assert world.broker.asked_for(ApiKey.OFFSET_FOR_LEADER_EPOCH) == 4


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
