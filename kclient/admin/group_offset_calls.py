"""Admin calls for the committed offsets of consumer groups."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kclient.admin.arguments import check_group_id, check_new_offsets, check_partitions
from kclient.admin.coordinator_requests import call_for_groups, part_of, read_each
from kclient.admin.leader_requests import by_topic
from kclient.admin.requester import Requester, final_item_error, item_error, raise_item_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.client.client_request import RequestBuilder, SimpleBuilder
from kclient.common.broker_errors import UnknownMemberIdError, UnsupportedVersionError
from kclient.common.errors import KafkaError
from kclient.common.files import WireBytes
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

_OF_GROUPS = "list_offsets_of_consumer_groups"
_FIRST_STABLE = 7
_FIRST_WITH_GROUPS = 8
_LAST_WITH_NAMES = 9  # from version 10 on OffsetCommit names topics by id


def alter_consumer_group_offsets(
    requester: Requester,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
    *,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, None]]:
    """Set the committed offsets of a group without active members (OffsetCommit, KIP-396).

    A group that does not exist is created.

    Args:
        group_id: Group.
        offsets: Offset of the next record to read, by partition.
        timeout: Timeout in seconds.

    Returns:
        None or error by partition.

    Raises:
        UnknownMemberIdError: The group has active members; the error of every partition.
        UnknownTopicOrPartitionError: There is no such partition; the error of this partition.
        GroupAuthorizationError: Not authorized to read the group.
    """
    check_group_id(group_id)
    wanted = check_new_offsets(offsets)
    requester.limit(timeout)
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    _committing(number, wanted[TopicPartition(topic, number)]) for number in numbers
                ],
            )
            for topic, numbers in by_topic(wanted).items()
        ],
    )

    def read(_: Node, response: OffsetCommitResponse) -> Results[TopicPartition, None]:
        outcomes: Outcomes[TopicPartition, None] = {}
        for topic in response.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                outcomes[partition] = _commit_error(group_id, partition, part.error_code)
        return Results("alter_consumer_group_offsets", outcomes, wanted)

    builder = SimpleBuilder(request, latest=_LAST_WITH_NAMES)
    return requester.send_to_coordinator(group_id, builder, OffsetCommitResponse, read)


def _committing(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def _commit_error(group_id: str, partition: TopicPartition, code: int) -> KafkaError | None:
    what = f"group {group_id!r}, {partition}"
    error = final_item_error(what, code, None)
    if isinstance(error, UnknownMemberIdError):
        return UnknownMemberIdError(
            f"{what}: UNKNOWN_MEMBER_ID: the group has active members, which commit themselves; "
            "stop them first"
        )
    return error


def delete_consumer_group_offsets(
    requester: Requester,
    group_id: str,
    partitions: TopicPartition | Iterable[TopicPartition],
    *,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, None]]:
    """Delete a group's committed offsets of partitions (OffsetDelete, KIP-496).

    Returns:
        None or error by partition.

    Raises:
        GroupSubscribedToTopicError: A member of the group is subscribed to a topic; the error of
            its partitions.
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

    def read(_: Node, response: OffsetDeleteResponse) -> Results[TopicPartition, None]:
        raise_item_error(f"group {group_id!r}", response.error_code, None)
        outcomes = {
            TopicPartition(topic.name, part.partition_index): item_error(
                f"group {group_id!r}, {topic.name}-{part.partition_index}", part.error_code, None
            )
            for topic in response.topics
            for part in topic.partitions
        }
        return Results("delete_consumer_group_offsets", outcomes, wanted)

    builder = SimpleBuilder(request)
    steps = requester.send_to_coordinator(group_id, builder, OffsetDeleteResponse, read)
    return raising_if_single(steps, partitions, TopicPartition)


def list_consumer_group_offsets(
    requester: Requester,
    group_id: str,
    partitions: TopicPartition | Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, OffsetAndMetadata]]:
    """Return a group's committed offsets, for all partitions or for the given ones.

    Partitions without a committed offset are omitted. With `require_stable`, the call waits for
    the end of open transactions that have sent offsets of the group (KIP-447); it needs Kafka 2.5.
    """
    check_group_id(group_id)
    wanted = None if partitions is None else check_partitions(partitions)
    requester.limit(timeout)

    def read(_: Node, response: OffsetFetchResponse) -> Results[TopicPartition, OffsetAndMetadata]:
        groups = {group.group_id: group for group in response.groups}
        return _committed_offsets("list_consumer_group_offsets", part_of("group", group_id, groups))

    builder = _OffsetFetch([group_id], wanted, require_stable=require_stable)
    steps = requester.send_to_coordinator(group_id, builder, OffsetFetchResponse, read)
    return raising_if_single(steps, partitions, TopicPartition)


def list_offsets_of_consumer_groups(
    requester: Requester,
    group_ids: str | Iterable[str],
    *,
    require_stable: bool = False,
    timeout: float | None = None,
) -> Steps[Results[str, Results[TopicPartition, OffsetAndMetadata]]]:
    """Return the committed offsets of groups, each for all partitions (KIP-709).

    A coordinator before Kafka 3.0 is asked for one group after the other. Partitions without a
    committed offset are omitted. `require_stable` is that of `list_consumer_group_offsets`.

    Returns:
        Offset or error by partition, or the error of the group, by group id. A group that does not
        exist has no offsets.

    Raises:
        GroupAuthorizationError: Not authorized to describe a group; the error of this group.
    """
    ask = partial(_fetch_offsets, require_stable=require_stable)
    return call_for_groups(requester, _OF_GROUPS, group_ids, timeout, ask)


def _fetch_offsets(
    requester: Requester, node: Node, group_ids: list[str], *, require_stable: bool
) -> Steps[Outcomes[str, Results[TopicPartition, OffsetAndMetadata]]]:
    builder = _OffsetFetch(group_ids, None, require_stable=require_stable)
    try:
        response = yield from requester.send_once(node, builder, OffsetFetchResponse)
    except UnsupportedVersionError:
        if len(group_ids) == 1:
            raise
        outcomes: Outcomes[str, Results[TopicPartition, OffsetAndMetadata]] = {}
        for group_id in group_ids:
            outcomes |= yield from _fetch_offsets(
                requester, node, [group_id], require_stable=require_stable
            )
        return outcomes
    groups = {group.group_id: group for group in response.groups}
    return read_each("group", group_ids, groups, partial(_committed_offsets, _OF_GROUPS))


class _OffsetFetch(RequestBuilder):
    """Builder of an OffsetFetch request for groups, or for partitions of one group.

    Up to version 7 the only group is in fields of the request and of the response, from 8 on in
    lists. The decoded response always has a list. Version 10 requires topic ids, which are not
    known here, so version 9 is the highest used.
    """

    api_key = ApiKey.OFFSET_FETCH
    request_type = OffsetFetchRequest
    latest_allowed_version = 9

    def __init__(
        self,
        group_ids: list[str],
        partitions: Sequence[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> None:
        self._group_ids = group_ids
        self._stable = require_stable
        self.oldest_allowed_version = _FIRST_STABLE if require_stable else 2
        if len(group_ids) > 1:
            self.oldest_allowed_version = _FIRST_WITH_GROUPS
        self._wanted = None if partitions is None else by_topic(partitions)

    def build(self, version: int) -> OffsetFetchRequest:
        """Build the request for a version."""
        wanted = None if self._wanted is None else self._wanted.items()
        if version >= _FIRST_WITH_GROUPS:
            topics = (
                None
                if wanted is None
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in wanted
                ]
            )
            groups = [
                OffsetFetchRequestGroup(group_id=group_id, topics=topics)
                for group_id in self._group_ids
            ]
            return OffsetFetchRequest(groups=groups, require_stable=self._stable)
        old = (
            None
            if wanted is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in wanted
            ]
        )
        return OffsetFetchRequest(
            group_id=self._group_ids[0], topics=old, require_stable=self._stable
        )

    def decode(self, payload: WireBytes, version: int) -> Response:
        """Decode the response, with its group in the list in every version."""
        response = super().decode(payload, version)
        if version < _FIRST_WITH_GROUPS and isinstance(response, OffsetFetchResponse):
            response.groups = [_only_group(response, self._group_ids[0])]
        return response


def _only_group(response: OffsetFetchResponse, group_id: str) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group_id,
        error_code=response.error_code,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in response.topics
        ],
    )


def _committed_offsets(
    call: str, group: OffsetFetchResponseGroup
) -> Results[TopicPartition, OffsetAndMetadata]:
    raise_item_error(f"group {group.group_id!r}", group.error_code, None)
    outcomes: Outcomes[TopicPartition, OffsetAndMetadata] = {}
    for topic in group.topics:
        for part in topic.partitions:
            partition = TopicPartition(topic.name, part.partition_index)
            what = f"group {group.group_id!r}, {partition}"
            error = final_item_error(what, part.error_code, None)  # retried: an open transaction
            if error is not None or part.committed_offset >= 0:
                outcomes[partition] = error or OffsetAndMetadata(
                    part.committed_offset, part.metadata or "", part.committed_leader_epoch
                )
    return Results(call, outcomes)
