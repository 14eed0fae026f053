"""OffsetCommit, versions 2-10: stores a group's offsets in ``__consumer_offsets``.

Versions 2 to 9 use topic names, version 10 topic ids.

Differences from Apache Kafka: none known.
"""

from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import (
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.types import TopicPartition
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_TOPIC_IDS = 10


def handle(services: BrokerServices, request: Request, body: OffsetCommitRequest) -> None:
    """Commit the offsets of existing partitions; return an error code for each."""
    by_id = request.header.api_version >= _TOPIC_IDS
    image = services.controller.image
    names = [
        image.topic_names.get(topic.topic_id) if by_id else topic.name for topic in body.topics
    ]
    now_ms = services.runtime.clock.wall_ms()
    wanted: dict[TopicPartition, CommittedOffset] = {}
    for name, topic in zip(names, body.topics, strict=True):
        for part in topic.partitions:
            key = TopicPartition(name or "", part.partition_index)
            if name is not None and image.partition(key) is not None:
                wanted[key] = _position(part, body.retention_time_ms, now_ms)
    member = (body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)

    def on_done(codes: dict[TopicPartition, int]) -> None:
        topics = [
            _topic_response(topic, name, codes)
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


def _topic_response(
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


def _failed(body: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    every = {
        TopicPartition(topic.name, part.partition_index): code
        for topic in body.topics
        for part in topic.partitions
    }
    return OffsetCommitResponse(
        topics=[_topic_response(topic, topic.name, every) for topic in body.topics]
    )


API = ServedApi(OffsetCommitRequest, handle, _failed)
