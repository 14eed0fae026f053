"""Steps of a group in a poll: commits, membership, automatic commits."""

from typing import Any, cast

import pytest

from kclient.common.types import OffsetAndMetadata
from kclient.consumer.auto_offset_reset import EARLIEST
from kclient.consumer.group import Group
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.subscription_state import SubscriptionState
from kclient.consumer.topic_partition_state import FetchPosition
from tests.consumer.conftest import ORDERS_0


class Part:
    """A part of a group whose methods record their calls."""

    def __init__(self, name: str, calls: list[str], waits_ms: float) -> None:
        self.enabled = True
        self.blocked = False
        self.queued: list[object] = []
        self._name = name
        self._calls = calls
        self._waits_ms = waits_ms

    def step(self, now_ms: float) -> float:
        self._calls.append(self._name)
        return self._waits_ms

    def run_callbacks(self) -> None:
        self._calls.append("callbacks")

    def holds_back(self) -> bool:
        return self.blocked

    def commit_async(self, offsets: object, callback: object) -> None:
        self.queued.append(offsets)


class Parts:
    """A group of recording parts."""

    def __init__(self) -> None:
        self.calls: list[str] = []

        def make(name: str, waits_ms: float) -> Any:
            return Part(name, self.calls, waits_ms)

        self.membership = make("membership", 30.0)
        self.finder = make("finder", 5.0)
        self.commits = make("commits", 20.0)
        self.auto_commit = make("auto-commit", 10.0)
        self.subscriptions = SubscriptionState(EARLIEST)
        self.group = Group(
            membership=self.membership,
            finder=self.finder,
            commits=self.commits,
            auto_commit=self.auto_commit,
            committed=cast("Any", None),
            subscriptions=self.subscriptions,
        )


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_subscribed_group_steps_in_order(parts: Parts) -> None:
    parts.subscriptions.subscribe(["orders"], RebalanceListener())
    assert parts.group.step(0.0) == 10.0
    assert parts.calls == ["callbacks", "commits", "membership", "auto-commit"]


def test_no_automatic_commit_during_a_rebalance(parts: Parts) -> None:
    parts.subscriptions.subscribe(["orders"], RebalanceListener())
    parts.membership.blocked = True
    assert parts.group.step(0.0) == 20.0
    assert parts.calls == ["callbacks", "commits", "membership"]


def test_assigned_consumer_commits_without_membership(parts: Parts) -> None:
    parts.subscriptions.assign_from_user([ORDERS_0])
    assert parts.group.step(0.0) == 10.0
    assert parts.calls == ["callbacks", "commits", "auto-commit"]


def test_waiting_call_finds_the_coordinator_and_sends_commits(parts: Parts) -> None:
    assert parts.group.commit_step(0.0) == 5.0
    assert parts.calls == ["commits", "finder"]


def test_last_commit_has_the_positions_if_commits_are_automatic(parts: Parts) -> None:
    parts.subscriptions.assign_from_user([ORDERS_0])
    parts.subscriptions.state(ORDERS_0).seek(FetchPosition(7))
    parts.auto_commit.enabled = False
    parts.group.queue_last_commit()
    assert (parts.commits.queued, parts.group.auto_commits()) == ([], False)
    parts.auto_commit.enabled = True
    parts.group.queue_last_commit()
    assert parts.commits.queued == [{ORDERS_0: OffsetAndMetadata(7)}]
