"""Rebalances of groups of the classic protocol."""

from typing import Any

import pytest

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.protocol.messages.group_membership import (
    MemberIdentity,
)
from tests.support.virtual.group_world import World


def test_leader_assignment_completes_rebalance() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    assert world.state() == "Stable"
    described = world.coordinator.describe_group("g")
    assert {m.member_id: m.member_assignment for m in described.members} == {
        leader: b"a",
        follower: b"b",
    }
    assert world.heartbeat(follower, generation) == NONE


def test_only_leader_receives_member_list() -> None:
    world = World()
    first = world.join()[0]
    second = world.join(metadata=b"n")
    again = world.join(first.member_id)[0]
    assert [(m.member_id, m.metadata) for m in again.members] == [
        (first.member_id, b"m"),
        (second[0].member_id, b"n"),
    ]
    assert second[0].members == []
    assert second[0].leader == first.member_id


def test_initial_rebalance_delay_collects_members() -> None:
    world = World(initial_rebalance_delay_ms=3_000)
    first = world.join()
    world.pass_time(2_000)
    second = world.join()
    world.pass_time(2_900)
    assert first == second == []
    world.pass_time(1_200)
    assert first[0].generation_id == second[0].generation_id == 1
    assert len(first[0].members) == 2


@pytest.mark.parametrize("delay_ms", [0, 500])
def test_initial_rebalance_does_not_wait_for_pending_members(
    delay_ms: int,
) -> None:
    """Pending members are not waited for (Kafka: tryCompleteInitialRebalanceElseSchedule)."""
    world = World(initial_rebalance_delay_ms=delay_ms)
    assert world.join(version=4)[0].error_code == code_of(e.MemberIdRequiredError)
    pending = world.join(version=4)[0]
    joined = world.join(pending.member_id, version=4)
    world.pass_time(2 * delay_ms)
    assert [reply.generation_id for reply in joined] == [1]
    assert [member.member_id for member in joined[0].members] == [pending.member_id]


def test_empty_group_does_not_wait_for_pending_members() -> None:
    world = World()
    leader, follower, _ = world.stable_pair()
    world.leave(MemberIdentity(member_id=leader), MemberIdentity(member_id=follower))
    assert world.state() == "Empty"
    world.join(version=4)
    assert [reply.error_code for reply in world.join()] == [NONE]


def test_static_member_of_empty_group_does_not_wait_for_pending_members() -> None:
    world = World()
    world.join(version=4)
    joined = world.join(group_instance_id="static", version=5)
    assert [reply.generation_id for reply in joined] == [1]


def test_describe_during_rebalance_returns_old_assignments() -> None:
    world = World()
    leader, follower, _ = world.stable_pair()
    world.join(follower, metadata=b"changed")
    described = world.coordinator.describe_group("g")
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {m.member_id: (m.member_metadata, m.member_assignment) for m in described.members} == {
        leader: (b"", b"a"),
        follower: (b"", b"b"),
    }
    world.join(leader)
    world.join(follower, metadata=b"changed again")
    described = world.coordinator.describe_group("g")
    assert {m.member_assignment for m in described.members} == {b""}, "its sync was interrupted"


def test_later_rebalance_waits_for_pending_member_until_session_expires() -> None:
    """As in Kafka (hasAllMembersJoined), to avoid a second rebalance."""
    world = World()
    leader, follower, generation = world.stable_pair()
    pending = world.join(version=4)[0]
    assert pending.error_code == code_of(e.MemberIdRequiredError)
    joins = [world.join(follower, metadata=b"changed"), world.join(leader)]
    assert joins == [[], []]
    world.pass_time(9_900)
    assert joins == [[], []]
    world.pass_time(200)
    assert [reply.generation_id for replies in joins for reply in replies] == [generation + 1] * 2


def test_rebalance_removes_members_that_do_not_rejoin() -> None:
    world = World()
    leader, follower, _ = world.stable_pair()
    rejoined = world.join(follower, metadata=b"changed")
    for _ in range(30):
        assert rejoined == []
        world.heartbeat(leader, 2)
        world.pass_time(1_000)
    assert rejoined[0].leader == follower
    assert world.heartbeat(leader, 2) == code_of(e.UnknownMemberIdError)


def test_members_without_sync_are_removed() -> None:
    world = World()
    joined = world.join()[0]
    for _ in range(31):
        world.heartbeat(joined.member_id, joined.generation_id)
        world.pass_time(1_000)
    assert world.state() == "Empty"


def test_unchanged_follower_rejoin_does_not_rebalance() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    assert world.join(follower)[0].generation_id == generation
    assert world.heartbeat(leader, generation) == NONE
    assert world.join(leader) == []
    assert world.heartbeat(follower, generation) == code_of(e.RebalanceInProgressError)


def test_assignor_with_most_votes_is_selected() -> None:
    world = World()
    first = world.join(protocols=["a", "b", "c"])[0]
    second = world.join(protocols=["b", "a"])
    third = world.join(protocols=["b", "a"])
    again = world.join(first.member_id, protocols=["a", "b", "c"])[0]
    assert {again.protocol_name, second[0].protocol_name, third[0].protocol_name} == {"b"}


def test_rejected_syncs() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    assert world.sync(leader, 1)[0].error_code == code_of(e.IllegalGenerationError)
    assert world.sync("x", generation)[0].error_code == code_of(e.UnknownMemberIdError)
    world.join(leader)
    code = world.sync(follower, generation)[0].error_code
    assert code == code_of(e.RebalanceInProgressError)


def test_sync_in_stable_group_returns_assignment() -> None:
    world = World()
    leader, _, generation = world.stable_pair()
    assert world.sync(leader, generation)[0].assignment == b"a"


def test_join_fails_pending_syncs() -> None:
    world = World()
    first = world.join()[0]
    world.sync(first.member_id, 1, {first.member_id: b"all"})
    second = world.join()
    world.join(first.member_id)
    waiting = world.sync(second[0].member_id, 2)
    world.join()
    assert waiting[0].error_code == code_of(e.RebalanceInProgressError)


def test_failed_generation_write_restarts_rebalance() -> None:
    world = World()
    joined = world.join()[0]
    world.log.failure = e.NotCoordinatorError("disk full")
    synced = world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert synced[0].error_code == code_of(e.NotCoordinatorError)
    world.log.failure = None
    again = world.join(joined.member_id)[0]
    assert again.generation_id == 2


def test_rebalance_with_zero_timeout_does_not_spin() -> None:
    """A static member with a rebalance timeout of 0 that does not rejoin."""
    world = World()
    settings: dict[str, Any] = {
        "rebalance_timeout_ms": 0,
        "session_timeout_ms": 60_000,
        "version": 5,
    }
    first = world.join(group_instance_id="i1", **settings)[0].member_id
    world.sync(first, 1)
    second = world.join(group_instance_id="i2", **settings)
    world.join(first, group_instance_id="i1", **settings)
    for member in (first, second[0].member_id):
        world.sync(member, 2)
    world.leave(MemberIdentity(group_instance_id="i2"))
    next_ms = world.coordinator.step(world.clock.now_ms)
    assert world.state() == "PreparingRebalance"
    assert next_ms is not None
    assert next_ms >= world.clock.now_ms + 1000
    world.pass_time(61_000)
    assert world.state() == "Empty"
