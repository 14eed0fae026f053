"""The classic group protocol against one coordinator, in virtual time."""

import pytest

from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.group.group_records import partition_for
from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE
from kclient.protocol.messages.group_membership import (
    MemberIdentity,
)
from tests.support.virtual.group_world import TP, MemoryLog, World
from tests.support.virtual.virtual_home import VirtualHome


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
