"""Steps of a group in a poll, and commits that wait."""

from typing import Any, cast

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
from kclient.common.types import OffsetAndMetadata
from kclient.common.waiting import perform
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.topic_partition_state import FetchPosition
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld


class Part:
    """A part of a group whose methods record their calls."""

    def __init__(self, name: str, calls: list[str], waits_ms: float) -> None:
        self.enabled = True
        self.blocked = False
        self.queued: list[object] = []
        self._name = name
        self._calls = calls
        self._waits_ms = waits_ms

    def step(self, *_: object) -> float:
        self._calls.append(self._name)
        return self._waits_ms

    def run_callbacks(self) -> None:
        self._calls.append("callbacks")

    def holds_back(self) -> bool:
        return self.blocked

    def commit_async(self, offsets: object, callback: object) -> None:
        self.queued.append(offsets)


class MembershipPart(Part):
    """A membership whose steps record their calls."""

    def step(self, *_: object) -> Any:
        yield from ()
        return super().step()


class Parts:
    """A group of recording parts."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.calls: list[str] = []

        def make(name: str, waits_ms: float) -> Any:
            return Part(name, self.calls, waits_ms)

        self.clock = world.clock
        self.membership = MembershipPart("membership", self.calls, 30.0)
        self.finder = make("finder", 5.0)
        self.commits = make("commits", 20.0)
        self.auto_commit = make("auto-commit", 10.0)
        core = world.core(group_id="g")
        assert core.group is not None
        self.group, self.subscriptions = core.group, core.subscriptions
        self.group.membership = cast("Any", self.membership)
        self.group.finder = self.finder
        self.group.commits = self.commits
        self.group.auto_commit = self.auto_commit

    def step(self) -> float:
        return perform(self.group.step(0.0), self.clock)


@pytest.fixture
def parts(world: ConsumerWorld) -> Parts:
    return Parts(world)


def test_subscribed_group_steps_in_order(parts: Parts) -> None:
    parts.subscriptions.subscribe(["orders"], RebalanceListener())
    assert parts.step() == 10.0
    assert parts.calls == ["callbacks", "commits", "membership", "auto-commit"]


def test_no_automatic_commit_during_a_rebalance(parts: Parts) -> None:
    parts.subscriptions.subscribe(["orders"], RebalanceListener())
    parts.membership.blocked = True
    assert parts.step() == 20.0
    assert parts.calls == ["callbacks", "commits", "membership"]


def test_assigned_consumer_commits_without_membership(parts: Parts) -> None:
    parts.subscriptions.assign_from_user([ORDERS_0])
    assert parts.step() == 10.0
    assert parts.calls == ["callbacks", "commits", "auto-commit"]


def test_waiting_call_finds_the_coordinator_and_sends_commits(parts: Parts) -> None:
    assert parts.group._commit_step(0.0) == 5.0
    assert parts.calls == ["commits", "finder"]


def test_last_commit_has_the_positions_if_commits_are_automatic(parts: Parts) -> None:
    parts.subscriptions.assign_from_user([ORDERS_0])
    parts.subscriptions.state(ORDERS_0).seek(FetchPosition(7))
    parts.auto_commit.enabled = False
    parts.group.queue_last_commit()
    assert parts.commits.queued == []
    parts.auto_commit.enabled = True
    parts.group.queue_last_commit()
    assert parts.commits.queued == [{ORDERS_0: OffsetAndMetadata(7)}]


# --- commits that wait: retries, deadlines and errors


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
