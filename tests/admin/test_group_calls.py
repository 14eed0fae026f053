"""Admin calls for groups: brokers that are asked, versions, and errors by group."""

from collections.abc import Callable
from typing import Any

import pytest

from kclient.admin import group_calls
from kclient.admin.admin_types import GroupListing
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    GroupNotEmptyError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kclient.common.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    KafkaTimeoutError,
    ProtocolError,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.group_membership import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kclient.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld


def listed(broker: ScriptedBroker, _: Request) -> Response:
    """List one group, which has the name of the broker."""
    name = f"group-{broker.node.id}"
    group = ListedGroup(
        group_id=name, protocol_type="consumer", group_state="Stable", group_type="Consumer"
    )
    return ListGroupsResponse(groups=[group])


def describing(world: AdminWorld, group: DescribedGroup) -> None:
    world.coordinate(group.group_id, 1)
    world.respond(ApiKey.DESCRIBE_GROUPS, lambda *_: DescribeGroupsResponse(groups=[group]), high=5)


def test_every_broker_lists_its_groups() -> None:
    world = AdminWorld(3)
    world.respond(ApiKey.LIST_GROUPS, listed, high=5)
    found = world.run(group_calls.list_groups)
    assert sorted(found) == [
        GroupListing(f"group-{number}", "consumer", "Stable", "consumer") for number in (1, 2, 3)
    ]


def test_old_broker_sends_neither_state_nor_type() -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_GROUPS, listed, high=3)
    found = world.run(group_calls.list_groups)
    assert found == [GroupListing("group-1", "consumer", None, None)]


def test_filter_of_states_needs_version_4() -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_GROUPS, listed, high=3)
    with pytest.raises(UnsupportedVersionError):
        world.run(group_calls.list_groups, states=["Empty"])
    assert world.requests(ListGroupsRequest) == []


def deleting(world: AdminWorld, code: Callable[[ScriptedBroker, str], int]) -> None:
    """Let coordinators respond to DeleteGroups with a code of each group."""

    def delete(broker: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DeleteGroupsRequest)
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=code(broker, name))
                for name in request.groups_names
            ]
        )

    world.respond(ApiKey.DELETE_GROUPS, delete, high=2)


def deletions(world: AdminWorld) -> list[list[str]]:
    """Return the groups of each DeleteGroups request, those of the first broker first."""
    return [
        each.groups_names
        for broker in world.brokers
        for each in broker.requests
        if isinstance(each, DeleteGroupsRequest)
    ]


def lookups(world: AdminWorld) -> list[FindCoordinatorRequest]:
    return [
        each
        for broker in world.brokers
        for each in broker.requests
        if isinstance(each, FindCoordinatorRequest)
    ]


def test_each_coordinator_is_asked_once_for_all_its_groups() -> None:
    world = AdminWorld(3)
    deleting(world, lambda _, name: 68 if name == "used" else 0)
    for name, number in {"a": 2, "used": 3, "b": 2, "c": 3}.items():
        world.coordinate(name, number)
    results = world.run(group_calls.delete_consumer_groups, ["a", "used", "b", "c", "a"])
    assert list(results) == ["a", "used", "b", "c"]
    with pytest.raises(GroupNotEmptyError, match="group 'used'"):
        results.raise_for_errors()
    assert deletions(world) == [["a", "b"], ["used", "c"]]
    assert [each.coordinator_keys for each in lookups(world)] == [["a", "used", "b", "c"]]


@pytest.mark.parametrize("code", [14, 15, 16])
def test_only_groups_of_a_moved_coordinator_are_asked_for_again(code: int) -> None:
    world = AdminWorld(2)

    def respond(broker: ScriptedBroker, name: str) -> int:
        if name != "moved" or broker is world.brokers[1]:
            return 0
        world.coordinate("moved", 2)
        return code

    deleting(world, respond)
    for name in ("moved", "here"):
        world.coordinate(name, 1)
    assert world.run(group_calls.delete_consumer_groups, ["moved", "here"]).errors == {}
    assert deletions(world) == [["moved", "here"], ["moved"]]
    assert [each.coordinator_keys for each in lookups(world)] == [["moved", "here"], ["moved"]]


def test_group_whose_coordinator_is_not_found_has_its_own_error() -> None:
    world = AdminWorld()
    deleting(world, lambda *_: 0)
    found = [
        Coordinator(key="denied", node_id=-1, port=-1, error_code=30),
        Coordinator(key="lost", node_id=-1, port=-1, error_code=15),
        Coordinator(key="g", node_id=1, host="10.0.0.1", port=9092),
    ]

    def coordinators(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, FindCoordinatorRequest)
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[one for one in found if one.key in keys])

    world.respond(ApiKey.FIND_COORDINATOR, coordinators, high=4)
    results = world.run(
        group_calls.delete_consumer_groups, ["denied", "lost", "g", "absent"], timeout=2.0
    )
    errors = results.errors
    assert {name: type(error) for name, error in errors.items()} == {
        "denied": GroupAuthorizationError,
        "lost": KafkaTimeoutError,
        "absent": ProtocolError,
    }
    assert str(errors["lost"]).startswith(
        "gave up retrying: group 'lost': COORDINATOR_NOT_AVAILABLE"
    )
    assert deletions(world) == [["g"]]


def test_old_broker_is_asked_for_the_coordinator_of_each_group() -> None:
    world = AdminWorld(2)
    deleting(world, lambda *_: 0)
    for name, number in {"a": 2, "b": 1, "c": 2}.items():
        world.coordinate(name, number, high=3)
    assert world.run(group_calls.delete_consumer_groups, ["a", "b", "c"]).errors == {}
    assert [each.key for each in lookups(world)] == ["a", "b", "c"]
    assert deletions(world) == [["b"], ["a", "c"]]


def test_groups_of_a_silent_coordinator_time_out_alone() -> None:
    world = AdminWorld(2)
    deleting(world, lambda *_: 0)
    world.coordinate("a", 1)
    world.coordinate("b", 2)
    world.brokers[1].silent = True
    results = world.run(group_calls.delete_consumer_groups, ["a", "b"], timeout=1.0)
    assert {name: type(error) for name, error in results.errors.items()} == {"b": KafkaTimeoutError}
    assert results["a"] is None


def test_groups_are_filtered_by_type_and_protocol() -> None:
    world = AdminWorld(2)
    world.respond(ApiKey.LIST_GROUPS, listed, high=5)
    found = world.run(
        group_calls.list_groups, types=["consumer"], protocol_types=["consumer"], states=["Stable"]
    )
    assert len(found) == 2
    assert world.run(group_calls.list_groups, protocol_types=["connect"]) == []
    request = world.requests(ListGroupsRequest)[0]
    assert isinstance(request, ListGroupsRequest)
    assert (request.types_filter, request.states_filter) == (["consumer"], ["Stable"])
    old = AdminWorld()
    old.respond(ApiKey.LIST_GROUPS, listed, high=4)
    with pytest.raises(UnsupportedVersionError):
        old.run(group_calls.list_groups, types=["consumer"])


def leaving(world: AdminWorld, *codes: int) -> None:
    """Let the coordinator of group g return these codes, one for each member."""

    def left(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, LeaveGroupRequest)
        members = [
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in zip(request.members, codes, strict=True)
        ]
        return LeaveGroupResponse(members=members)

    world.coordinate("g", 1)
    world.respond(ApiKey.LEAVE_GROUP, left, high=5)


def test_static_members_are_removed_by_instance_id() -> None:
    world = AdminWorld()
    leaving(world, 0, 25)
    found = world.run(
        group_calls.remove_members_from_consumer_group, "g", ["one", "two"], reason="moved"
    )
    assert found["one"] is None
    with pytest.raises(UnknownMemberIdError, match="group 'g', member 'two'"):
        _ = found["two"]
    (request,) = world.requests(LeaveGroupRequest)
    assert isinstance(request, LeaveGroupRequest)
    assert [(each.member_id, each.reason) for each in request.members] == [("", "moved")] * 2
    leaving(world, 25)
    with pytest.raises(UnknownMemberIdError, match="member 'two'"):
        world.run(group_calls.remove_members_from_consumer_group, "g", "two")


def test_every_member_is_removed() -> None:
    world = AdminWorld()
    members = [
        DescribedGroupMember(member_id="m-1"),
        DescribedGroupMember(member_id="m-2", group_instance_id="two"),
    ]
    describing(
        world,
        DescribedGroup(
            group_id="g", group_state="Stable", protocol_type="consumer", members=members
        ),
    )
    leaving(world, 0, 0)
    assert world.run(group_calls.remove_members_from_consumer_group, "g") == {
        "m-1": None,
        "two": None,
    }
    (request,) = world.requests(LeaveGroupRequest)
    assert isinstance(request, LeaveGroupRequest)
    assert [(each.member_id, each.group_instance_id) for each in request.members] == [
        ("m-1", None),
        ("", "two"),
    ]


def test_group_without_members_has_none_to_remove() -> None:
    world = AdminWorld()
    describing(world, DescribedGroup(group_id="g", group_state="Empty"))
    assert world.run(group_calls.remove_members_from_consumer_group, "g") == {}


@pytest.mark.parametrize("members", [[], "", [""], [1], {"a": 1}.values()])
def test_wrong_members_are_refused(members: Any) -> None:
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match="members: got"):
        AdminWorld().run(group_calls.remove_members_from_consumer_group, "g", members)
