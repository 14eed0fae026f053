"""Committed offsets of groups.

- OffsetCommit, versions 2-10: stores offsets in ``__consumer_offsets``. Version 10 uses topic ids.
- OffsetFetch, versions 1-10. Versions up to 7 request one group, newer ones several; version 10
  uses topic ids.

Differences from Apache Kafka: `require_stable` of OffsetFetch has no effect, since there are no
transactional offset commits.
"""

from collections.abc import Mapping

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import (
    NONE,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
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

_SEVERAL_GROUPS = 8
_TOPIC_IDS = 10
_UNKNOWN = CommittedOffset(-1, -1, "", -1)

Positions = Mapping[TopicPartition, CommittedOffset]


def _commit_offsets(services: BrokerServices, request: Request, body: OffsetCommitRequest) -> None:
    """Commit the offsets of existing partitions; return an error code for each."""
    by_id = request.header.api_version >= _TOPIC_IDS
    image = services.metadata.image
    names = [
        image.topic_names.get(topic.topic_id) if by_id else topic.name for topic in body.topics
    ]
    now_ms = services.clock.wall_ms()
    wanted: dict[TopicPartition, CommittedOffset] = {}
    for name, topic in zip(names, body.topics, strict=True):
        for part in topic.partitions:
            key = TopicPartition(name or "", part.partition_index)
            if name is not None and image.partition(key) is not None:
                wanted[key] = _position(part, body.retention_time_ms, now_ms)
    member = (body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)

    def on_done(codes: dict[TopicPartition, int]) -> None:
        topics = [
            _commit_response(topic, name, codes)
            for name, topic in zip(names, body.topics, strict=True)
        ]
        request.respond(OffsetCommitResponse(topics=topics))

    services.groups.commit_offsets(body.group_id, member, wanted, on_done)


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
        return _one_group(services, body)
    image = services.metadata.image
    by_id = version >= _TOPIC_IDS
    distinct = {group.group_id: group for group in body.groups}
    return OffsetFetchResponse(
        groups=[_group_response(services, image, group, by_id=by_id) for group in distinct.values()]
    )


def _one_group(services: BrokerServices, body: OffsetFetchRequest) -> OffsetFetchResponse:
    known = services.groups.fetch_offsets(body.group_id)
    if body.topics is None:
        wanted = _by_topic(known)
    else:
        wanted = {topic.name: topic.partition_indexes for topic in body.topics}
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    _partition_response_v7(known, name, index) for index in dict.fromkeys(indexes)
                ],
            )
            for name, indexes in wanted.items()
        ]
    )


def _partition_response_v7(known: Positions, name: str, index: int) -> OffsetFetchResponsePartition:
    position = known.get(TopicPartition(name, index), _UNKNOWN)
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=position.offset,
        committed_leader_epoch=position.leader_epoch,
        metadata=position.metadata,
        error_code=NONE,
    )


def _group_response(
    services: BrokerServices, image: MetadataImage, group: OffsetFetchRequestGroup, *, by_id: bool
) -> OffsetFetchResponseGroup:
    try:
        known = services.groups.fetch_offsets(group.group_id)
    except KafkaError as problem:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code_of(problem))
    topics = group.topics
    if topics is None:
        topics = [
            OffsetFetchRequestTopics(
                name=name,
                topic_id=image.topics[name].topic_id if name in image.topics else bytes(16),
                partition_indexes=indexes,
            )
            for name, indexes in _by_topic(known).items()
            if name in image.topics or not by_id
        ]
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[_fetch_response(image, known, topic, by_id=by_id) for topic in topics],
    )


def _fetch_response(
    image: MetadataImage, known: Positions, topic: OffsetFetchRequestTopics, *, by_id: bool
) -> OffsetFetchResponseTopics:
    name = image.topic_names.get(topic.topic_id) if by_id else topic.name
    code = code_of(UnknownTopicIdError) if name is None else NONE
    responses = []
    for index in dict.fromkeys(topic.partition_indexes):
        position = known.get(TopicPartition(name or "", index), _UNKNOWN)
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


def _by_topic(known: Positions) -> dict[str, list[int]]:
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
