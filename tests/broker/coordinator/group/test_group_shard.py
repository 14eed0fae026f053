"""Groups of one shard: creation, removal, administration."""

from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.types import TopicPartition
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kclient.protocol.messages.group_membership import (
    MemberIdentity,
)
from tests.support.virtual.group_world import TP, World


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


def test_unknown_group_is_described_as_dead() -> None:
    found = World().coordinator.describe_group("missing")
    assert (found.group_state, found.error_code) == ("Dead", code_of(e.GroupIdNotFoundError))
    assert found.error_message == "Group missing not found."


def test_empty_group_is_deleted_with_its_offsets() -> None:
    world = World()
    leader, follower, generation = world.stable_pair()
    world.commit(5, leader, generation)
    world.leave(MemberIdentity(member_id=leader), MemberIdentity(member_id=follower))
    assert world.delete_group("g") is None
    assert world.coordinator.list_groups() == []
    assert world.coordinator.fetch_offsets("g") == {}
    assert World(world.log).coordinator.list_groups() == []


def test_failed_deletion_keeps_the_group() -> None:
    world = World()
    world.commit(5)
    world.log.failure = e.NotCoordinatorError("leader moved")
    assert isinstance(world.delete_group("g"), e.NotCoordinatorError)
    assert world.coordinator.fetch_offsets("g")[TP].offset == 5
    world.log.failure = None
    assert world.delete_group("g") is None


def test_failed_deletion_keeps_a_group_without_offsets() -> None:
    world = World()
    leader, follower, _ = world.stable_pair()
    world.leave(MemberIdentity(member_id=leader), MemberIdentity(member_id=follower))
    world.log.failure = e.NotCoordinatorError("leader moved")
    assert isinstance(world.delete_group("g"), e.NotCoordinatorError)
    assert world.state() == "Empty"


def test_commit_of_a_generation_needs_a_group() -> None:
    world = World()
    assert world.commit(5, "member", 1) == code_of(e.IllegalGenerationError)
    assert world.coordinator.list_groups() == []
    assert world.commit(5) == NONE
    assert [each.group_state for each in world.coordinator.list_groups()] == ["Empty"]


def test_requests_of_members_fail_without_a_group() -> None:
    world = World()
    unknown = code_of(e.UnknownMemberIdError)
    assert world.join("member")[0].error_code == unknown
    assert world.sync("member", 1)[0].error_code == unknown
    assert world.heartbeat("member", 1) == unknown
    assert world.coordinator.list_groups() == []


def test_offsets_of_topics_without_consumers_are_deleted() -> None:
    world = World()
    world.commit(5)
    other = TopicPartition("other", 0)
    assert world.delete_offsets("g", TP, other) == {TP: NONE, other: NONE}
    assert world.coordinator.fetch_offsets("g") == {}
    metadata = ConsumerProtocolSubscription(topics=[TP.topic]).encode_versioned(0)
    world.join(group_id="h", metadata=metadata)
    subscribed = code_of(e.GroupSubscribedToTopicError)
    assert world.delete_offsets("h", TP, other) == {TP: subscribed, other: NONE}
    world.join(group_id="i", metadata=b"")
    assert world.delete_offsets("i", other) == {other: subscribed}
    world.join(group_id="j", protocol_type="connect")
    assert isinstance(world.delete_offsets("j", TP), e.GroupNotEmptyError)
    assert isinstance(world.delete_offsets("missing", TP), e.GroupIdNotFoundError)


def test_failed_deletion_of_offsets_keeps_them() -> None:
    world = World()
    world.commit(5)
    world.log.failure = e.NotCoordinatorError("leader moved")
    assert isinstance(world.delete_offsets("g", TP), e.NotCoordinatorError)
    assert world.coordinator.fetch_offsets("g")[TP].offset == 5


def test_deleted_topics_take_their_offsets_along() -> None:
    world = World(offsets_retention_check_ms=1_000)
    world.commit(5)
    world.coordinator.on_topics_deleted({"other"})
    assert world.coordinator.fetch_offsets("g")[TP].offset == 5
    world.coordinator.on_topics_deleted({TP.topic})
    assert world.coordinator.fetch_offsets("g") == {}
    assert [each.group_state for each in world.coordinator.list_groups()] == ["Empty"]
    assert World(world.log).coordinator.list_groups() == []
    world.pass_time(1_100)
    assert world.coordinator.list_groups() == []
