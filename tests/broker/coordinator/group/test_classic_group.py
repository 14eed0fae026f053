"""Classic group: members, transitions, selection of the assignor."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.coordinator.group.classic_group import (
    PREVIOUS,
    ClassicGroup,
    GroupMember,
    GroupState,
)
from kclient.common.errors import IllegalStateError
from kclient.protocol.messages.group_membership import JoinGroupRequestProtocol


def offered(*names: str, metadata: bytes = b"m") -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]


def member(
    member_id: str, *names: str, instance: str | None = None, rebalance_ms: int = 1_000
) -> GroupMember:
    protocols = offered(*(names or ("range",)))
    return GroupMember(member_id, instance, "client", "/host", rebalance_ms, 500, protocols)


def group_of(*members: GroupMember) -> ClassicGroup:
    group = ClassicGroup("g", 0)
    group.protocol_type = "consumer"
    for each in members:
        group.add(each)
    return group


@pytest.mark.parametrize(("old", "new"), [*itertools.product(GroupState, GroupState)])
def test_only_transitions_of_the_table_are_possible(old: GroupState, new: GroupState) -> None:
    group = ClassicGroup("g", 5)
    group.state = old
    if old in PREVIOUS[new]:
        group.transition_to(new, 9)
        assert (group.state, group.state_since_ms, group.state_name) == (new, 9, new.value)
    else:
        with pytest.raises(IllegalStateError, match=f"from {old.value} to {new.value}"):
            group.transition_to(new, 9)
        assert (group.state, group.state_since_ms) == (old, 5)


def test_member_that_joined_first_leads() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    leaders = [group.leader]
    for member_id in "bac":
        assert group.remove(member_id) is not None
        leaders.append(group.leader)
    assert leaders == ["a", "a", "c", None]
    assert group.remove("c") is None


def test_added_member_is_no_longer_pending() -> None:
    group = group_of()
    group.pending_members = {"a", "b"}
    group.add(member("a"))
    assert group.pending_members == {"b"}
    group.remove("b")
    assert group.pending_members == set()


def test_restarted_static_member_takes_the_place_of_the_old_one() -> None:
    group = group_of(member("a", instance="i"), member("b"))
    replaced = group.replace_static("a", "a2")
    assert list(group.members) == ["a2", "b"]
    assert (replaced.member_id, group.leader, group.static_members) == ("a2", "a2", {"i": "a2"})


def test_removal_of_a_replaced_static_member_keeps_the_new_one() -> None:
    group = group_of(member("old", instance="i"), member("new", instance="i"))
    group.remove("old")
    assert group.static_members == {"i": "new"}
    group.remove("new")
    assert group.static_members == {}


NAMES = st.lists(st.sampled_from("abcd"), min_size=1, unique=True)


@given(st.lists(NAMES, min_size=1, max_size=6))
def test_selected_assignor_is_common_and_has_the_most_votes(preferences: list[list[str]]) -> None:
    group = group_of(*(member(str(number), *names) for number, names in enumerate(preferences)))
    common = set.intersection(*map(set, preferences))
    assert group.common_protocols() == common
    if common:
        votes = [next(name for name in names if name in common) for names in preferences]
        assert group.select_protocol() in common
        assert votes.count(group.select_protocol()) == max(map(votes.count, votes))


@pytest.mark.parametrize(
    ("kind", "names", "supported"),
    [
        ("consumer", ["range"], True),
        ("consumer", ["sticky", "range"], True),
        ("consumer", ["sticky"], False),
        ("consumer", [], False),
        ("connect", ["range"], False),
        ("", ["range"], False),
    ],
)
def test_member_must_share_type_and_assignor(
    kind: str, names: list[str], *, supported: bool
) -> None:
    assert group_of(member("a")).supports(kind, offered(*names)) is supported


def test_empty_group_supports_any_named_protocol() -> None:
    assert group_of().supports("connect", offered("x"))
    assert not group_of().supports("", offered("x"))
    assert not group_of().supports("connect", [])


def test_rebalance_waits_for_members_and_pending_ones() -> None:
    first, second = member("a", rebalance_ms=5_000), member("b", rebalance_ms=7_000)
    group = group_of(first, second)
    group.pending_members = {"c"}
    first.join_reply = second.join_reply = lambda _response: None
    assert not group.all_joined()
    group.pending_members.clear()
    assert group.all_joined()
    second.join_reply = None
    assert not group.all_joined()
    assert group.rebalance_timeout_ms() == 7_000
    assert group_of().rebalance_timeout_ms() == 0


def test_generation_with_members_selects_an_assignor() -> None:
    group = group_of(member("a", "range", "sticky"), member("b", "sticky"))
    group.has_new_member = True
    group.transition_to(GroupState.PREPARING_REBALANCE, 1)
    group.begin_generation(2)
    assert (group.generation, group.protocol, group.state) == (
        1,
        "sticky",
        GroupState.COMPLETING_REBALANCE,
    )
    assert not group.has_new_member
    assert not group.is_empty


def test_generation_without_members_is_empty_but_not_unused() -> None:
    group = group_of(member("a"))
    assert group_of().is_unused
    group.transition_to(GroupState.PREPARING_REBALANCE, 1)
    group.remove("a")
    group.begin_generation(2)
    assert (group.generation, group.protocol, group.leader) == (1, None, None)
    assert group.is_empty
    assert not group.is_unused


def test_pending_member_keeps_a_group_in_use() -> None:
    group = group_of()
    group.pending_members.add("a")
    assert group.is_empty
    assert not group.is_unused


def test_member_metadata_is_that_of_the_assignor() -> None:
    made = member("a")
    made.protocols = [*offered("range", metadata=b"1"), *offered("sticky", metadata=b"2")]
    assert [made.metadata(name) for name in ("sticky", "range", "other", None)] == [
        b"2",
        b"1",
        b"",
        b"",
    ]
    assert made.matches([*offered("range", metadata=b"1"), *offered("sticky", metadata=b"2")])
    assert not made.matches([*offered("sticky", metadata=b"2"), *offered("range", metadata=b"1")])
    assert not made.matches([*offered("range", metadata=b"1"), *offered("sticky", metadata=b"3")])


def test_pending_request_is_waiting() -> None:
    made = member("a")
    assert not made.is_waiting
    made.sync_reply = lambda _response: None
    assert made.is_waiting


def test_description_has_subscriptions_only_while_stable() -> None:
    group = group_of(member("a", instance="i"))
    group.members["a"].assignment = b"parts"
    group.restore(3, "range", "a")
    stable = group.describe()
    assert (stable.group_state, stable.protocol_data, stable.protocol_type) == (
        "Stable",
        "range",
        "consumer",
    )
    (found,) = stable.members
    assert (found.member_id, found.group_instance_id, found.member_metadata) == ("a", "i", b"m")
    assert found.member_assignment == b"parts"
    group.transition_to(GroupState.PREPARING_REBALANCE, 1)
    (found,) = group.describe().members
    assert (group.describe().protocol_data, found.member_metadata) == ("", b"")
    assert found.member_assignment == b"parts"
