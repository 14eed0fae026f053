"""A member cannot overwrite the committed offsets of partitions that it has given up."""

import pytest

from kclient.common.errors import CommitFailedError, KafkaError
from kclient.consumer import Consumer
from kclient.consumer.coordinator.offset_committer import Offsets
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld


def given_up(world: ConsumerWorld) -> Consumer:
    """Return a member that has given orders-1 up to another member."""
    consumer = world.subscribed(heartbeat_interval_ms=100, enable_auto_commit=False)
    world.broker.group.paper_members["member-0"] = (
        world.broker.group.joins[-1].protocols[0].metadata
    )
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_1})
    return consumer


def test_a_commit_of_a_partition_that_was_given_up_is_refused(world: ConsumerWorld) -> None:
    consumer = given_up(world)
    with pytest.raises(CommitFailedError, match="orders-0, which this member has given up"):
        consumer.commit({ORDERS_0: 1, ORDERS_1: 1})
    errors: list[KafkaError | None] = []

    def done(_: Offsets, error: KafkaError | None) -> None:
        errors.append(error)

    consumer.commit_async({ORDERS_0: 1}, done)
    world.poll_until(consumer, lambda: bool(errors))
    assert isinstance(errors[0], CommitFailedError)
    assert world.broker.group.commits == []
    consumer.commit({ORDERS_1: 1})


def test_a_commit_that_waited_for_the_coordinator_is_refused_if_its_partition_is_gone(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = world.subscribed(heartbeat_interval_ms=100, enable_auto_commit=False)
    errors: list[KafkaError | None] = []
    group = world.broker.group
    group.paper_members["member-0"] = group.joins[-1].protocols[0].metadata
    coordinator = consumer._parts.coordinator
    assert coordinator is not None
    committer = coordinator._parts.committer
    with monkeypatch.context() as waiting:
        waiting.setattr(committer, "_flush", lambda: None)
        consumer.commit_async({ORDERS_0: 1}, lambda _, error: errors.append(error))
        group.rebalancing = True
        world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_1})
    world.poll_until(consumer, lambda: bool(errors))
    assert isinstance(errors[0], CommitFailedError)
    assert group.commits == []


def test_a_partition_that_came_back_may_be_committed(world: ConsumerWorld) -> None:
    consumer = given_up(world)
    world.broker.group.paper_members.clear()
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: consumer.assignment() == {ORDERS_0, ORDERS_1})
    consumer.commit({ORDERS_0: 1})


def test_who_never_held_a_partition_may_commit_it(world: ConsumerWorld) -> None:
    """As Kafka: positions may be set for partitions of other topics, and without a subscription."""
    (other,) = world.broker.add_topic("other")
    given_up(world).commit({other: 1})
    world.assigned(1, group_id="g").commit({ORDERS_0: 1})
    world.consumer(group_id="g").commit({ORDERS_0: 2})


def test_after_unsubscribe_nothing_counts_as_given_up(world: ConsumerWorld) -> None:
    consumer = given_up(world)
    consumer.unsubscribe()
    consumer.assign([ORDERS_1])
    consumer.commit({ORDERS_0: 1})
