"""Committed offsets of groups.

- OffsetCommit, versions 2-10: stores offsets in ``__consumer_offsets``. Version 10 uses topic ids.
- OffsetFetch, versions 1-10. Versions up to 7 request one group, newer ones several; version 10
  uses topic ids. With `require_stable`, partitions with offsets in open transactions get
  UNSTABLE_OFFSET_COMMIT (KIP-447).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    NONE,
    GroupAuthorizationError,
    TopicAuthorizationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUP_ERRORS = 2
_SEVERAL_GROUPS = 8
_TOPIC_IDS = 10
_UNKNOWN = CommittedOffset(-1, -1, "", -1)


class _Positions(NamedTuple):
    """Committed offsets of a group, and the partitions whose offsets are not stable."""

    offsets: Mapping[TopicPartition, CommittedOffset]
    unstable: Collection[TopicPartition] = ()

    def find(self, key: TopicPartition, code: int) -> tuple[CommittedOffset, int]:
        """Return a partition's offset and error code; the code may be that of its topic."""
        if not code and key in self.unstable:
            code = code_of(UnstableOffsetCommitError)
        return (_UNKNOWN if code else self.offsets.get(key, _UNKNOWN)), code


_NO_POSITIONS = _Positions({})


def _positions(services: BrokerServices, group_id: str, *, require_stable: bool) -> _Positions:
    # First the partitions: an offset that is committed in between is stable.
    unstable = services.groups.unstable_partitions(group_id) if require_stable else ()
    return _Positions(services.groups.fetch_offsets(group_id), unstable)


def _commit_offsets(services: BrokerServices, request: Request, body: OffsetCommitRequest) -> None:
    """Commit the offsets of existing partitions; return an error code for each."""
    _require(services, request, AclOperation.READ, body.group_id)
    by_id = request.header.api_version >= _TOPIC_IDS
    image = services.metadata.image
    names = [
        image.topic_names.get(topic.topic_id) if by_id else topic.name for topic in body.topics
    ]
    now_ms = services.clock.wall_ms()
    wanted: dict[TopicPartition, CommittedOffset] = {}
    refused: dict[TopicPartition, int] = {}
    for name, topic in zip(names, body.topics, strict=True):
        readable = name is None or services.auth.authorize_topic(request, AclOperation.READ, name)
        for part in topic.partitions:
            key = TopicPartition(name or "", part.partition_index)
            if not readable:
                refused[key] = code_of(TopicAuthorizationError)
            elif name is not None and image.partition(key) is not None:
                wanted[key] = _position(part, body.retention_time_ms, now_ms)
    member = (body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)

    def on_done(codes: dict[TopicPartition, int]) -> None:
        topics = [
            _commit_response(topic, name, codes | refused)
            for name, topic in zip(names, body.topics, strict=True)
        ]
        request.respond(OffsetCommitResponse(topics=topics))

    services.groups.commit_offsets(body.group_id, member, wanted, on_done)


def _require(
    services: BrokerServices, request: Request, operation: AclOperation, group_id: str
) -> None:
    if not services.auth.authorize_group(request, operation, group_id):
        raise GroupAuthorizationError(f"Not authorized to access group: {group_id}")


def _position(
    part: OffsetCommitRequestPartition, retention_ms: int, now_ms: int
) -> CommittedOffset:
    return CommittedOffset(
        offset=part.committed_offset,
        leader_epoch=part.committed_leader_epoch,
        metadata=part.committed_metadata or "",
        commit_timestamp_ms=now_ms,
        expire_timestamp_ms=now_ms + retention_ms if retention_ms >= 0 else None,
    )


def _commit_response(
    topic: OffsetCommitRequestTopic, name: str | None, codes: dict[TopicPartition, int]
) -> OffsetCommitResponseTopic:
    unknown = code_of(UnknownTopicIdError if name is None else UnknownTopicOrPartitionError)
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(
                partition_index=part.partition_index,
                error_code=codes.get(TopicPartition(name or "", part.partition_index), unknown),
            )
            for part in topic.partitions
        ],
    )


def _failed_commit(body: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    every = {
        TopicPartition(topic.name, part.partition_index): code
        for topic in body.topics
        for part in topic.partitions
    }
    return OffsetCommitResponse(
        topics=[_commit_response(topic, topic.name, every) for topic in body.topics]
    )


def _fetch_offsets(
    services: BrokerServices, request: Request, body: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Return the requested offsets, each group and each partition once."""
    version = request.header.api_version
    if version < _SEVERAL_GROUPS:
        return _one_group(services, request, body)
    image = services.metadata.image
    by_id = version >= _TOPIC_IDS
    distinct = {group.group_id: group for group in body.groups}
    return OffsetFetchResponse(
        groups=[
            _group_response(
                services, request, image, group, by_id=by_id, require_stable=body.require_stable
            )
            for group in distinct.values()
        ]
    )


def _one_group(
    services: BrokerServices, request: Request, body: OffsetFetchRequest
) -> OffsetFetchResponse:
    try:
        _require(services, request, AclOperation.DESCRIBE, body.group_id)
        known = _positions(services, body.group_id, require_stable=body.require_stable)
    except KafkaError as error:
        return _failed_group(request, body, code_of(error))
    if body.topics is None:
        by_topic = _by_topic(known.offsets)
        wanted = {name: by_topic[name] for name in services.auth.shown_topics(request, by_topic)}
        denied: Collection[str] = ()
    else:
        wanted = {topic.name: topic.partition_indexes for topic in body.topics}
        denied = wanted.keys() - set(services.auth.described_topics(request, wanted))
    refusal = code_of(TopicAuthorizationError)
    return OffsetFetchResponse(
        topics=[
            _topic_response(name, indexes, known, refusal if name in denied else NONE)
            for name, indexes in wanted.items()
        ]
    )


def _failed_group(request: Request, body: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    """Return the error of a group, or of each partition in versions without an error of groups."""
    if request.header.api_version >= _GROUP_ERRORS:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            _topic_response(topic.name, topic.partition_indexes, _NO_POSITIONS, code)
            for topic in body.topics or ()
        ]
    )


def _topic_response(
    name: str, indexes: Iterable[int], known: _Positions, topic_code: int
) -> OffsetFetchResponseTopic:
    partitions = []
    for index in dict.fromkeys(indexes):
        position, code = known.find(TopicPartition(name, index), topic_code)
        partitions.append(
            OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=position.offset,
                committed_leader_epoch=position.leader_epoch,
                metadata=position.metadata,
                error_code=code,
            )
        )
    return OffsetFetchResponseTopic(name=name, partitions=partitions)


def _group_response(
    services: BrokerServices,
    request: Request,
    image: MetadataImage,
    group: OffsetFetchRequestGroup,
    *,
    by_id: bool,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    try:
        _require(services, request, AclOperation.DESCRIBE, group.group_id)
        known = _positions(services, group.group_id, require_stable=require_stable)
    except KafkaError as problem:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code_of(problem))
    topics = group.topics
    shown: Collection[str]
    if topics is None:
        by_topic = _by_topic(known.offsets)
        shown = services.auth.shown_topics(request, by_topic)
        topics = [
            OffsetFetchRequestTopics(
                name=name,
                topic_id=image.topics[name].topic_id if name in image.topics else bytes(16),
                partition_indexes=by_topic[name],
            )
            for name in shown
            if name in image.topics or not by_id
        ]
    else:
        named = [_name(image, topic, by_id=by_id) for topic in topics]
        shown = services.auth.described_topics(request, [name for name in named if name])
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            _fetch_response(known, topic, _name(image, topic, by_id=by_id), shown)
            for topic in topics
        ],
    )


def _name(image: MetadataImage, topic: OffsetFetchRequestTopics, *, by_id: bool) -> str | None:
    return image.topic_names.get(topic.topic_id) if by_id else topic.name


def _fetch_response(
    known: _Positions, topic: OffsetFetchRequestTopics, name: str | None, shown: Collection[str]
) -> OffsetFetchResponseTopics:
    topic_code = NONE
    if name is None:
        topic_code = code_of(UnknownTopicIdError)
    elif name not in shown:
        topic_code = code_of(TopicAuthorizationError)
    responses = []
    for index in dict.fromkeys(topic.partition_indexes):
        position, code = known.find(TopicPartition(name or "", index), topic_code)
        responses.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=position.offset,
                committed_leader_epoch=position.leader_epoch,
                metadata=position.metadata,
                error_code=code,
            )
        )
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=responses)


def _by_topic(known: Iterable[TopicPartition]) -> dict[str, list[int]]:
    wanted: dict[str, list[int]] = {}
    for partition in sorted(known):
        wanted.setdefault(partition.topic, []).append(partition.partition)
    return wanted


def _failed_fetch(body: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=code,
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
            for group in body.groups
        ],
    )


APIS = (
    ServedApi(OffsetCommitRequest, _commit_offsets, _failed_commit),
    ServedApi(OffsetFetchRequest, _fetch_offsets, _failed_fetch),
)
