"""Admin calls that describe groups of consumers and their members."""

from collections.abc import Iterable

from kclient.admin.admin_types import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    MemberDescription,
)
from kclient.admin.coordinator_requests import call_for_groups, read_each
from kclient.admin.requester import Requester, raise_item_error
from kclient.admin.results import Outcomes, Results
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import (
    GroupIdNotFoundError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.errors import KafkaError
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
    return call_for_groups(requester, "describe_consumer_groups", group_ids, timeout, _describe)


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
    return call_for_groups(
        requester, "describe_classic_groups", group_ids, timeout, _describe_existing_classic
    )


def _describe(
    requester: Requester, node: Node, group_ids: list[str]
) -> Steps[Outcomes[str, ConsumerGroupDescription]]:
    """Describe the groups of a coordinator; see `describe_consumer_groups`."""
    outcomes = yield from _describe_new(requester, node, group_ids)
    others = [
        group_id
        for group_id, outcome in outcomes.items()
        if isinstance(outcome, GroupIdNotFoundError | UnsupportedVersionError)
    ]
    if others:
        classic = yield from _describe_classic(requester, node, others)
        errors = yield from _errors_of_other_types(requester, node, classic)
        outcomes |= {
            group_id: errors.get(group_id) or _as_consumer_group(outcome)
            for group_id, outcome in classic.items()
        }
    return outcomes


def _as_consumer_group(
    group: ClassicGroupDescription | KafkaError,
) -> ConsumerGroupDescription | KafkaError:
    if isinstance(group, KafkaError):
        return group
    return ConsumerGroupDescription(
        group_id=group.group_id,
        state=group.state,
        partition_assignor=group.protocol_data,
        coordinator=group.coordinator,
        members=group.members,
    )


def _describe_new(
    requester: Requester, node: Node, group_ids: list[str]
) -> Steps[Outcomes[str, ConsumerGroupDescription]]:
    """Describe groups of type "consumer"."""

    def read(group: described.DescribedGroup) -> ConsumerGroupDescription:
        raise_item_error(f"group {group.group_id!r}", group.error_code, group.error_message)
        return ConsumerGroupDescription(
            group_id=group.group_id,
            state=group.group_state,
            partition_assignor=group.assignor_name,
            coordinator=node,
            members=tuple(_new_member(member) for member in group.members),
            group_type="consumer",
            group_epoch=group.group_epoch,
            target_assignment_epoch=group.assignment_epoch,
        )

    builder = SimpleBuilder(described.ConsumerGroupDescribeRequest(group_ids=group_ids))
    kind = described.ConsumerGroupDescribeResponse
    try:
        response = yield from requester.send_once(node, builder, kind)
    except UnsupportedVersionError as error:
        return dict.fromkeys(group_ids, error)
    return read_each("group", group_ids, {each.group_id: each for each in response.groups}, read)


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
    requester: Requester, node: Node, group_ids: list[str]
) -> Steps[Outcomes[str, ClassicGroupDescription]]:
    outcomes = yield from _describe_classic(requester, node, group_ids)
    for group_id, group in outcomes.items():
        if isinstance(group, ClassicGroupDescription) and group.state == _DEAD:
            # Before version 6 of DescribeGroups the coordinator does not report this as an error.
            outcomes[group_id] = GroupIdNotFoundError(
                f"group {group_id!r}: GROUP_ID_NOT_FOUND: there is no such group of type 'classic'"
            )
    return outcomes


def _describe_classic(
    requester: Requester, node: Node, group_ids: list[str]
) -> Steps[Outcomes[str, ClassicGroupDescription]]:
    """Describe groups of type "classic"; one that does not exist is in state "Dead"."""

    def read(group: DescribedGroup) -> ClassicGroupDescription:
        if group.error_code != GroupIdNotFoundError.code:
            raise_item_error(f"group {group.group_id!r}", group.error_code, group.error_message)
        return ClassicGroupDescription(
            group_id=group.group_id,
            protocol=group.protocol_type,
            protocol_data=group.protocol_data,
            state=group.group_state,
            coordinator=node,
            members=tuple(_classic_member(group, member) for member in group.members),
        )

    builder = SimpleBuilder(DescribeGroupsRequest(groups=group_ids))
    response = yield from requester.send_once(node, builder, DescribeGroupsResponse)
    return read_each("group", group_ids, {each.group_id: each for each in response.groups}, read)


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


def _errors_of_other_types(
    requester: Requester, node: Node, found: Outcomes[str, ClassicGroupDescription]
) -> Steps[dict[str, KafkaError]]:
    """Return an error for each group reported as dead that has a type with a call of its own."""
    dead = [
        group_id
        for group_id, group in found.items()
        if isinstance(group, ClassicGroupDescription) and group.state == _DEAD
    ]
    if not dead:
        return {}
    response = yield from requester.send_once(
        node, SimpleBuilder(ListGroupsRequest()), ListGroupsResponse
    )
    error = error_for_code(response.error_code)
    if error is not None:
        return dict.fromkeys(dead, error)
    types = {group.group_id: group.group_type.lower() for group in response.groups}
    return {
        group_id: GroupIdNotFoundError(
            f"group {group_id!r}: GROUP_ID_NOT_FOUND: its type is {kind!r}; use "
            f"describe_{kind}_groups()"
        )
        for group_id in dead
        if (kind := types.get(group_id, "")) not in {"", "classic"}
    }
