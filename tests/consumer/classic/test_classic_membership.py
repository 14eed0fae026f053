"""Membership by the classic protocol: changed topics, and its end."""

from collections.abc import Callable

import pytest

from kclient.common.broker_errors import GroupAuthorizationError
from kclient.common.errors import (
    CommitFailedError,
)
from kclient.common.types import TopicPartition
from kclient.common.waiting import perform
from kclient.consumer import ConsumerGroupMetadata
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, Diary, member

UNKNOWN_MEMBER = 25


ILLEGAL_GENERATION = 22


@pytest.mark.fault("R14")
def test_exceeding_max_poll_interval_leaves_the_group(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(10)
    consumer = member(world, diary, max_poll_interval_ms=10_000, enable_auto_commit=False)
    world.read(consumer, 1)
    world.background(11_000)
    assert world.broker.group.left == ["member-1"]
    with pytest.raises(CommitFailedError, match="not a member of the group"):
        consumer.commit()
    consumer.poll(0.0)
    assert diary.entries[1] == ("lost", [0, 1])
    world.poll_until(consumer, lambda: len(diary.entries) == 3)
    assert diary.entries[2] == ("assigned", [0, 1])


@pytest.mark.fault("R12")
@pytest.mark.parametrize("code", [UNKNOWN_MEMBER, ILLEGAL_GENERATION])
def test_removed_member_loses_its_partitions(world: ConsumerWorld, diary: Diary, code: int) -> None:
    consumer = member(world, diary)
    world.broker.fail(ApiKey.HEARTBEAT, code)
    world.background(3_500)
    world.poll_until(consumer, lambda: len(diary.entries) == 3)
    assert diary.entries[1:] == [("lost", [0, 1]), ("assigned", [0, 1])]


@pytest.mark.fault("R14")
def test_expired_session_ends_the_membership_locally(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(*[10] * 5)
    consumer = member(world, diary, session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
    world.read(consumer, 1)
    world.broker.silent = True
    world.background(7_000)
    assert not consumer.poll(0.0)  # another member may own the partition
    assert diary.entries[-1] == ("lost", [0, 1])
    world.broker.silent = False
    world.poll_until(consumer, lambda: diary.entries[-1] == ("assigned", [0, 1]))


@pytest.mark.fault("R14")
@pytest.mark.parametrize(("pause_ms", "is_lost"), [(5_500, False), (6_500, True)])
def test_heartbeat_response_received_during_a_pause_extends_the_session(
    world: ConsumerWorld, diary: Diary, pause_ms: float, *, is_lost: bool
) -> None:
    """The session counts from the last heartbeat that has a response, read or not."""
    consumer = member(world, diary, session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
    heartbeats = world.broker.asked_for(ApiKey.HEARTBEAT)
    while world.broker.asked_for(ApiKey.HEARTBEAT) == heartbeats:
        consumer.commit_async({ORDERS_0: 1})  # its response is ahead of that to the heartbeat
        consumer.poll(0.0)
        world.sleep(5.0)
    world.sleep(pause_ms)
    consumer.poll(0.0)
    assert (diary.entries[-1] == ("lost", [0, 1])) is is_lost


def test_changed_subscription_rejoins(world: ConsumerWorld, diary: Diary) -> None:
    world.broker.add_topic("extra")
    consumer = member(world, diary)
    consumer.subscribe(["orders", "extra"])
    extra = TopicPartition("extra", 0)
    world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_0, ORDERS_1, extra})
    assert consumer.subscription() == {"orders", "extra"}


@pytest.mark.fault("R20")
def test_pattern_subscribes_to_new_topics(world: ConsumerWorld) -> None:
    world.broker.add_topic("orders-eu")
    world.broker.add_topic("reorders")
    consumer = world.consumer(group_id="g", metadata_max_age_ms=500)
    consumer.subscribe(pattern="orders(-..)?")
    world.poll_until(consumer, lambda: bool(consumer.assignment()))
    assert {partition.topic for partition in consumer.assignment()} == {"orders", "orders-eu"}
    world.broker.add_topic("orders-us")
    world.poll_until(consumer, lambda: len(consumer.assignment()) == 4)
    assert consumer.subscription() == {"orders", "orders-eu", "orders-us"}


@pytest.mark.fault("R20")
def test_topic_created_later_is_assigned(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g", metadata_max_age_ms=500)
    consumer.subscribe("later")
    assert not consumer.poll(1.0)
    world.broker.add_topic("later")
    world.poll_until(consumer, lambda: len(consumer.assignment()) == 1)


class Joining:
    """A membership, driven by steps without a poll."""

    def __init__(self, world: ConsumerWorld, **options: object) -> None:
        self.world = world
        self.core = world.core(group_id="g", **options)
        assert self.core.group is not None
        self.group = self.core.group
        self.membership = self.group.membership

    def step(self) -> float:
        steps = self.membership.step(self.group.reconciliation, self.world.clock.now_ms)
        return perform(steps, self.world.clock)

    def poll(self) -> None:
        self.core.network.poll(20.0, self.world.clock.now_ms)

    def until(self, done: Callable[[], bool]) -> None:
        for _ in range(500):
            if done():
                return
            self.step()
            self.poll()
        raise AssertionError("it took too long")

    def join(self) -> None:
        self.core.subscribe(["orders"], None, RebalanceListener())
        self.until(lambda: bool(self.core.subscriptions.assigned))


@pytest.fixture
def joining(world: ConsumerWorld) -> Joining:
    return Joining(world, heartbeat_interval_ms=100, max_poll_interval_ms=2000)


def test_records_are_held_back_until_the_member_is_stable(joining: Joining) -> None:
    assert not joining.membership.holds_back()  # nothing is subscribed
    joining.core.subscribe(["orders"], None, RebalanceListener())
    assert joining.membership.holds_back()
    joining.until(lambda: bool(joining.core.subscriptions.assigned))
    assert not joining.membership.holds_back()
    joining.world.broker.group.rebalancing = True
    joining.world.sleep(200.0)
    joining.until(joining.membership.holds_back)
    joining.until(lambda: not joining.membership.holds_back())


def test_member_joins_when_its_topics_are_known(joining: Joining) -> None:
    joining.core.subscribe(["later"], None, RebalanceListener())
    joining.until(lambda: bool(joining.world.broker.group.joins))
    assert joining.core.network.metadata.topic_error("later") is not None


def test_metadata_is_that_of_the_last_assignment(joining: Joining) -> None:
    assert joining.membership.metadata() == ConsumerGroupMetadata("g")
    joining.join()
    assert joining.membership.metadata() == ConsumerGroupMetadata("g", 1, "member-1")
    joining.membership.leave("test")
    joining.poll()
    joining.poll()
    assert joining.membership.metadata() == ConsumerGroupMetadata("g", 1, "member-1")
    assert joining.world.broker.group.left == ["member-1"]


def test_background_step_sends_heartbeats_and_runs_no_callback(joining: Joining) -> None:
    joining.join()
    joining.world.broker.group.rebalancing = True
    joining.world.sleep(100.0)
    before = joining.world.broker.group.heartbeats
    assert joining.membership.background_step(joining.world.clock.now_ms) <= 100
    assert joining.membership.awaits_response()
    for _ in range(5):
        joining.poll()
    assert joining.world.broker.group.heartbeats == before + 1
    assert not joining.membership.awaits_response()
    assert joining.core.subscriptions.assigned  # revoked by the next step only
    joining.until(lambda: joining.world.broker.group.generation == 2)


def test_member_whose_application_does_not_poll_leaves_in_the_background(
    joining: Joining, caplog: pytest.LogCaptureFixture
) -> None:
    joining.join()
    joining.world.sleep(2001.0)
    joining.membership.background_step(joining.world.clock.now_ms)
    for _ in range(5):
        joining.poll()
    assert joining.world.broker.group.left == ["member-1"]
    assert "no poll() within max.poll.interval.ms (2000 ms)" in caplog.text
    assert joining.core.subscriptions.assigned
    assert joining.membership.holds_back()


def test_background_error_is_raised_by_the_next_step(joining: Joining) -> None:
    joining.join()
    assert joining.core.group is not None
    joining.core.group.finder.mark_unknown("test")
    joining.world.broker.fail(ApiKey.FIND_COORDINATOR, 30)
    for _ in range(20):
        joining.membership.background_step(joining.world.clock.now_ms)
        joining.poll()
    with pytest.raises(GroupAuthorizationError):
        joining.step()


def test_background_step_outside_of_a_group_does_nothing(joining: Joining) -> None:
    joining.core.assign([ORDERS_0])
    assert joining.membership.background_step(joining.world.clock.now_ms) == 100
    assert not joining.membership.awaits_response()
