"""Commits of revoked partitions."""

import pytest

from kclient.common.errors import CommitFailedError, KafkaError
from kclient.consumer import Consumer
from kclient.consumer.commits import Offsets
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld


def given_up(world: ConsumerWorld) -> Consumer:
    """Return a member from which orders-1 was revoked."""
    consumer = world.subscribed(heartbeat_interval_ms=100, enable_auto_commit=False)
    world.broker.group.paper_members["member-0"] = (
        world.broker.group.joins[-1].protocols[0].metadata
    )
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_1})
    return consumer


def test_commit_of_revoked_partition_is_rejected(world: ConsumerWorld) -> None:
    consumer = given_up(world)
    with pytest.raises(CommitFailedError, match="orders-0, revoked from this member"):
        consumer.commit({ORDERS_0: 1, ORDERS_1: 1})
    errors: list[KafkaError | None] = []

    def done(_: Offsets, error: KafkaError | None) -> None:
        errors.append(error)

    consumer.commit_async({ORDERS_0: 1}, done)
    world.poll_until(consumer, lambda: bool(errors))
    assert isinstance(errors[0], CommitFailedError)
    assert world.broker.group.commits == []
    consumer.commit({ORDERS_1: 1})


def test_queued_commit_of_revoked_partition_is_rejected(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = world.subscribed(heartbeat_interval_ms=100, enable_auto_commit=False)
    errors: list[KafkaError | None] = []
    group = world.broker.group
    group.paper_members["member-0"] = group.joins[-1].protocols[0].metadata
    assert consumer._core.group is not None
    committer = consumer._core.group.commits
    with monkeypatch.context() as waiting:
        waiting.setattr(committer, "_flush", lambda: None)
        consumer.commit_async({ORDERS_0: 1}, lambda _, error: errors.append(error))
        group.rebalancing = True
        world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_1})
    world.poll_until(consumer, lambda: bool(errors))
    assert isinstance(errors[0], CommitFailedError)
    assert group.commits == []


def test_reassigned_partition_can_be_committed(world: ConsumerWorld) -> None:
    consumer = given_up(world)
    world.broker.group.paper_members.clear()
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_0, ORDERS_1})
    consumer.commit({ORDERS_0: 1})


def test_partition_never_assigned_can_be_committed(world: ConsumerWorld) -> None:
    """As in Kafka: offsets of other topics, and commits without a subscription."""
    (other,) = world.broker.add_topic("other")
    given_up(world).commit({other: 1})
    world.assigned(1, group_id="g").commit({ORDERS_0: 1})
    world.consumer(group_id="g").commit({ORDERS_0: 2})


def test_unsubscribe_clears_revoked_partitions(world: ConsumerWorld) -> None:
    consumer = given_up(world)
    consumer.unsubscribe()
    consumer.assign([ORDERS_1])
    consumer.commit({ORDERS_0: 1})
