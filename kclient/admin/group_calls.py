"""Admin calls for consumer groups and their committed offsets."""

from collections.abc import Iterable, Sequence

from kclient.admin.admin_types import (
    ConsumerGroupDescription,
    GroupListing,
    MemberDescription,
)
from kclient.admin.arguments import (
    check_group_id,
    check_group_ids,
    check_partitions,
    check_states,
)
from kclient.admin.cluster_calls import describe_cluster
from kclient.admin.replica_calls import by_topic
from kclient.admin.requester import (
    Requester,
    item_error,
    item_errors,
    raise_error,
    raise_failures,
    raise_item_error,
    raising,
)
from kclient.client.client_request import RequestBuilder, SimpleBuilder
from kclient.common.broker_errors import (
    GroupIdNotFoundError,
    UnsupportedVersionError,
    error_for_code,
)
from kclient.common.errors import KafkaError
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

CommittedOffsets = dict[TopicPartition, OffsetAndMetadata]

_STATES_FILTER = 4
_DEAD = "Dead"


def list_groups(
    requester: Requester, *, states: Iterable[str] = (), timeout: float | None = None
) -> Steps[list[GroupListing]]:
    """List the groups, all of them or those in the given states, such as "Stable"."""
    wanted = check_states(states)
    requester.limit(timeout)
    return _list_groups(requester, wanted)


def _list_groups(requester: Requester, states: Sequence[str]) -> Steps[list[GroupListing]]:
    found: dict[str, GroupListing] = {}
    cluster = yield from describe_cluster(requester)
    for node in cluster.nodes:
        for group in (yield from _groups_of(requester, node, states)):
            found[group.group_id] = group
    return list(found.values())


def _groups_of(
    requester: Requester, node: Node, states: Sequence[str]
) -> Steps[list[GroupListing]]:
    """List the groups of which a broker is the coordinator."""
    request = ListGroupsRequest(states_filter=list(states))
    builder = SimpleBuilder(request, oldest=_STATES_FILTER if states else None)

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

    return requester.send_to_node(node, builder, ListGroupsResponse, read)


def describe_consumer_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[dict[str, ConsumerGroupDescription]]:
    """Describe groups by name; a group that does not exist is in state "Dead".

    Raises:
        UnsupportedVersionError: A group is not of type "classic", see `list_groups`.
    """
    wanted = check_group_ids(group_ids)
    requester.limit(timeout)
    return _describe_groups(requester, wanted)


def _describe_groups(
    requester: Requester, group_ids: Iterable[str]
) -> Steps[dict[str, ConsumerGroupDescription]]:
    described = {}
    for group_id in group_ids:
        described[group_id] = yield from _describe_group(requester, group_id)
    return described


def _describe_group(requester: Requester, group_id: str) -> Steps[ConsumerGroupDescription]:
    def read(node: Node, response: DescribeGroupsResponse) -> ConsumerGroupDescription:
        group = next(group for group in response.groups if group.group_id == group_id)
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
    described = yield from requester.send_to_coordinator(
        group_id, builder, DescribeGroupsResponse, read
    )
    if described.state == _DEAD:
        yield from _raise_if_other_type(requester, described)
    return described


def _raise_if_other_type(requester: Requester, described: ConsumerGroupDescription) -> Steps[None]:
    """Raise if a group reported as dead exists with a type DescribeGroups does not support."""
    for group in (yield from _groups_of(requester, described.coordinator, ())):
        if group.group_id == described.group_id and group.group_type not in {None, "classic"}:
            raise UnsupportedVersionError(
                f"group {group.group_id!r}: its type is {group.group_type!r}; this version can "
                "list its state and its offsets, but not its members"
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


def delete_consumer_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[None]:
    """Delete groups with their committed offsets.

    Raises:
        GroupNotEmptyError: A group has members.
        GroupIdNotFoundError: There is no such group.
    """
    wanted = check_group_ids(group_ids)
    requester.limit(timeout)
    return _delete_groups(requester, wanted)


def _delete_groups(requester: Requester, group_ids: Iterable[str]) -> Steps[None]:
    failures: dict[str, KafkaError] = {}
    for group_id in group_ids:
        try:
            yield from _delete_group(requester, group_id)
        except KafkaError as error:
            failures[group_id] = error
    raise_failures(failures)


def _delete_group(requester: Requester, group_id: str) -> Steps[None]:
    def read(_: Node, response: DeleteGroupsResponse) -> None:
        for result in response.results:
            raise_item_error(f"group {result.group_id!r}", result.error_code, result.error_message)

    builder = SimpleBuilder(DeleteGroupsRequest(groups_names=[group_id]))
    return requester.send_to_coordinator(group_id, builder, DeleteGroupsResponse, read)


def delete_consumer_group_offsets(
    requester: Requester,
    group_id: str,
    partitions: TopicPartition | Iterable[TopicPartition],
    *,
    timeout: float | None = None,
) -> Steps[None]:
    """Delete a group's committed offsets of partitions (OffsetDelete, KIP-496).

    Raises:
        GroupSubscribedToTopicError: A member of the group is subscribed to a topic.
        GroupIdNotFoundError: There is no such group.
    """
    check_group_id(group_id)
    wanted = check_partitions(partitions)
    requester.limit(timeout)
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in numbers],
            )
            for name, numbers in by_topic(wanted).items()
        ],
    )

    def read(_: Node, response: OffsetDeleteResponse) -> dict[str, KafkaError]:
        raise_item_error(f"group {group_id!r}", response.error_code, None)
        return item_errors(
            (f"group {group_id!r}, {topic.name}-{part.partition_index}", part.error_code, None)
            for topic in response.topics
            for part in topic.partitions
        )

    return raising(
        requester.send_to_coordinator(group_id, SimpleBuilder(request), OffsetDeleteResponse, read)
    )


def list_consumer_group_offsets(
    requester: Requester,
    group_id: str,
    partitions: TopicPartition | Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
    timeout: float | None = None,
) -> Steps[dict[TopicPartition, OffsetAndMetadata]]:
    """Return a group's committed offsets, for all partitions or for the given ones.

    Partitions without a committed offset are omitted. With `require_stable`, the call waits for
    the end of open transactions that have sent offsets of the group (KIP-447); it needs Kafka 2.5.
    """
    check_group_id(group_id)
    wanted = None if partitions is None else check_partitions(partitions)
    requester.limit(timeout)

    def read(_: Node, response: OffsetFetchResponse) -> CommittedOffsets:
        return _committed_offsets(response, group_id)

    return requester.send_to_coordinator(
        group_id,
        _OffsetFetch(group_id, wanted, require_stable=require_stable),
        OffsetFetchResponse,
        read,
    )


class _OffsetFetch(RequestBuilder):
    """Builder of an OffsetFetch request for one group.

    Up to version 7 the group is in fields of the request, from 8 on in a list. Version 10 requires
    topic ids, which are not known here, so version 9 is the highest used.
    """

    api_key = ApiKey.OFFSET_FETCH
    request_type = OffsetFetchRequest
    latest_allowed_version = 9

    def __init__(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> None:
        self._group_id = group_id
        self._stable = require_stable
        self.oldest_allowed_version = 7 if require_stable else 2
        self._wanted: dict[str, list[int]] | None = None
        if partitions is not None:
            self._wanted = {}
            for partition in partitions:
                self._wanted.setdefault(partition.topic, []).append(partition.partition)

    def build(self, version: int) -> OffsetFetchRequest:
        """Build the request for a version."""
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
            return OffsetFetchRequest(groups=[group], require_stable=self._stable)
        old = (
            None
            if wanted is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in wanted
            ]
        )
        return OffsetFetchRequest(group_id=self._group_id, topics=old, require_stable=self._stable)


def _committed_offsets(response: OffsetFetchResponse, group_id: str) -> CommittedOffsets:
    error = error_for_code(response.error_code)
    found: list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]] = [
        (topic.name, partition) for topic in response.topics for partition in topic.partitions
    ]
    for group in response.groups:
        error = error or error_for_code(group.error_code)
        found += [(topic.name, part) for topic in group.topics for part in topic.partitions]
    if error is not None:
        raise error
    offsets: CommittedOffsets = {}
    for name, partition in found:
        error_of_item = item_error(f"group {group_id!r}, {name}", partition.error_code, None)
        if error_of_item is not None:
            raise error_of_item
        if partition.committed_offset >= 0:
            offsets[TopicPartition(name, partition.partition_index)] = OffsetAndMetadata(
                partition.committed_offset,
                partition.metadata or "",
                partition.committed_leader_epoch,
            )
    return offsets
