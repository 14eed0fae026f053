"""Assignment by the leader of a group."""

from collections.abc import Mapping
from typing import NoReturn

import pytest

from kclient.common.broker_errors import InconsistentGroupProtocolError
from kclient.common.errors import (
    KafkaError,
)
from kclient.common.types import TopicPartition
from kclient.consumer.assignors import AbstractPartitionAssignor, Assignment, MemberSubscription
from kclient.consumer.classic.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kclient.consumer.classic.group_leader import GroupLeader
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.protocol.messages.group_membership import JoinGroupResponseMember
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


class Recording(AbstractPartitionAssignor):
    """An assignor that records its calls and assigns what the test sets."""

    def __init__(self, name: str = "mine") -> None:
        self.own_name = name
        self.given: list[tuple[dict[str, int], list[str]]] = []
        self.shares: dict[str, list[TopicPartition]] = {}
        self.received: list[tuple[Assignment, int]] = []

    @property
    def name(self) -> str:
        return self.own_name

    def spread(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        self.given.append((dict(partition_counts), sorted(members)))
        return self.shares

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self.received.append((assignment, generation_id))


class Leading:
    """A group leader with two assignors, and the metadata of two topics."""

    def __init__(self, world: ConsumerWorld) -> None:
        world.broker.add_topic("payments", 3)
        self.world = world
        self.mine, self.other = Recording(), Recording("other")
        self.core = world.core(group_id="g", partition_assignment_strategy=[self.mine, self.other])
        self.subscriptions = self.core.subscriptions
        self.subscriptions.subscribe(["orders"], RebalanceListener())
        self.leader = GroupLeader(
            [self.mine, self.other],
            self.subscriptions,
            self.core.network.metadata,
            lambda code: code(),
        )
        self.follow("orders")

    def follow(self, *topics: str) -> None:
        """Receive metadata of topics."""
        self.core.network.metadata.set_topics(topics)
        self.core.network.metadata.request_update()
        for _ in range(100):
            self.core.network.poll(50.0, self.world.clock.now_ms)
            cluster = self.core.network.metadata.cluster()
            if all(
                cluster.partition_count(topic) == len(self.world.broker.topics[topic])
                for topic in topics
            ):
                return
        raise AssertionError("no metadata")

    def lead(self, **topics: tuple[str, ...]) -> dict[str, bytes]:
        members = [
            JoinGroupResponseMember(
                member_id=name, metadata=encode_subscription(MemberSubscription(subscribed))
            )
            for name, subscribed in topics.items()
        ]
        return self.leader.lead("mine", members)


@pytest.fixture
def leading(world: ConsumerWorld) -> Leading:
    return Leading(world)


def test_member_sends_a_subscription_for_each_assignor(leading: Leading) -> None:
    leading.subscriptions.add_from_group([ORDERS_1])
    protocols = leading.leader.group_protocols(4, "rack-a")
    assert [protocol.name for protocol in protocols] == ["mine", "other"]
    for protocol in protocols:
        sent = decode_subscription(protocol.metadata, None)
        assert (sent.topics, sent.owned_partitions) == (("orders",), (ORDERS_1,))
        assert (sent.generation_id, sent.rack_id) == (4, "rack-a")


def test_subscription_changed_since_the_join_is_detected(leading: Leading) -> None:
    leading.leader.group_protocols(-1, None)
    assert not leading.leader.topics_changed()
    leading.subscriptions.subscribe(["orders", "payments"], RebalanceListener())
    assert leading.leader.topics_changed()
    leading.leader.group_protocols(-1, None)
    assert not leading.leader.topics_changed()


def test_assignor_gets_counts_of_existing_topics_and_all_members(leading: Leading) -> None:
    leading.mine.shares = {"a": [ORDERS_0], "b": [ORDERS_1]}
    shares = leading.lead(a=("orders",), b=("orders", "missing"))
    assert leading.mine.given == [({"orders": 2}, ["a", "b"])]
    assert leading.other.given == []
    assert {name: decode_assignment(share).partitions for name, share in shares.items()} == {
        "a": (ORDERS_0,),
        "b": (ORDERS_1,),
    }


def test_topics_of_other_members_are_requested_and_logged_if_missing(
    leading: Leading, caplog: pytest.LogCaptureFixture
) -> None:
    leading.lead(a=("orders",), b=("payments", "missing"))
    assert leading.subscriptions.metadata_topics() == {"orders", "payments", "missing"}
    assert "other members subscribe to do not exist: missing, payments" in caplog.text
    leading.leader.step_down()
    assert leading.subscriptions.metadata_topics() == {"orders"}


def test_changed_partition_count_requires_a_rebalance(leading: Leading) -> None:
    leading.world.broker.add_topic("orders", 4)
    assert not leading.leader.partition_counts_changed()  # not the leader
    leading.lead(a=("orders",))
    assert not leading.leader.partition_counts_changed()
    leading.follow("orders")
    assert leading.leader.partition_counts_changed()
    leading.leader.step_down()
    assert not leading.leader.partition_counts_changed()


def test_assigned_topic_without_subscriber_is_logged(
    leading: Leading, caplog: pytest.LogCaptureFixture
) -> None:
    leading.mine.shares = {"a": [TopicPartition("strange", 0)]}
    leading.lead(a=("orders",))
    assert "assigned topics that no member subscribes to: strange" in caplog.text


def test_assignment_is_passed_to_the_chosen_assignor(leading: Leading) -> None:
    assignment = Assignment((ORDERS_0,), b"data")
    leading.leader.on_assignment(assignment, "other", 7)
    assert (leading.mine.received, leading.other.received) == ([], [(assignment, 7)])


@pytest.mark.parametrize("name", [None, "", "sticky"])
def test_unknown_assignor_is_refused(leading: Leading, name: str | None) -> None:
    with pytest.raises(InconsistentGroupProtocolError, match="expected one of 'mine', 'other'"):
        leading.leader.assignor(name)


def test_error_of_an_assignor_names_it(leading: Leading, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise ValueError("wrong")

    monkeypatch.setattr(leading.mine, "spread", fail)
    with pytest.raises(KafkaError, match="assignor 'mine' failed: wrong") as caught:
        leading.lead(a=("orders",))
    assert isinstance(caught.value.__cause__, ValueError)
