"""Calls about consumer groups and their positions."""

from collections.abc import Iterable, Sequence

from kclient.admin.admin_types import (
    ConsumerGroupDescription,
    GroupListing,
    MemberDescription,
)
from kclient.admin.cluster_calls import describe_cluster
from kclient.admin.outcomes import item_error, raise_failures
from kclient.admin.requester import Requester
from kclient.client.request_builder import SimpleBuilder
from kclient.common.broker_errors import (
    GroupIdNotFoundError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.errors import KafkaError
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

Positions = dict[TopicPartition, OffsetAndMetadata]

_STATES_FILTER = 4
_DEAD = "Dead"


def list_groups(ask: Requester, states: Sequence[str], deadline_ms: float) -> list[GroupListing]:
    """List the groups of every broker."""
    found: dict[str, GroupListing] = {}
    for node in describe_cluster(ask, deadline_ms).nodes:
        for group in _groups_of(ask, node, states, deadline_ms):
            found[group.group_id] = group
    return list(found.values())


def _groups_of(
    ask: Requester, node: Node, states: Sequence[str], deadline_ms: float
) -> list[GroupListing]:
    """List the groups that a broker is in charge of."""
    request = ListGroupsRequest(states_filter=list(states))
    builder = SimpleBuilder(request, oldest=_STATES_FILTER if states else None)

    def read(answer: ListGroupsResponse) -> list[GroupListing]:
        error = error_for_code(answer.error_code)
        if error is not None:
            raise error
        return [
            GroupListing(
                group.group_id,
                group.protocol_type,
                group.group_state or None,
                group.group_type.lower() or None,
            )
            for group in answer.groups
        ]

    return ask.ask_node(node, builder, ListGroupsResponse, read, deadline_ms)


def describe_groups(
    ask: Requester, group_ids: Iterable[str], deadline_ms: float
) -> dict[str, ConsumerGroupDescription]:
    """Describe groups by name."""
    return {group_id: _describe_group(ask, group_id, deadline_ms) for group_id in group_ids}


def _describe_group(ask: Requester, group_id: str, deadline_ms: float) -> ConsumerGroupDescription:
    def read(node: Node, answer: DescribeGroupsResponse) -> ConsumerGroupDescription:
        group = next(group for group in answer.groups if group.group_id == group_id)
        error = item_error(f"group {group_id!r}", group.error_code, group.error_message)
        if error is not None and not isinstance(error, GroupIdNotFoundError):
            raise error
        return ConsumerGroupDescription(
            group_id=group_id,
            state=group.group_state,
            partition_assignor=group.protocol_data,
            coordinator=node,
            members=tuple(_member(group, member) for member in group.members),
        )

    builder = SimpleBuilder(DescribeGroupsRequest(groups=[group_id]))
    described = ask.ask_coordinator(group_id, builder, DescribeGroupsResponse, read, deadline_ms)
    if described.state == _DEAD:
        _refuse_other_type(ask, described, deadline_ms)
    return described


def _refuse_other_type(
    ask: Requester, described: ConsumerGroupDescription, deadline_ms: float
) -> None:
    """Raise if a group is not dead at all, but of a type that DescribeGroups does not know."""
    for group in _groups_of(ask, described.coordinator, (), deadline_ms):
        if group.group_id == described.group_id and group.group_type not in {None, "classic"}:
            raise UnsupportedVersionError(
                f"group {group.group_id!r}: it is of type {group.group_type!r}, of which this "
                "version can list the state and the offsets but not the members"
            )


def _member(group: DescribedGroup, member: DescribedGroupMember) -> MemberDescription:
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


def delete_groups(ask: Requester, group_ids: Iterable[str], deadline_ms: float) -> None:
    """Delete groups that have no members."""
    failures: dict[str, KafkaError] = {}
    for group_id in group_ids:
        try:
            _delete_group(ask, group_id, deadline_ms)
        except KafkaError as error:
            failures[group_id] = error
    raise_failures(failures)


def _delete_group(ask: Requester, group_id: str, deadline_ms: float) -> None:
    def read(_: Node, answer: DeleteGroupsResponse) -> None:
        for result in answer.results:
            error = item_error(
                f"group {result.group_id!r}", result.error_code, result.error_message
            )
            if error is not None:
                raise error

    builder = SimpleBuilder(DeleteGroupsRequest(groups_names=[group_id]))
    ask.ask_coordinator(group_id, builder, DeleteGroupsResponse, read, deadline_ms)


def list_offsets(
    ask: Requester,
    group_id: str,
    partitions: Sequence[TopicPartition] | None,
    deadline_ms: float,
) -> Positions:
    """Return a group's committed positions; partitions without one are left out."""

    def read(_: Node, answer: OffsetFetchResponse) -> Positions:
        return _positions(answer, group_id)

    return ask.ask_coordinator(
        group_id, _OffsetFetch(group_id, partitions), OffsetFetchResponse, read, deadline_ms
    )


class _OffsetFetch:
    """Asks for one group: in fields of the request up to version 7, in a list from 8 on.

    Version 10 wants topic ids, which a caller who names topics may not have; 9 is enough.
    """

    api_key = ApiKey.OFFSET_FETCH
    request_type = OffsetFetchRequest
    oldest_allowed_version = 2
    latest_allowed_version = 9

    def __init__(self, group_id: str, partitions: Sequence[TopicPartition] | None) -> None:
        self._group_id = group_id
        self._wanted: dict[str, list[int]] | None = None
        if partitions is not None:
            self._wanted = {}
            for partition in partitions:
                self._wanted.setdefault(partition.topic, []).append(partition.partition)

    def build(self, version: int) -> OffsetFetchRequest:
        """Return the request as it stands in a version."""
        wanted = None if self._wanted is None else self._wanted.items()
        if version >= 8:
            topics = (
                None
                if wanted is None
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in wanted
                ]
            )
            group = OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
            return OffsetFetchRequest(groups=[group])
        old = (
            None
            if wanted is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in wanted
            ]
        )
        return OffsetFetchRequest(group_id=self._group_id, topics=old)


def _positions(answer: OffsetFetchResponse, group_id: str) -> Positions:
    error = error_for_code(answer.error_code)
    found: list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]] = [
        (topic.name, partition) for topic in answer.topics for partition in topic.partitions
    ]
    for group in answer.groups:
        error = error or error_for_code(group.error_code)
        found += [(topic.name, part) for topic in group.topics for part in topic.partitions]
    if error is not None:
        raise error
    positions: Positions = {}
    for name, partition in found:
        problem = item_error(f"group {group_id!r}, {name}", partition.error_code, None)
        if problem is not None:
            raise problem
        if partition.committed_offset >= 0:
            positions[TopicPartition(name, partition.partition_index)] = OffsetAndMetadata(
                partition.committed_offset,
                partition.metadata or "",
                partition.committed_leader_epoch,
            )
    return positions
