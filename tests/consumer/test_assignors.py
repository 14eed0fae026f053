"""Partition assignors: properties of all, and the documented assignments of each."""

from collections.abc import Mapping
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.types import TopicPartition
from kclient.consumer.assignors import (
    AbstractPartitionAssignor,
    MemberSubscription,
    PartitionAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    in_member_order,
)

TOPICS = ["a", "b", "c", "d"]

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
members = st.dictionaries(
    st.text("mnop", min_size=1, max_size=4),
    st.builds(
        MemberSubscription,
        st.lists(st.sampled_from(TOPICS), unique=True).map(tuple),
        group_instance_id=st.none() | st.text("xyz", min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=7,
)


def shares(
    assignor: PartitionAssignor,
    partitions: Mapping[str, int],
    group: Mapping[str, MemberSubscription],
) -> dict[str, list[tuple[str, int]]]:
    given_out = assignor.assign(partitions, group)
    return {
        member: [(each.topic, each.partition) for each in share.partitions]
        for member, share in given_out.items()
    }


ASSIGNORS = [RangeAssignor(), RoundRobinAssignor()]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
@given(partitions=counts, group=members)
def test_each_partition_is_assigned_to_exactly_one_subscriber(
    assignor: AbstractPartitionAssignor,
    partitions: dict[str, int],
    group: dict[str, MemberSubscription],
) -> None:
    result = shares(assignor, partitions, group)
    assert result.keys() == group.keys()
    given_out = [each for share in result.values() for each in share]
    wanted = {topic for member in group.values() for topic in member.topics}
    expected = [
        (topic, number)
        for topic, count in partitions.items()
        if topic in wanted
        for number in range(count)
    ]
    assert sorted(given_out) == sorted(expected)
    for member, share in result.items():
        assert {topic for topic, _ in share} <= set(group[member].topics)


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
@given(partitions=counts, group=members, data=st.data())
def test_assignment_does_not_depend_on_input_order(
    assignor: AbstractPartitionAssignor,
    partitions: dict[str, int],
    group: dict[str, MemberSubscription],
    data: st.DataObject,
) -> None:
    shuffled = dict(data.draw(st.permutations(list(group.items()))))
    assert shares(assignor, partitions, shuffled) == shares(assignor, partitions, group)


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
def test_static_member_keeps_assignment_with_new_member_id(
    assignor: AbstractPartitionAssignor,
) -> None:
    def group(first: str) -> dict[str, MemberSubscription]:
        return {
            first: MemberSubscription(("a",), group_instance_id="i1"),
            "m2": MemberSubscription(("a",), group_instance_id="i2"),
            "m3": MemberSubscription(("a",)),
        }

    before = shares(assignor, {"a": 7}, group("m1"))
    after = shares(assignor, {"a": 7}, group("zz"))
    assert after["zz"] == before["m1"]
    assert after["m2"] == before["m2"]


def test_assignors_implement_the_protocol() -> None:
    for assignor in ASSIGNORS:
        assert isinstance(assignor, PartitionAssignor)
        assert assignor.subscription_user_data(frozenset({"a"})) is None
        share = assignor.assign({"a": 1}, {"m": MemberSubscription(("a",))})["m"]
        assert share.partitions == (TopicPartition("a", 0),)


@given(partitions=counts, group=members)
def test_range_assigns_even_contiguous_ranges(
    partitions: dict[str, int], group: dict[str, MemberSubscription]
) -> None:
    result = shares(RangeAssignor(), partitions, group)
    for topic in partitions:
        takers = [member for member, subscription in group.items() if topic in subscription.topics]
        pieces = [[number for name, number in result[member] if name == topic] for member in takers]
        sizes = [len(piece) for piece in pieces]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        for piece in pieces:
            assert piece == list(range(piece[0], piece[0] + len(piece))) if piece else True


def test_range_matches_kafkas_documentation() -> None:
    group = {"C0": MemberSubscription(("t0", "t1")), "C1": MemberSubscription(("t0", "t1"))}
    assert shares(RangeAssignor(), {"t0": 3, "t1": 3}, group) == {
        "C0": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)],
        "C1": [("t0", 2), ("t1", 2)],
    }


@given(partitions=counts, names=st.sets(st.text("mnop", min_size=1), min_size=1, max_size=7))
def test_round_robin_is_even_for_equal_subscriptions(
    partitions: dict[str, int], names: set[str]
) -> None:
    group = {name: MemberSubscription(tuple(TOPICS)) for name in names}
    sizes = [len(share) for share in shares(RoundRobinAssignor(), partitions, group).values()]
    assert max(sizes) - min(sizes) <= 1


def test_round_robin_matches_kafkas_documentation() -> None:
    group = {"C0": MemberSubscription(("t0", "t1")), "C1": MemberSubscription(("t0", "t1"))}
    assert shares(RoundRobinAssignor(), {"t0": 3, "t1": 3}, group) == {
        "C0": [("t0", 0), ("t0", 2), ("t1", 1)],
        "C1": [("t0", 1), ("t1", 0), ("t1", 2)],
    }
    uneven = {
        "C0": MemberSubscription(("t0",)),
        "C1": MemberSubscription(("t0", "t1")),
        "C2": MemberSubscription(("t0", "t1", "t2")),
    }
    assert shares(RoundRobinAssignor(), {"t0": 1, "t1": 2, "t2": 3}, uneven) == {
        "C0": [("t0", 0)],
        "C1": [("t1", 0)],
        "C2": [("t1", 1), ("t2", 0), ("t2", 1), ("t2", 2)],
    }


def in_turn(
    partitions: Mapping[str, int], group: Mapping[str, MemberSubscription]
) -> dict[str, list[tuple[str, int]]]:
    """Assign as Kafka's RoundRobinAssignor describes it: step through the members for each."""
    order = cycle(in_member_order(group))
    taken: dict[str, list[tuple[str, int]]] = {member: [] for member in group}
    for topic in sorted(partitions):
        if any(topic in member.topics for member in group.values()):
            for number in range(partitions[topic]):
                member = next(each for each in order if topic in group[each].topics)
                taken[member].append((topic, number))
    return taken


@given(counts, members)
def test_round_robin_steps_through_the_members(
    partitions: dict[str, int], group: dict[str, MemberSubscription]
) -> None:
    assert shares(RoundRobinAssignor(), partitions, group) == in_turn(partitions, group)
