"""OffsetFetch, versions 1-10: committed offsets of groups.

Versions up to 7 request one group, newer ones several; version 10 uses topic ids.

Differences from Apache Kafka: `require_stable` has no effect, since there are no transactional
offset commits.
"""

from collections.abc import Mapping

from kclient.broker.controller.metadata_image import MetadataImage
from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import NONE, UnknownTopicIdError, code_of
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.offset_fetch import (
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


def handle(
    services: BrokerServices, request: Request, body: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Return the requested offsets, each group and each partition once."""
    version = request.header.api_version
    if version < _SEVERAL_GROUPS:
        return _one_group(services, body)
    image = services.controller.image
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
        topics=[_topic_response(image, known, topic, by_id=by_id) for topic in topics],
    )


def _topic_response(
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


def _failed(body: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=code,
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
            for group in body.groups
        ],
    )


API = ServedApi(OffsetFetchRequest, handle, _failed)
