"""Members of groups: joins, sessions, static members."""

from typing import Any

import pytest

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tests.support.virtual.group_world import World


def test_new_member_must_rejoin_with_generated_id() -> None:
    world = World()
    pending = world.join(version=4)[0]
    assert pending.error_code == code_of(e.MemberIdRequiredError)
    joined = world.join(pending.member_id, version=4)[0]
    assert (joined.error_code, joined.member_id) == (NONE, pending.member_id)


def test_pending_member_expires() -> None:
    world = World()
    pending = world.join(version=4)[0]
    world.pass_time(10_100)
    late = world.join(pending.member_id, version=4)[0]
    assert late.error_code == code_of(e.UnknownMemberIdError)


@pytest.mark.parametrize("version", range(6))
def test_leave_unknown_group(version: int) -> None:
    unknown = code_of(e.UnknownMemberIdError)
    members = [MemberIdentity(member_id="a"), MemberIdentity(member_id="b")]
    request = LeaveGroupRequest(group_id="absent", member_id="a", members=members)
    replies: list[LeaveGroupResponse] = []
    World().coordinator.leave_group(request, version, replies.append)
    (response,) = replies
    codes = [member.error_code for member in response.members]
    assert (response.error_code, codes) == ((unknown, []) if version < 3 else (NONE, [unknown] * 2))


def test_member_without_heartbeat_is_removed_after_session_timeout() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    codes = []
    for _ in range(12):
        world.pass_time(1_000)
        codes.append(world.heartbeat(leader, generation))
    assert codes[-1] == code_of(e.RebalanceInProgressError)
    rejoined = world.join(leader)[0]
    assert [m.member_id for m in rejoined.members] == [leader]
    assert world.heartbeat(follower, generation) == code_of(e.UnknownMemberIdError)


def test_leave_starts_rebalance() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    assert world.leave(MemberIdentity(member_id=follower)) == [NONE]
    assert world.heartbeat(leader, generation) == code_of(e.RebalanceInProgressError)
    assert world.leave(MemberIdentity(member_id=follower)) == [code_of(e.UnknownMemberIdError)]
    world.leave(MemberIdentity(member_id=leader))
    assert world.state() == "Empty"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session_timeout_ms": 5_999}, e.InvalidSessionTimeoutError),
        ({"session_timeout_ms": 1_800_001}, e.InvalidSessionTimeoutError),
        ({"group_id": ""}, e.InvalidGroupIdError),
        ({"protocols": []}, e.InconsistentGroupProtocolError),
        ({"protocol_type": ""}, e.InconsistentGroupProtocolError),
        ({"protocol_type": "connect"}, e.InconsistentGroupProtocolError),
        ({"protocols": ["other"]}, e.InconsistentGroupProtocolError),
        ({"member_id": "unknown"}, e.UnknownMemberIdError),
        ({"group_id": "other", "member_id": "unknown"}, e.UnknownMemberIdError),
    ],
)
def test_rejected_joins(options: dict[str, Any], error: type[KafkaError]) -> None:
    world = World()
    world.stable_pair()
    assert world.join(**options)[0].error_code == code_of(error)
    assert world.state() == "Stable"


def test_full_group_rejects_new_members() -> None:
    world = World(max_size=1)
    world.join()
    assert world.join()[0].error_code == code_of(e.GroupMaxSizeReachedError)


class TestStaticMembers:
    """Static members keep their assignment over a restart (KIP-345)."""

    def form(self, world: World) -> tuple[str, str]:
        first = world.join(group_instance_id="i1", version=5)[0]
        second = world.join(group_instance_id="i2", version=5)
        world.join(first.member_id, group_instance_id="i1", version=5)
        leader, follower = first.member_id, second[0].member_id
        world.sync(leader, 2, {leader: b"a", follower: b"b"})
        return leader, follower

    def test_restarted_static_member_keeps_generation_and_assignment(self) -> None:
        world = World()
        _, follower = self.form(world)
        back = world.join(group_instance_id="i2", version=5)[0]
        assert (back.error_code, back.generation_id) == (NONE, 2)
        assert back.member_id != follower
        assert world.sync(back.member_id, 2)[0].assignment == b"b"

    def test_other_metadata_of_a_restarted_static_member_causes_no_rebalance(self) -> None:
        world = World()
        self.form(world)
        back = world.join(group_instance_id="i2", version=5, metadata=b"owns nothing")[0]
        assert (back.error_code, back.generation_id) == (NONE, 2)
        assert world.state() == "Stable"

    def test_restarted_static_member_that_changes_the_assignor_rebalances(self) -> None:
        world = World()
        both = ["range", "roundrobin"]
        first = world.join(group_instance_id="i1", version=5, protocols=both)[0].member_id
        world.sync(first, 1, {first: b"a"})
        back = world.join(group_instance_id="i1", version=5, protocols=["roundrobin"])[0]
        assert (back.generation_id, back.protocol_name) == (2, "roundrobin")

    def test_restarted_static_leader_skips_assignment(self) -> None:
        world = World()
        leader, _ = self.form(world)
        back = world.join(group_instance_id="i1", version=9)[0]
        assert (back.leader, back.skip_assignment) == (back.member_id, True)
        assert len(back.members) == 2
        older = world.join(group_instance_id="i1", version=5)[0]
        assert older.leader == back.member_id != older.member_id
        assert leader not in {back.member_id, older.member_id}

    def test_old_static_member_is_fenced(self) -> None:
        world = World()
        _, follower = self.form(world)
        world.join(group_instance_id="i2", version=5)
        request = HeartbeatRequest(
            group_id="g", generation_id=2, member_id=follower, group_instance_id="i2"
        )
        assert world.coordinator.heartbeat(request) == code_of(e.FencedInstanceIdError)
        assert world.heartbeat(follower, 2) == code_of(e.UnknownMemberIdError)

    def test_leave_by_instance_id(self) -> None:
        world = World()
        self.form(world)
        assert world.leave(MemberIdentity(group_instance_id="i2")) == [NONE]
        wrong = MemberIdentity(member_id="x", group_instance_id="i1")
        assert world.leave(wrong) == [code_of(e.FencedInstanceIdError)]
