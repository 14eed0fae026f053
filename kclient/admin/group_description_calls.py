"""Admin calls that describe groups of consumers and their members."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from kclient.admin.admin_types import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    MemberDescription,
)
from kclient.admin.arguments import check_group_ids
from kclient.admin.requester import Requester, raise_error, raise_item_error
from kclient.admin.results import Results, one_by_one, raising_if_single
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import GroupIdNotFoundError, UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages import consumer_group_describe as described
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

T = TypeVar("T")


class _OfGroup(Protocol):
    """Part of a response about one group."""

    group_id: str


G = TypeVar("G", bound=_OfGroup)

_DEAD = "Dead"
_UPGRADED = {0: False, 1: True}


def describe_consumer_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, ConsumerGroupDescription]]:
    """Describe groups of the types "consumer" and "classic" by name.

    A group that does not exist is in state "Dead". The coordinator is asked by
    ConsumerGroupDescribe (KIP-848); if it has no such group of type "consumer", or is too old, by
    DescribeGroups.

    Returns:
        Description or error by group id.

    Raises:
        GroupIdNotFoundError: A group has another type, such as "share"; the error of this group.
        GroupAuthorizationError: Not authorized to describe a group; the error of this group.
        TopicAuthorizationError: Not authorized to describe a topic of a group of type "consumer";
            the error of this group.
    """
    steps = describe_each(
        requester, "describe_consumer_groups", group_ids, timeout, describe_consumer_group
    )
    return raising_if_single(steps, group_ids, str)


def describe_classic_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, ClassicGroupDescription]]:
    """Describe groups of type "classic" by name, of consumers and others (KIP-1043).

    Returns:
        Description or error by group id.

    Raises:
        GroupIdNotFoundError: There is no such group of type "classic"; the error of this group.
        GroupAuthorizationError: Not authorized to describe a group; the error of this group.
    """
    steps = describe_each(
        requester, "describe_classic_groups", group_ids, timeout, _describe_existing_classic
    )
    return raising_if_single(steps, group_ids, str)


def describe_each(
    requester: Requester,
    call: str,
    group_ids: str | Iterable[str],
    timeout: float | None,
    describe: Callable[[Requester, str], Steps[T]],
) -> Steps[Results[str, T]]:
    """Describe groups one by one, for a call of this name; `describe` describes one."""
    wanted = check_group_ids(group_ids)
    requester.limit(timeout)

    def ask() -> Steps[Results[str, T]]:
        outcomes = yield from one_by_one(wanted, lambda each: describe(requester, each))
        return Results(call, outcomes)

    return ask()


def group_of(groups: Iterable[G], group_id: str) -> G:
    """Return the part of a response about a group.

    Raises:
        ProtocolError: The response has none.
    """
    for group in groups:
        if group.group_id == group_id:
            return group
    raise ProtocolError(f"group {group_id!r}: it is missing in the response")


def describe_consumer_group(requester: Requester, group_id: str) -> Steps[ConsumerGroupDescription]:
    """Describe one group; see `describe_consumer_groups`."""
    try:
        return (yield from _describe_new(requester, group_id))
    except (GroupIdNotFoundError, UnsupportedVersionError):
        group = yield from _describe_classic(requester, group_id)
    if group.state == _DEAD:
        yield from _raise_if_other_type(requester, group)
    return ConsumerGroupDescription(
        group_id=group_id,
        state=group.state,
        partition_assignor=group.protocol_data,
        coordinator=group.coordinator,
        members=group.members,
    )


def _describe_new(requester: Requester, group_id: str) -> Steps[ConsumerGroupDescription]:
    """Describe a group of type "consumer"."""

    def read(
        node: Node, response: described.ConsumerGroupDescribeResponse
    ) -> ConsumerGroupDescription:
        group = group_of(response.groups, group_id)
        raise_item_error(f"group {group_id!r}", group.error_code, group.error_message)
        return ConsumerGroupDescription(
            group_id=group_id,
            state=group.group_state,
            partition_assignor=group.assignor_name,
            coordinator=node,
            members=tuple(_new_member(member) for member in group.members),
            group_type="consumer",
            group_epoch=group.group_epoch,
            target_assignment_epoch=group.assignment_epoch,
        )

    builder = SimpleBuilder(described.ConsumerGroupDescribeRequest(group_ids=[group_id]))
    return requester.send_to_coordinator(
        group_id, builder, described.ConsumerGroupDescribeResponse, read
    )


def _new_member(member: described.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        target_assignment=_partitions(member.target_assignment),
        member_epoch=member.member_epoch,
        upgraded=_UPGRADED.get(member.member_type),
        rack_id=member.rack_id,
        subscribed_topic_names=tuple(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
    )


def _partitions(assignment: described.Assignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _describe_existing_classic(
    requester: Requester, group_id: str
) -> Steps[ClassicGroupDescription]:
    group = yield from _describe_classic(requester, group_id)
    if group.state == _DEAD:
        # Before version 6 of DescribeGroups the coordinator does not report this as an error.
        raise GroupIdNotFoundError(
            f"group {group_id!r}: GROUP_ID_NOT_FOUND: there is no such group of type 'classic'"
        )
    return group


def _describe_classic(requester: Requester, group_id: str) -> Steps[ClassicGroupDescription]:
    """Describe a group of type "classic"; one that does not exist is in state "Dead"."""

    def read(node: Node, response: DescribeGroupsResponse) -> ClassicGroupDescription:
        group = group_of(response.groups, group_id)
        if group.error_code != GroupIdNotFoundError.code:
            raise_item_error(f"group {group_id!r}", group.error_code, group.error_message)
        return ClassicGroupDescription(
            group_id=group_id,
            protocol=group.protocol_type,
            protocol_data=group.protocol_data,
            state=group.group_state,
            coordinator=node,
            members=tuple(_classic_member(group, member) for member in group.members),
        )

    builder = SimpleBuilder(DescribeGroupsRequest(groups=[group_id]))
    return requester.send_to_coordinator(group_id, builder, DescribeGroupsResponse, read)


def _classic_member(group: DescribedGroup, member: DescribedGroupMember) -> MemberDescription:
    assigned: frozenset[TopicPartition] = frozenset()
    if member.member_assignment and group.protocol_type in {"consumer", ""}:
        assignment = ConsumerProtocolAssignment.decode_versioned(member.member_assignment)
        assigned = frozenset(
            TopicPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        )
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=assigned,
    )


def _raise_if_other_type(requester: Requester, dead: ClassicGroupDescription) -> Steps[None]:
    """Raise if a group reported as dead exists with a type that has a call of its own."""

    def read(response: ListGroupsResponse) -> dict[str, str]:
        raise_error(response.error_code)
        return {group.group_id: group.group_type.lower() for group in response.groups}

    builder = SimpleBuilder(ListGroupsRequest())
    types = yield from requester.send_to_node(dead.coordinator, builder, ListGroupsResponse, read)
    kind = types.get(dead.group_id, "")
    if kind not in {"", "classic"}:
        raise GroupIdNotFoundError(
            f"group {dead.group_id!r}: GROUP_ID_NOT_FOUND: its type is {kind!r}; use "
            f"describe_{kind}_groups()"
        )
