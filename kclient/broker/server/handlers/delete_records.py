"""DeleteRecords, versions 0-2: advances the log start offset of partitions.

Differences from Apache Kafka: there are no followers to wait for, so `timeout_ms` never expires.
"""

from kclient.broker.controller.metadata_image import INTERNAL_TOPICS
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi, always
from kclient.common.broker_errors import InvalidTopicError, PolicyViolationError, code_of
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_UNKNOWN = -1


def handle(
    services: BrokerServices, request: Request, body: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete the records of each partition before an offset."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _result(services, TopicPartition(topic.name, part.partition_index), part.offset)
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _result(
    services: BrokerServices, topic_partition: TopicPartition, offset: int
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=topic_partition.partition, low_watermark=_UNKNOWN
    )
    try:
        if topic_partition.topic in INTERNAL_TOPICS:
            raise InvalidTopicError("records of internal topics cannot be deleted")
        partition = services.replica_manager.partition(topic_partition)
        if "delete" not in partition.log.config.cleanup_policy:
            raise PolicyViolationError("the topic's cleanup.policy does not contain delete")
        result.low_watermark = partition.delete_records(offset)
    except KafkaError as error:
        result.error_code = code_of(error)
    return result


def _failed(body: DeleteRecordsRequest, code: int) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=part.partition_index,
                        low_watermark=_UNKNOWN,
                        error_code=code,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


API = ServedApi(DeleteRecordsRequest, handle, _failed, is_long=always)
