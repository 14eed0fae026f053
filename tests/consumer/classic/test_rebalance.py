"""Rebalances and their callbacks, in virtual time."""

import pytest

from kclient.common.types import TopicPartition
from kclient.consumer.assignors import Assignment
from kclient.consumer.classic.consumer_protocol import (
    encode_assignment,
)
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, Diary, member


@pytest.mark.fault("R9", "R11")
def test_rebalance_revokes_before_joining(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(*[5] * 20)
    consumer = member(world, diary, heartbeat_interval_ms=100)
    consumer.poll(1.0, max_records=7)
    world.broker.group.rebalancing = True
    world.broker.group.leader = "member-2"
    world.broker.group.given = encode_assignment(Assignment((ORDERS_1,)))
    seen_after: list[int] = []
    for _ in range(20):
        world.sleep(20.0)
        records = consumer.poll(0.1, max_records=1)
        if ("revoked", [0, 1]) in diary.entries:
            seen_after += [record.partition for record in records]
    assert diary.entries == [("assigned", [0, 1]), ("revoked", [0, 1]), ("assigned", [1])]
    assert 0 not in seen_after


@pytest.mark.fault("R11")
def test_auto_commit_runs_before_a_rebalance(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(10)
    consumer = member(world, diary, heartbeat_interval_ms=100)
    returned = world.read(consumer, 1)
    returned += consumer.poll(0.0, max_records=3)
    last = max(record.offset for record in returned)
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: len(diary.entries) == 3)
    commit = world.broker.group.commits[0]
    assert (commit.generation_id_or_member_epoch, commit.member_id) == (1, "member-1")
    assert world.broker.group.committed[ORDERS_0][0] >= last + 1


@pytest.mark.fault("R11", "R16")
def test_commit_in_on_revoked_succeeds(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.consumer(group_id="g", enable_auto_commit=False, heartbeat_interval_ms=100)
    consumer.subscribe("orders", on_revoked=lambda given: consumer.commit())
    world.read(consumer, 10)
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: bool(world.broker.group.committed))
    assert world.broker.group.committed[ORDERS_0][0] == 10
    world.poll_until(consumer, lambda: world.broker.group.generation == 2)


@pytest.mark.fault("R16")
@pytest.mark.parametrize("when", ["assigned", "revoked"])
def test_poll_raises_callback_error_and_continues(world: ConsumerWorld, when: str) -> None:
    world.fill(3)
    raised: list[str] = []

    def once(what: str) -> None:
        if what == when and not raised:
            raised.append(what)
            raise ValueError(what)

    consumer = world.consumer(group_id="g", heartbeat_interval_ms=100)
    consumer.subscribe(
        "orders", on_assigned=lambda _: once("assigned"), on_revoked=lambda _: once("revoked")
    )
    taken: list[int] = []

    def poll() -> None:
        taken.extend(record.offset for record in consumer.poll(0.1))

    def until_raised() -> None:
        for step in range(100):
            world.broker.group.rebalancing = step == 20
            poll()

    with pytest.raises(ValueError, match=when):
        until_raised()
    for _ in range(30):
        poll()
    assert consumer.assignment() == {ORDERS_0, ORDERS_1}
    assert set(taken) == {0, 1, 2}


def test_subscription_changed_in_a_callback_is_joined_without_a_pause(
    world: ConsumerWorld,
) -> None:
    world.broker.add_topic("others", 1)
    consumer = world.consumer(group_id="g", retry_backoff_ms=700, retry_backoff_max_ms=700)
    times: list[float] = []

    def assigned(partitions: list[TopicPartition]) -> None:
        times.append(world.clock.now_ms)
        for partition in partitions:
            consumer.seek(partition, 0)  # nothing is looked up: a fetch waits for records
        if len(times) == 1:
            consumer.subscribe("orders", on_assigned=assigned)

    consumer.subscribe(["orders", "others"], on_assigned=assigned)
    consumer.beginning_offsets([ORDERS_0])  # the leader is connected
    world.poll_until(consumer, lambda: len(times) == 2)
    # The last commit, JoinGroup and SyncGroup.
    assert times[1] - times[0] <= 10.0
