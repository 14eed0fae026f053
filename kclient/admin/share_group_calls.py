"""Admin calls for share groups and their offsets."""

from collections.abc import Iterable, Mapping, Sequence

from kclient.admin.arguments import (
    check_group_id,
    check_partitions,
    check_start_offsets,
    check_topic_names,
)
from kclient.admin.coordinator_requests import call_for_groups, part_of, read_each
from kclient.admin.group_calls import delete_groups
from kclient.admin.leader_requests import by_topic
from kclient.admin.requester import Requester, final_item_error, item_error, raise_item_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.admin.share_types import (
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffsetInfo,
)
from kclient.client.client_request import SimpleBuilder
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages import share_group_describe as described
from kclient.protocol.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
)


def describe_share_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, ShareGroupDescription]]:
    """Describe share groups by name (KIP-932).

    Returns:
        Description or error by group id.

    Raises:
        GroupIdNotFoundError: There is no such share group; the error of this group.
        GroupAuthorizationError: Not authorized to describe a group; the error of this group.
        UnsupportedVersionError: The broker is older than Kafka 4.1; the error of every group.
    """
    return call_for_groups(requester, "describe_share_groups", group_ids, timeout, _describe)


def _describe(
    requester: Requester, node: Node, group_ids: list[str]
) -> Steps[Outcomes[str, ShareGroupDescription]]:
    def read(group: described.DescribedGroup) -> ShareGroupDescription:
        raise_item_error(f"group {group.group_id!r}", group.error_code, group.error_message)
        return ShareGroupDescription(
            group_id=group.group_id,
            state=group.group_state,
            coordinator=node,
            members=tuple(map(_member, group.members)),
            group_epoch=group.group_epoch,
            target_assignment_epoch=group.assignment_epoch,
            partition_assignor=group.assignor_name,
        )

    builder = SimpleBuilder(described.ShareGroupDescribeRequest(group_ids=group_ids))
    response = yield from requester.send_once(node, builder, described.ShareGroupDescribeResponse)
    return read_each("group", group_ids, {each.group_id: each for each in response.groups}, read)


def _member(member: described.Member) -> ShareMemberDescription:
    return ShareMemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=frozenset(
            TopicPartition(topic.topic_name, number)
            for topic in member.assignment.topic_partitions
            for number in topic.partitions
        ),
        member_epoch=member.member_epoch,
        rack_id=member.rack_id,
        subscribed_topic_names=tuple(member.subscribed_topic_names),
    )


def list_share_group_offsets(
    requester: Requester,
    group_id: str,
    partitions: TopicPartition | Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, SharePartitionOffsetInfo]]:
    """Return a share group's start offsets and lags, for all partitions or for the given ones.

    Partitions without a start offset are omitted, such as those that no member has read yet.

    Raises:
        UnknownTopicOrPartitionError: There is no such partition; the error of this partition.
        GroupAuthorizationError: Not authorized to describe the group.
    """
    check_group_id(group_id)
    wanted = None if partitions is None else check_partitions(partitions)
    requester.limit(timeout)
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=_topics(wanted))

    def read(
        _: Node, response: DescribeShareGroupOffsetsResponse
    ) -> Results[TopicPartition, SharePartitionOffsetInfo]:
        outcomes: Outcomes[TopicPartition, SharePartitionOffsetInfo] = {}
        found = part_of("group", group_id, {each.group_id: each for each in response.groups})
        raise_item_error(f"group {group_id!r}", found.error_code, found.error_message)
        for topic in found.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.topic_name, part.partition_index)
                what = f"group {group_id!r}, {partition}"
                error = item_error(what, part.error_code, part.error_message)
                if error is not None:
                    outcomes[partition] = error
                elif part.start_offset >= 0:
                    outcomes[partition] = SharePartitionOffsetInfo(
                        part.start_offset, _known(part.leader_epoch), _known(part.lag)
                    )
        return Results("list_share_group_offsets", outcomes)

    builder = SimpleBuilder(DescribeShareGroupOffsetsRequest(groups=[group]))
    steps = requester.send_to_coordinator(
        group_id, builder, DescribeShareGroupOffsetsResponse, read
    )
    return raising_if_single(steps, partitions, TopicPartition)


def _topics(
    wanted: Sequence[TopicPartition] | None,
) -> list[DescribeShareGroupOffsetsRequestTopic] | None:
    if wanted is None:
        return None
    return [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers)
        for name, numbers in by_topic(wanted).items()
    ]


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def alter_share_group_offsets(
    requester: Requester,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, None]]:
    """Set the start offsets of a share group without members.

    A group that does not exist is created.

    Args:
        group_id: Group.
        offsets: First offset to read by partition.
        timeout: Timeout in seconds.

    Returns:
        None or error by partition.

    Raises:
        GroupNotEmptyError: The group has members.
        UnknownTopicOrPartitionError: There is no such partition; the error of this partition.
        GroupAuthorizationError: Not authorized to read the group.
    """
    check_group_id(group_id)
    wanted = check_start_offsets(offsets)
    requester.limit(timeout)
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=number, start_offset=wanted[TopicPartition(topic, number)]
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(wanted).items()
        ],
    )

    def read(_: Node, response: AlterShareGroupOffsetsResponse) -> Results[TopicPartition, None]:
        raise_item_error(f"group {group_id!r}", response.error_code, response.error_message)
        outcomes: Outcomes[TopicPartition, None] = {}
        for topic in response.responses:
            for part in topic.partitions:
                partition = TopicPartition(topic.topic_name, part.partition_index)
                what = f"group {group_id!r}, {partition}"
                outcomes[partition] = final_item_error(what, part.error_code, part.error_message)
        return Results("alter_share_group_offsets", outcomes, wanted)

    builder = SimpleBuilder(request)
    return requester.send_to_coordinator(group_id, builder, AlterShareGroupOffsetsResponse, read)


def delete_share_group_offsets(
    requester: Requester,
    group_id: str,
    topics: str | Iterable[str],
    *,
    timeout: float | None = None,
) -> Steps[Results[str, None]]:
    """Delete a share group's offsets of topics; the group must not have members.

    Returns:
        None or error by topic.

    Raises:
        GroupNotEmptyError: The group has members.
        GroupIdNotFoundError: There is no such share group.
        UnknownTopicOrPartitionError: There is no such topic; the error of this topic.
    """
    check_group_id(group_id)
    names = check_topic_names(topics)
    requester.limit(timeout)
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names],
    )

    def read(_: Node, response: DeleteShareGroupOffsetsResponse) -> Results[str, None]:
        raise_item_error(f"group {group_id!r}", response.error_code, response.error_message)
        outcomes: Outcomes[str, None] = {}
        for topic in response.responses:
            what = f"group {group_id!r}, topic {topic.topic_name!r}"
            outcomes[topic.topic_name] = final_item_error(
                what, topic.error_code, topic.error_message
            )
        return Results("delete_share_group_offsets", outcomes, names)

    builder = SimpleBuilder(request)
    steps = requester.send_to_coordinator(group_id, builder, DeleteShareGroupOffsetsResponse, read)
    return raising_if_single(steps, topics, str)


def delete_share_groups(
    requester: Requester, group_ids: str | Iterable[str], *, timeout: float | None = None
) -> Steps[Results[str, None]]:
    """Delete share groups with their offsets.

    Returns:
        None or error by group id.

    Raises:
        GroupNotEmptyError: A group has members; the error of this group.
        GroupIdNotFoundError: There is no such group; the error of this group.
    """
    return call_for_groups(requester, "delete_share_groups", group_ids, timeout, delete_groups)
