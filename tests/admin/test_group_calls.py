"""Admin calls for groups: brokers that are asked, versions, and errors by group."""

from typing import Any

import pytest

from kclient.admin import group_calls
from kclient.admin.admin_types import GroupListing
from kclient.common.broker_errors import (
    GroupNotEmptyError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.group_membership import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kclient.protocol.messages.groups import (
    DeletableGroupResult,
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


def test_groups_after_one_that_is_not_deleted_are_deleted() -> None:
    world = AdminWorld()
    deleted: list[str] = []

    def delete(_: ScriptedBroker, request: Request) -> Response:
        (name,) = request.groups_names  # type: ignore[attr-defined]  # a DeleteGroupsRequest
        deleted.append(name)
        code = 68 if name == "used" else 0
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name, error_code=code)])

    world.respond(ApiKey.DELETE_GROUPS, delete, high=2)
    world.coordinate("used", 1)
    world.coordinate("free", 1)
    with pytest.raises(GroupNotEmptyError, match="group 'used'"):
        world.run(
            group_calls.delete_consumer_groups, ["used", "free"]
        ).raise_for_errors().raise_for_errors()
    assert deleted == ["used", "free"]


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
