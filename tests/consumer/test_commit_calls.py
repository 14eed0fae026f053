"""Commits that wait: retries, deadlines and errors."""

import pytest

from kclient.common.broker_errors import (
    FencedInstanceIdError,
    GroupAuthorizationError,
    RebalanceInProgressError,
    TopicAuthorizationError,
)
from kclient.common.errors import (
    CommitFailedError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld


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


def test_empty_commit_sends_no_request(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    consumer.commit()
    consumer.commit({})
    assert world.broker.group.commits == []
