"""The classic group protocol against one coordinator, in virtual time."""

import pytest

from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.runtime.partition_log import partition_for
from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE
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

    def test_requests_fail_until_start(self) -> None:
        coordinator = GroupCoordinator(GroupConfig(), MemoryLog(), VirtualHome().runtime)
        with pytest.raises(e.CoordinatorNotAvailableError):
            coordinator.list_groups()
