"""Explicit and automatic commits in virtual time."""

import pytest

from kclient.common.broker_errors import (
    FencedInstanceIdError,
    GroupAuthorizationError,
    RebalanceInProgressError,
    TopicAuthorizationError,
)
from kclient.common.errors import (
    CommitFailedError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaError,
    KafkaTimeoutError,
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
    consumer.poll(1.0, max_records=4)
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


@pytest.mark.fault("R13")
@pytest.mark.parametrize("code", [14, 15, 16, 7, 3])
def test_commit_retries_retriable_errors(world: ConsumerWorld, code: int) -> None:
    world.broker.fail(ApiKey.OFFSET_COMMIT, code, code)
    world.assigned(group_id="g").commit({ORDERS_0: 1})
    assert world.broker.group.committed[ORDERS_0][0] == 1
    assert len(world.broker.group.commits) == 3


@pytest.mark.fault("R12")
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (22, CommitFailedError),
        (25, CommitFailedError),
        (27, RebalanceInProgressError),
        (82, FencedInstanceIdError),
        (30, GroupAuthorizationError),
        (29, TopicAuthorizationError),
        (12, KafkaError),
    ],
)
def test_commit_raises_fatal_errors(
    world: ConsumerWorld, code: int, error: type[KafkaError]
) -> None:
    consumer = world.subscribed(enable_auto_commit=False)
    world.broker.fail(ApiKey.OFFSET_COMMIT, code)
    with pytest.raises(error):
        consumer.commit({ORDERS_0: 1})
    assert len(world.broker.group.commits) == 1
    assert ORDERS_0 not in world.broker.group.committed


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


def test_timed_out_commit_is_not_sent_later(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    world.net.peers.clear()
    before_ms = world.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match=r"commit: timed out.*refused"):
        consumer.commit({ORDERS_0: 1}, timeout=3.0)
    assert world.clock.now_ms - before_ms <= 3010
    world.net.peers["10.0.0.1", 9092] = lambda: world.broker
    consumer.commit({ORDERS_0: 2})
    consumer.poll(1.0)
    assert [
        commit.topics[0].partitions[0].committed_offset for commit in world.broker.group.commits
    ] == [2]


def test_timed_out_commit_reports_last_error(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    world.broker.fail(ApiKey.OFFSET_COMMIT, *[3] * 100)  # UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaTimeoutError, match="timed out; the last attempt: UNKNOWN_TOPIC_OR"):
        consumer.commit({ORDERS_0: 1}, timeout=3.0)


def test_close_does_not_wait_for_timed_out_commit(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.broker.fail(ApiKey.FIND_COORDINATOR, *[15] * 100)  # COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaTimeoutError, match="no coordinator was found for group 'g'"):
        consumer.commit({ORDERS_0: 1}, timeout=3.0)
    before_ms = world.clock.now_ms
    consumer.close(timeout=30.0)
    assert world.clock.now_ms - before_ms < 100


def test_empty_commit_sends_no_request(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    consumer.commit()
    consumer.commit({})
    assert world.broker.group.commits == []


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


def test_commit_without_group_raises(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    for call in (
        consumer.commit,
        consumer.commit_async,
        consumer.group_metadata,
        lambda: consumer.committed([ORDERS_0]),
    ):
        with pytest.raises(IllegalStateError, match="group_id"):
            call()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({ORDERS_0: -1}, InvalidArgumentError, "offset of orders-0: got -1"),
        ({ORDERS_0: "1"}, InvalidTypeError, "offset of orders-0"),
        ({"orders": 1}, InvalidTypeError, "expected TopicPartition"),
        ({("orders", -1): 1}, InvalidArgumentError, "partition"),
        ({("a/b", 1): 1}, InvalidArgumentError, "topic"),
        ([1], InvalidTypeError, "offsets: got"),
        ({ORDERS_0: OffsetAndMetadata(1, None)}, InvalidTypeError, "metadata"),  # type: ignore[arg-type]  # the wrong use under test
    ],
)
def test_invalid_offsets_are_rejected_before_a_request(
    world: ConsumerWorld, given: object, error: type[Exception], text: str
) -> None:
    consumer = world.assigned(group_id="g")
    with pytest.raises(error, match=text):
        consumer.commit(given)  # type: ignore[arg-type]  # the wrong use under test
    assert world.broker.asked == []


@pytest.mark.parametrize("failing", [False, True])
def test_exception_in_block_skips_commit_at_close(world: ConsumerWorld, failing: bool) -> None:
    world.fill(10)

    def process() -> None:
        with world.assigned(group_id="g", auto_commit_interval_ms=60_000) as consumer:
            world.read(consumer, 10)
            if failing:
                raise LookupError("the application's own")

    if failing:
        with pytest.raises(LookupError):
            process()
    else:
        process()
    assert world.broker.group.committed == ({} if failing else {ORDERS_0: (10, "", 1)})
