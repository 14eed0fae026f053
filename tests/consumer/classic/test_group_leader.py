"""Assignment by the leader of a group."""

import pytest

from kclient.common.errors import (
    KafkaError,
)
from kclient.common.types import TopicPartition
from kclient.consumer.assignors import AbstractPartitionAssignor, Assignment, MemberSubscription
from kclient.consumer.classic.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, Diary, member


def test_leader_assigns_partitions_to_all_members(world: ConsumerWorld, diary: Diary) -> None:
    world.broker.group.paper_members["member-2"] = encode_subscription(
        MemberSubscription(("orders",))
    )
    consumer = member(world, diary)
    assert consumer.assignment() == {ORDERS_0}
    given = decode_assignment(world.broker.group.assignments["member-2"])
    assert given.partitions == (ORDERS_1,)


def test_follower_uses_the_assignment_of_the_leader(world: ConsumerWorld, diary: Diary) -> None:
    world.broker.group.leader = "member-2"
    world.broker.group.given = encode_assignment(Assignment((ORDERS_1,)))
    assert member(world, diary).assignment() == {ORDERS_1}
    assert world.broker.group.assignments == {}


@pytest.mark.fault("R20")
def test_added_partitions_trigger_a_rebalance(world: ConsumerWorld, diary: Diary) -> None:
    consumer = member(world, diary, metadata_max_age_ms=500)
    world.broker.add_topic("orders", 3)
    world.poll_until(consumer, lambda: len(consumer.assignment()) == 3)
    assert diary.entries[-1] == ("assigned", [0, 1, 2])


class ShyAssignor(AbstractPartitionAssignor):
    """Assigns the last partition only, and keeps its assignment."""

    def __init__(self) -> None:
        self.given: Assignment | None = None

    @property
    def name(self) -> str:
        return "shy"

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return b"data of %d" % len(topics)

    def spread(self, partition_counts, members):  # type: ignore[no-untyped-def]  # as a user may
        assert members["member-1"].user_data == b"data of 1"
        return {"member-1": [TopicPartition("orders", partition_counts["orders"] - 1)]}

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self.given = assignment


def test_custom_assignor(world: ConsumerWorld) -> None:
    assignor = ShyAssignor()
    consumer = world.subscribed(partition_assignment_strategy=[assignor, "range"])
    assert consumer.assignment() == {ORDERS_1}
    assert assignor.given == Assignment((ORDERS_1,))
    assert [offer.name for offer in world.broker.group.joins[0].protocols] == ["shy", "range"]


class BrokenAssignor(ShyAssignor):
    def spread(self, partition_counts, members):  # type: ignore[no-untyped-def]  # as a user may
        raise ZeroDivisionError("oh")


def test_poll_raises_assignor_error(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g", partition_assignment_strategy=BrokenAssignor())
    consumer.subscribe("orders")
    with pytest.raises(KafkaError, match="assignor 'shy' failed") as caught:
        world.poll_until(consumer, lambda: bool(consumer.assignment()))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
