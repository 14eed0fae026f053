"""OffsetForLeaderEpoch, versions 2-4: end offsets of leader epochs (KIP-320)."""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import code_of
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    services: BrokerServices, request: Request, body: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up the end offset of an epoch for each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_result(services, topic.topic, part) for part in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _result(
    services: BrokerServices, topic: str, wanted: OffsetForLeaderPartition
) -> EpochEndOffset:
    result = EpochEndOffset(partition=wanted.partition)
    try:
        partition = services.replica_manager.partition(TopicPartition(topic, wanted.partition))
        found = partition.last_offset_for_leader_epoch(
            wanted.current_leader_epoch, wanted.leader_epoch
        )
    except KafkaError as error:
        result.error_code = code_of(error)
    else:
        result.leader_epoch, result.end_offset = found
    return result


def _failed(body: OffsetForLeaderEpochRequest, code: int) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=part.partition, error_code=code)
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


API = ServedApi(OffsetForLeaderEpochRequest, handle, _failed)
