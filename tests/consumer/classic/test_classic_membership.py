"""Membership by the classic protocol: changed topics, and its end."""

import pytest

from kclient.common.errors import (
    CommitFailedError,
)
from kclient.common.types import TopicPartition
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
