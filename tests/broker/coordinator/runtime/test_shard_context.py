"""Group coordinator on a log that withholds commits: no reply and no offset before the commit."""

from typing import Any

import pytest

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.group_membership import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tests.support.virtual.group_world import TP, World


def withholding(world: World) -> World:
    world.log.withheld = []
    return world


def test_offset_is_visible_when_committed() -> None:
    world = withholding(World())
    codes = world.start_commit(7)
    assert codes == []
    assert world.coordinator.fetch_offsets("g") == {}
    assert world.coordinator.list_groups() == []
    world.log.commit()
    assert codes == [{TP: NONE}]
    assert world.coordinator.fetch_offsets("g")[TP].offset == 7


def test_commits_complete_in_order_of_log() -> None:
    world = withholding(World())
    first, second = world.start_commit(1), world.start_commit(2)
    assert world.log.withheld is not None
    world.log.withheld.reverse()
    world.log.commit()
    assert (first, second) == ([], [])
    world.log.commit()
    assert first == second == [{TP: NONE}]
    assert world.coordinator.fetch_offsets("g")[TP].offset == 2


def test_failed_commit_is_not_visible() -> None:
    world = withholding(World())
    codes = world.start_commit(1)
    world.log.commit(e.NotCoordinatorError("leader moved"))
    assert codes == [{TP: code_of(e.NotCoordinatorError)}]
    world.coordinator.load_now()
    assert world.coordinator.fetch_offsets("g") == {}


def test_commit_times_out_and_is_visible_when_committed_later() -> None:
    world = withholding(World(offsets_commit_timeout_ms=1_000))
    codes = world.start_commit(1)
    world.pass_time(1_100)
    assert codes == [{TP: code_of(e.CoordinatorNotAvailableError)}]
    assert world.coordinator.fetch_offsets("g") == {}
    world.log.commit()
    assert len(codes) == 1
    assert world.coordinator.fetch_offsets("g")[TP].offset == 1


def test_sync_replies_when_assignment_is_committed() -> None:
    world = World()
    joined = world.join()[0]
    withholding(world)
    synced = world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert synced == []
    assert world.state() == "CompletingRebalance"
    (member,) = world.coordinator.describe_group("g").members
    assert member.member_assignment == b""
    assert world.heartbeat(joined.member_id, 1) == NONE
    world.log.commit()
    assert synced[0].assignment == b"all"
    assert world.state() == "Stable"


def test_rebalance_during_uncommitted_assignment_discards_it() -> None:
    world = World()
    joined = world.join()[0]
    withholding(world)
    synced = world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    second = world.join(metadata=b"n")
    assert synced[0].error_code == code_of(e.RebalanceInProgressError)
    world.log.commit()
    assert (len(synced), second) == (1, [])
    assert world.state() == "PreparingRebalance"
    assert world.join(joined.member_id)[0].generation_id == 2


def test_static_member_join_replies_when_committed() -> None:
    world = World()
    first = world.join(group_instance_id="i1", version=5)[0]
    world.sync(first.member_id, 1, {first.member_id: b"a"})
    withholding(world)
    restarted = world.join(group_instance_id="i1", version=5)
    assert restarted == []
    world.log.commit()
    assert (restarted[0].error_code, restarted[0].generation_id) == (NONE, 1)


def test_leave_replies_when_empty_group_is_committed() -> None:
    world = World()
    joined = world.join()[0]
    world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    withholding(world)
    replies: list[LeaveGroupResponse] = []
    members = [MemberIdentity(member_id=joined.member_id)]
    request = LeaveGroupRequest(group_id="g", members=members)
    world.coordinator.leave_group(request, 5, replies.append)
    assert replies == []
    world.log.commit()
    assert [member.error_code for member in replies[0].members] == [NONE]


@pytest.mark.parametrize("error", [None, e.NotCoordinatorError("leader moved")])
def test_group_is_deleted_when_committed(error: KafkaError | None) -> None:
    world = World()
    world.commit(1)
    withholding(world)
    replies: list[Any] = []
    world.coordinator.delete_group("g", replies.append)
    assert replies == []
    assert TP in world.coordinator.fetch_offsets("g")
    world.log.commit(error)
    assert replies == [error]
    world.coordinator.load_now()
    assert (TP in world.coordinator.fetch_offsets("g")) is (error is not None)
    assert (world.state() == "Dead") is (error is None)


def test_unload_fails_pending_requests() -> None:
    world = World()
    joined = world.join()[0]
    withholding(world)
    synced = world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    world.resign(1)
    moved = code_of(e.NotCoordinatorError)
    assert [response.error_code for response in synced] == [moved]
    world.log.commit()
    assert len(synced) == 1
    assert world.commit(1) == moved
    assert world.heartbeat(joined.member_id, 1) == moved


def test_load_after_unload_restores_groups() -> None:
    world = World()
    leader, _, generation = world.stable_pair()
    world.commit(5, leader, generation)
    world.resign(1)
    world.lead(2)
    world.lead(2)
    assert world.heartbeat(leader, generation) == NONE
    assert world.coordinator.fetch_offsets("g")[TP].offset == 5


def test_repeated_sync_of_a_leader_writes_its_first_assignment() -> None:
    world = World()
    joined = world.join()[0]
    withholding(world)
    world.sync(joined.member_id, 1, {joined.member_id: b"first"})
    again = world.sync(joined.member_id, 1, {joined.member_id: b"second"})
    world.log.commit()
    assert world.log.withheld == []
    assert again[0].assignment == b"first"
