"""Explicit, asynchronous and automatic commits in virtual time."""

import pytest

from kclient.common.broker_errors import (
    RebalanceInProgressError,
)
from kclient.common.errors import (
    CommitFailedError,
    KafkaError,
    RetriableCommitFailedError,
)
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.commits import Offsets
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def test_commit_stores_positions_of_returned_records(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.read(consumer, 1)
    consumer.seek(ORDERS_0, 0)
    assert len(consumer.poll(1.0, max_records=4)) == 4
    consumer.commit()
    assert world.broker.group.committed == {ORDERS_0: (4, "", 1)}
    commit = world.broker.group.commits[0]
    assert (commit.generation_id_or_member_epoch, commit.member_id) == (-1, "")


def test_commit_stores_given_offsets(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    consumer.commit({ORDERS_0: OffsetAndMetadata(7, "why", 3), ORDERS_1: 5})
    assert world.broker.group.committed == {ORDERS_0: (7, "why", 3), ORDERS_1: (5, "", -1)}
    assert consumer.committed([ORDERS_0, ORDERS_1, TopicPartition("orders", 9)]) == {
        ORDERS_0: OffsetAndMetadata(7, "why", 3),
        ORDERS_1: OffsetAndMetadata(5),
        TopicPartition("orders", 9): None,
    }


def test_commit_of_a_record_stores_the_next_offset(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    records = world.read(consumer, 10)
    consumer.commit(records[6])
    assert world.broker.group.committed == {ORDERS_0: (7, "", 1)}


@pytest.mark.fault("R12")
@pytest.mark.parametrize("code", [22, 25])
def test_member_rejoins_after_failed_commit(world: ConsumerWorld, code: int) -> None:
    consumer = world.subscribed(enable_auto_commit=False)
    world.broker.fail(ApiKey.OFFSET_COMMIT, code)
    with pytest.raises(CommitFailedError, match="nothing was committed"):
        consumer.commit({ORDERS_0: 1})
    world.poll_until(consumer, lambda: world.broker.group.generation == 2)
    world.join(consumer)
    consumer.commit({ORDERS_0: 2})
    assert world.broker.group.committed[ORDERS_0][0] == 2


@pytest.mark.fault("R12")
def test_commit_during_rebalance_raises(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders")
    world.broker.hang_up_on = {ApiKey.SYNC_GROUP}
    for _ in range(20):
        consumer.poll(0.01)
    with pytest.raises((RebalanceInProgressError, CommitFailedError)):
        consumer.commit({ORDERS_0: 1})


@pytest.mark.fault("R12")
def test_async_commits_keep_order(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    outcomes: list[tuple[int, KafkaError | None]] = []

    def done(offsets: Offsets, error: KafkaError | None) -> None:
        outcomes.append((offsets[ORDERS_0].offset, error))

    for offset in range(5):
        consumer.commit_async({ORDERS_0: offset}, done)
    assert outcomes == []
    consumer.poll(1.0)
    assert outcomes == [(offset, None) for offset in range(5)]
    assert world.broker.group.committed[ORDERS_0][0] == 4
    consumer.commit_async({ORDERS_0: 8}, done)
    consumer.commit({ORDERS_0: 9})
    assert outcomes[-1] == (8, None)
    assert world.broker.group.committed[ORDERS_0][0] == 9


def test_async_commit_is_not_retried(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.broker.fail(ApiKey.OFFSET_COMMIT, 14, 25)
    outcomes: list[KafkaError | None] = []
    consumer.commit_async({ORDERS_0: 1}, lambda _, error: outcomes.append(error))
    consumer.poll(1.0)
    consumer.commit_async({ORDERS_0: 2}, lambda _, error: outcomes.append(error))
    consumer.poll(1.0)
    assert [type(error) for error in outcomes] == [RetriableCommitFailedError, CommitFailedError]
    assert len(world.broker.group.commits) == 2


def test_at_most_100_commits_wait_for_the_coordinator(world: ConsumerWorld) -> None:
    """Commits at each poll use bounded memory while no broker can be reached."""
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.net.peers.clear()
    outcomes: list[tuple[int, KafkaError | None]] = []

    def done(offsets: Offsets, error: KafkaError | None) -> None:
        outcomes.append((offsets[ORDERS_0].offset, error))

    for offset in range(1000):
        consumer.commit_async({ORDERS_0: offset}, done)
        if offset % 100 == 0:
            consumer.poll(0)
    consumer.poll(0)
    assert [offset for offset, _ in outcomes] == list(range(900))
    assert all(isinstance(error, RetriableCommitFailedError) for _, error in outcomes)
    assert "more than 100 commits are queued" in str(outcomes[0][1])
    world.net.peers["10.0.0.1", 9092] = lambda: world.broker
    world.poll_until(consumer, lambda: len(outcomes) == 1000)
    assert outcomes[900:] == [(offset, None) for offset in range(900, 1000)]
    assert world.broker.group.committed[ORDERS_0][0] == 999


def test_auto_commit_waits_for_the_next_poll(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(group_id="g", auto_commit_interval_ms=1000)
    first = world.read(consumer, 10)
    world.sleep(5000)
    assert world.broker.group.commits == []  # the records may not be processed yet
    consumer.poll(0.5)
    assert world.broker.group.committed[ORDERS_0][0] == len(first)
    world.fill(5)
    world.read(consumer, 5)
    consumer.poll(1.5)
    assert world.broker.group.committed[ORDERS_0][0] == 15


def test_auto_commit_continues_after_a_failure(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(group_id="g", auto_commit_interval_ms=1000)
    world.read(consumer, 10)
    world.broker.fail(ApiKey.OFFSET_COMMIT, 14, 14)
    for _ in range(30):
        consumer.poll(0.1)
    assert world.broker.group.committed[ORDERS_0][0] == 10


def test_auto_commit_covers_returned_records_only(world: ConsumerWorld) -> None:
    world.fill(*[10] * 10)
    consumer = world.assigned(group_id="g", auto_commit_interval_ms=0)
    returned = 0
    for step in range(25):
        world.sleep(30)
        before = returned
        returned += len(consumer.poll(0.1, max_records=step % 5 + 1))
        world.sleep(30)
        committed = world.broker.group.committed.get(ORDERS_0, (0, "", 0))[0]
        assert committed <= before


@pytest.mark.fault("R22")
def test_crash_before_commit_repeats_records_and_loses_none(
    world: ConsumerWorld,
) -> None:
    world.fill(*[7] * 10)
    processed: list[int] = []
    repeated = 0
    while not processed or processed[-1] < 69:
        consumer = world.assigned(group_id="g", enable_auto_commit=False)
        batch = offsets(list(consumer.poll(1.0, max_records=5)))
        repeated += len(set(batch) & set(processed))
        processed += batch
        consumer.commit()
        processed += offsets(list(consumer.poll(1.0, max_records=3)))  # and then it dies
    assert sorted(set(processed)) == list(range(70))
    assert repeated > 0
