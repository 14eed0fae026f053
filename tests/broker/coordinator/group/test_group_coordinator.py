"""The classic group protocol against one coordinator, in virtual time."""

from typing import Any

import pytest

from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.group.group_records import partition_for
from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tests.support.virtual.group_world import TP, MemoryLog, World
from tests.support.virtual.virtual_home import VirtualHome


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


def test_leave_starts_rebalance() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    assert world.leave(MemberIdentity(member_id=follower)) == [NONE]
    assert world.heartbeat(leader, generation) == code_of(e.RebalanceInProgressError)
    assert world.leave(MemberIdentity(member_id=follower)) == [code_of(e.UnknownMemberIdError)]
    world.leave(MemberIdentity(member_id=leader))
    assert world.state() == "Empty"


def test_unchanged_follower_rejoin_does_not_rebalance() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    assert world.join(follower)[0].generation_id == generation
    assert world.heartbeat(leader, generation) == NONE
    assert world.join(leader) == []
    assert world.heartbeat(follower, generation) == code_of(e.RebalanceInProgressError)


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


class TestOffsets:
    """Commits are validated against the generation and stored in the log."""

    def test_commit_without_membership(self) -> None:
        world = World()
        assert world.commit(7, metadata="note") == NONE
        kept = world.coordinator.fetch_offsets("g")[TP]
        assert (kept.offset, kept.metadata) == (7, "note")

    def test_commit_requires_current_generation(self) -> None:
        world = World()
        leader, _, generation = world.stable_pair()
        assert world.commit(1, leader, generation) == NONE
        assert world.commit(2, leader, generation - 1) == code_of(e.IllegalGenerationError)
        assert world.commit(2, "x", generation) == code_of(e.UnknownMemberIdError)
        assert world.commit(2) == code_of(e.UnknownMemberIdError)
        assert world.coordinator.fetch_offsets("g")[TP].offset == 1

    def test_commit_during_rebalance_is_valid_until_next_generation(self) -> None:
        world = World()
        leader, follower, generation = world.stable_pair()
        world.join(leader)
        assert world.commit(3, follower, generation) == NONE
        world.join(follower)
        assert world.commit(4, follower, 3) == code_of(e.RebalanceInProgressError)

    def test_oversized_commit_metadata_is_rejected(self) -> None:
        world = World(offset_metadata_max_bytes=3)
        assert world.commit(1, metadata="four") == code_of(e.OffsetMetadataTooLargeError)
        assert world.coordinator.fetch_offsets("g") == {}

    def test_failed_append_discards_commit(self) -> None:
        world = World()
        world.log.failure = e.NotCoordinatorError("disk full")
        assert world.commit(1) == code_of(e.NotCoordinatorError)
        assert world.coordinator.fetch_offsets("g") == {}

    def test_deleted_topic_removes_its_offsets(self) -> None:
        world = World()
        world.commit(1)
        world.coordinator.on_topics_deleted({"other"})
        assert TP in world.coordinator.fetch_offsets("g")
        world.coordinator.on_topics_deleted({"t"})
        assert world.coordinator.fetch_offsets("g") == {}
        assert World(world.log).coordinator.fetch_offsets("g") == {}

    def test_offsets_of_empty_group_expire(self) -> None:
        world = World(offsets_retention_ms=60_000, offsets_retention_check_ms=1_000)
        world.commit(1)
        world.pass_time(50_000)
        assert TP in world.coordinator.fetch_offsets("g")
        world.pass_time(12_000)
        assert world.coordinator.fetch_offsets("g") == {}


class TestRestart:
    """A coordinator that loads the log restores the state."""

    def test_load_restores_members_and_offsets(self) -> None:
        world = World()
        leader, follower, generation = world.stable_pair()
        world.commit(5, leader, generation)
        again = World(world.log)
        assert again.state() == "Stable"
        assert again.heartbeat(follower, generation) == NONE
        assert again.sync(follower, generation)[0].assignment == b"b"
        assert again.coordinator.fetch_offsets("g")[TP].offset == 5

    def test_restored_members_expire_without_heartbeat(self) -> None:
        world = World()
        world.stable_pair()
        again = World(world.log)
        again.pass_time(41_000)
        assert again.state() == "Empty"

    def test_load_applies_only_last_record_of_each_key(self) -> None:
        world = World()
        world.commit(5)
        partition = partition_for("g", world.log.partition_count)
        (key, value) = world.log.records[partition][-1]
        world.log.records[partition] = [(key, b"\x7f\xff unreadable"), (key, None), (key, value)]
        assert World(world.log).coordinator.fetch_offsets("g")[TP].offset == 5
        world.log.records[partition].append((key, None))
        assert World(world.log).coordinator.fetch_offsets("g") == {}

    def test_deleted_group_is_not_restored(self) -> None:
        world = World()
        world.commit(5)
        assert world.delete_group("g") is None
        again = World(world.log)
        assert again.coordinator.fetch_offsets("g") == {}
        assert isinstance(again.delete_group("g"), e.GroupIdNotFoundError)

    def test_requests_fail_until_log_is_loaded(self) -> None:
        coordinator = GroupCoordinator(GroupConfig(), MemoryLog(), VirtualHome().runtime)
        with pytest.raises(e.CoordinatorLoadInProgressError):
            coordinator.list_groups()


def test_failed_generation_write_restarts_rebalance() -> None:
    world = World()
    joined = world.join()[0]
    world.log.failure = e.NotCoordinatorError("disk full")
    synced = world.sync(joined.member_id, 1, {joined.member_id: b"all"})
    assert synced[0].error_code == code_of(e.NotCoordinatorError)
    world.log.failure = None
    again = world.join(joined.member_id)[0]
    assert again.generation_id == 2


def test_list_and_delete_groups() -> None:
    world = World()
    world.stable_pair()
    world.join(group_id="h")
    listed = {g.group_id: g.group_state for g in world.coordinator.list_groups()}
    assert listed == {"g": "Stable", "h": "CompletingRebalance"}
    assert [g.group_id for g in world.coordinator.list_groups(["stable"])] == ["g"]
    assert world.coordinator.list_groups(types=["consumer"]) == []
    assert len(world.coordinator.list_groups(types=["Classic"])) == 2
    assert isinstance(world.delete_group("g"), e.GroupNotEmptyError)


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("g", 3), ("console-consumer-1234", 9), ("gruppe-ä", 48), ("gruppe-\U0001f600", 37)],
)
def test_partition_of_group_matches_java(group_id: str, partition: int) -> None:
    # Reference: Utils.abs(groupId.hashCode()) % 50, computed by a JVM.
    assert partition_for(group_id, 50) == partition


def test_unused_groups_are_removed() -> None:
    world = World(offsets_retention_check_ms=1_000)
    world.join(group_id="refused", protocols=[])
    world.stable_pair()
    for member in [m.member_id for m in world.coordinator.describe_group("g").members]:
        world.leave(MemberIdentity(member_id=member))
    world.join(group_id="alive")
    world.join(group_id="promised", version=4)
    # The group whose only member was rejected was not created.
    assert {g.group_id for g in world.coordinator.list_groups()} == {"g", "alive", "promised"}
    world.pass_time(1_100)
    assert {g.group_id for g in world.coordinator.list_groups()} == {"alive", "promised"}
    again = World(world.log)
    assert "g" not in {g.group_id for g in again.coordinator.list_groups()}


def test_empty_group_with_offsets_is_retained() -> None:
    world = World(offsets_retention_check_ms=1_000)
    leader, follower, generation = world.stable_pair()
    world.commit(5, leader, generation)
    world.leave(MemberIdentity(member_id=leader), MemberIdentity(member_id=follower))
    world.pass_time(5_000)
    assert world.state() == "Empty"


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
