"""Admin calls for consumer groups and their members."""

from collections.abc import Iterable, Sequence

from kclient.admin.admin_types import GroupListing
from kclient.admin.arguments import (
    check_group_id,
    check_members,
    check_names,
)
from kclient.admin.cluster_arguments import check_text
from kclient.admin.cluster_calls import describe_cluster
from kclient.admin.coordinator_requests import call_for_groups, read_each
from kclient.admin.group_description_calls import describe_consumer_groups
from kclient.admin.requester import Requester, item_error, raise_error, raise_item_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.client.client_request import SimpleBuilder
from kclient.common.types import Node
from kclient.common.waiting import Steps
from kclient.protocol.messages.group_membership import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from kclient.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

_STATES_FILTER = 4
_TYPES_FILTER = 5
_MEMBERS_BY_INSTANCE = 3


def list_groups(
    requester: Requester,
    *,
    states: Iterable[str] = (),
    types: Iterable[str] = (),
    protocol_types: Iterable[str] = (),
    timeout: float | None = None,
) -> Steps[list[GroupListing]]:
    """List the groups of all coordinators (ListGroups, KIP-518, KIP-848).

    Args:
        states: List groups in these states only, such as ``"Stable"``; none for all.
        types: List groups of these types only: ``"classic"``, ``"consumer"``, ``"share"`` or
            ``"streams"``; none for all.
        protocol_types: List groups of these protocol types only: ``"consumer"``, ``"connect"``, or
            ``""`` for groups that only have committed offsets; none for all.
        timeout: Timeout in seconds.

    Raises:
        UnsupportedVersionError: A broker does not support a filter.
    """
    request = ListGroupsRequest(
        states_filter=check_names("states", states), types_filter=check_names("types", types)
    )
    protocols = check_names("protocol_types", protocol_types)
    requester.limit(timeout)
    return _list_groups(requester, request, protocols)


def _list_groups(
    requester: Requester, request: ListGroupsRequest, protocol_types: Sequence[str]
) -> Steps[list[GroupListing]]:
    found: dict[str, GroupListing] = {}
    cluster = yield from describe_cluster(requester)
    for node in cluster.nodes:
        for group in (yield from _groups_of(requester, node, request)):
            if not protocol_types or group.protocol_type in protocol_types:
                found[group.group_id] = group
    return list(found.values())


def _groups_of(
    requester: Requester, node: Node, request: ListGroupsRequest
) -> Steps[list[GroupListing]]:
    """List the groups of which a broker is the coordinator."""
    oldest = _STATES_FILTER if request.states_filter else 0
    if request.types_filter:
        oldest = _TYPES_FILTER

    def read(response: ListGroupsResponse) -> list[GroupListing]:
        raise_error(response.error_code)
        return [
            GroupListing(
                group.group_id,
                group.protocol_type,
                group.group_state or None,
                group.group_type.lower() or None,
            )
            for group in response.groups
        ]

    builder = SimpleBuilder(request, oldest=oldest)
    return requester.send_to_node(node, builder, ListGroupsResponse, read)


def delete_consumer_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, None]]:
    """Delete groups with their committed offsets.

    Returns:
        None or error by group id.

    Raises:
        GroupNotEmptyError: A group has members; the error of this group.
        GroupIdNotFoundError: There is no such group; the error of this group.
    """
    return call_for_groups(requester, "delete_consumer_groups", group_ids, timeout, delete_groups)


def delete_groups(
    requester: Requester, coordinator: Node, group_ids: list[str]
) -> Steps[Outcomes[str, None]]:
    """Delete groups of any type at their coordinator."""

    def read(result: DeletableGroupResult) -> None:
        raise_item_error(f"group {result.group_id!r}", result.error_code, result.error_message)

    builder = SimpleBuilder(DeleteGroupsRequest(groups_names=group_ids))
    response = yield from requester.send_once(coordinator, builder, DeleteGroupsResponse)
    return read_each("group", group_ids, {each.group_id: each for each in response.results}, read)


def remove_members_from_consumer_group(
    requester: Requester,
    group_id: str,
    members: str | Iterable[str] | None = None,
    *,
    reason: str | None = None,
    timeout: float | None = None,
) -> Steps[Results[str, None]]:
    """Remove members from a group, so that their partitions are assigned to other members.

    Args:
        group_id: Group.
        members: Group instance ids of static members; None for every member.
        reason: Reason, which the coordinator logs (KIP-800).
        timeout: Timeout in seconds.

    Returns:
        None or error by group instance id; of dynamic members by member id.

    Raises:
        UnknownMemberIdError: The group has no such member; the error of this member.
        GroupAuthorizationError: Not authorized to read the group.
    """
    check_group_id(group_id)
    instances = check_members(members)
    if reason is not None:
        check_text("reason", reason)
    requester.limit(timeout)
    steps = _remove_members(requester, group_id, instances, reason)
    return raising_if_single(steps, members, str)


def _remove_members(
    requester: Requester, group_id: str, instances: Sequence[str] | None, reason: str | None
) -> Steps[Results[str, None]]:
    if instances is None:
        described = (yield from describe_consumer_groups(requester, group_id))[group_id]
        leaving = [
            MemberIdentity(
                member_id="" if member.group_instance_id else member.member_id,
                group_instance_id=member.group_instance_id,
                reason=reason,
            )
            for member in described.members
        ]
    else:
        leaving = [
            MemberIdentity(member_id="", group_instance_id=instance, reason=reason)
            for instance in instances
        ]
    outcomes = (yield from _leave(requester, group_id, leaving)) if leaving else {}
    return Results("remove_members_from_consumer_group", outcomes)


def _leave(
    requester: Requester, group_id: str, members: list[MemberIdentity]
) -> Steps[Outcomes[str, None]]:
    def read(_: Node, response: LeaveGroupResponse) -> Outcomes[str, None]:
        raise_item_error(f"group {group_id!r}", response.error_code, None)
        outcomes: Outcomes[str, None] = {}
        for member in response.members:
            name = member.group_instance_id or member.member_id
            what = f"group {group_id!r}, member {name!r}"
            outcomes[name] = item_error(what, member.error_code, None)
        return outcomes

    request = LeaveGroupRequest(group_id=group_id, members=members)
    builder = SimpleBuilder(request, oldest=_MEMBERS_BY_INSTANCE)
    return requester.send_to_coordinator(group_id, builder, LeaveGroupResponse, read)
