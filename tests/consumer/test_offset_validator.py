"""Validation of positions after a leader change."""

import pytest

from kclient.common.types import OffsetAndMetadata
from kclient.consumer.errors import LogTruncationError
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets


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
