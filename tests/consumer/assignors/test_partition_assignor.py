"""Properties of all built-in assignors."""

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
)
from tests.consumer.assignors.groups import counts, members, shares

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
