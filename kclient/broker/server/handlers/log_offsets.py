"""Offsets of partitions' logs.

- ListOffsets, versions 1-11: offsets by timestamp.
- OffsetForLeaderEpoch, versions 2-4: end offsets of leader epochs (KIP-320).
- DeleteRecords, versions 0-2: advances the log start offset.

Differences from Apache Kafka: there is no tiered storage, so the local log is the whole log. After
DeleteRecords a look-up by timestamp finds the first remaining record, where Apache Kafka finds none
if the segment of that timestamp contains only deleted records.
"""

from kclient.broker.metadata.metadata_image import INTERNAL_TOPICS
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.delayed_requests import DeletionResults
from kclient.broker.replication.fetch_params import FetchIsolation
from kclient.broker.replication.partition import Partition
from kclient.broker.server.served_api import BrokerServices, ServedApi, always
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    InvalidTopicError,
    LeaderNotAvailableError,
    OffsetNotAvailableError,
    TopicAuthorizationError,
    UnsupportedVersionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""First request version of each special timestamp."""

_LEADER_EPOCH = 4
_NOT_AVAILABLE = 5
_LONGEST_WAIT_MS = 300_000
_MANY = 200
"""Number of partitions above which a request is handled as a long one."""

_NONE = OffsetAndTimestamp(-1, -1)
_NO_LOW_WATERMARK = -1


def _list_offsets(
    services: BrokerServices, request: Request, body: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Look up an offset for each partition."""
    if body.replica_id >= 0:
        isolation = FetchIsolation.LOG_END  # as a follower does after OFFSET_OUT_OF_RANGE
    else:
        isolation = FetchIsolation(1 if body.isolation_level == 1 else 0)
    version = request.header.api_version
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _offset_result(services, topic.name, part, isolation, version)
                    for part in topic.partitions
                ],
            )
            if services.auth.authorize_topic(request, AclOperation.DESCRIBE, topic.name)
            else _failed_topic(topic, code_of(TopicAuthorizationError))
            for topic in body.topics
        ]
    )


def _offset_result(
    services: BrokerServices,
    topic: str,
    wanted: ListOffsetsPartition,
    isolation: FetchIsolation,
    version: int,
) -> ListOffsetsPartitionResponse:
    result = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        if version < _SINCE.get(wanted.timestamp, 0):
            raise UnsupportedVersionError(
                f"timestamp {wanted.timestamp} is not supported in version {version}"
            )
        partition = services.replica_manager.partition(
            TopicPartition(topic, wanted.partition_index)
        )
        partition.check_leader_epoch(wanted.current_leader_epoch)
        found = _offset(partition, wanted.timestamp, isolation)
    except OffsetNotAvailableError as error:
        result.error_code = code_of(error if version >= _NOT_AVAILABLE else LeaderNotAvailableError)
    except KafkaError as error:
        result.error_code = code_of(error)
    else:
        result.offset, result.timestamp = found.offset, found.timestamp_ms
        if version >= _LEADER_EPOCH:
            result.leader_epoch = found.leader_epoch
    return result


def _offset(partition: Partition, timestamp: int, isolation: FetchIsolation) -> OffsetAndTimestamp:
    if timestamp == LATEST:
        return partition.latest_offset(isolation)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return partition.earliest_offset()
    if timestamp == MAX_TIMESTAMP:
        found = partition.max_timestamp_offset()
    elif timestamp >= 0:
        found = partition.offset_for_timestamp(timestamp, partition.readable_end(isolation))
        if found is None:
            partition.check_high_watermark(isolation)
    elif timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        found = None
    else:
        raise UnsupportedVersionError(f"timestamp {timestamp} is not supported")
    return _NONE if found is None else found


def _failed_list(body: ListOffsetsRequest, code: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[_failed_topic(topic, code) for topic in body.topics])


def _failed_topic(topic: ListOffsetsTopic, code: int) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ],
    )


def _is_long(_services: BrokerServices, _request: Request, body: ListOffsetsRequest) -> bool:
    """Return whether the look-up takes long: many partitions, or by timestamp."""
    partitions = [part for topic in body.topics for part in topic.partitions]
    return len(partitions) > _MANY or any(
        part.timestamp >= 0 or part.timestamp == MAX_TIMESTAMP for part in partitions
    )


def _offsets_for_leader_epochs(
    services: BrokerServices, request: Request, body: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up the end offset of an epoch for each partition."""
    auth = services.auth
    is_broker = auth.authorize_cluster(request, AclOperation.CLUSTER_ACTION, is_logged=False)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _epoch_result(services, topic.topic, part) for part in topic.partitions
                ],
            )
            if is_broker or auth.authorize_topic(request, AclOperation.DESCRIBE, topic.topic)
            else _failed_epoch(topic, code_of(TopicAuthorizationError))
            for topic in body.topics
        ]
    )


def _epoch_result(
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


def _failed_epochs(body: OffsetForLeaderEpochRequest, code: int) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[_failed_epoch(topic, code) for topic in body.topics]
    )


def _failed_epoch(topic: OffsetForLeaderTopic, code: int) -> OffsetForLeaderTopicResult:
    return OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[
            EpochEndOffset(partition=part.partition, error_code=code) for part in topic.partitions
        ],
    )


def _delete_records(services: BrokerServices, request: Request, body: DeleteRecordsRequest) -> None:
    """Delete the records of each partition before an offset, and wait for the replicas."""
    offsets: dict[TopicPartition, int] = {}
    refused: DeletionResults = {}
    for topic in body.topics:
        allowed = services.auth.authorize_topic(request, AclOperation.DELETE, topic.name)
        for part in topic.partitions:
            key = TopicPartition(topic.name, part.partition_index)
            if not allowed:
                refused[key] = TopicAuthorizationError()
            elif topic.name in INTERNAL_TOPICS:
                refused[key] = InvalidTopicError("records of internal topics cannot be deleted")
            else:
                offsets[key] = part.offset

    def respond(results: DeletionResults) -> None:
        results = {**refused, **results}
        request.respond(
            DeleteRecordsResponse(
                topics=[
                    DeleteRecordsTopicResult(
                        name=topic.name,
                        partitions=[
                            _deletion_result(
                                part.partition_index,
                                results[TopicPartition(topic.name, part.partition_index)],
                            )
                            for part in topic.partitions
                        ],
                    )
                    for topic in body.topics
                ]
            )
        )

    timeout_ms = min(body.timeout_ms, _LONGEST_WAIT_MS)
    services.replica_manager.delete_records(offsets, timeout_ms, respond)


def _deletion_result(index: int, result: int | KafkaError) -> DeleteRecordsPartitionResult:
    if isinstance(result, KafkaError):
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=code_of(result)
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=result)


def _failed_deletion(body: DeleteRecordsRequest, code: int) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=part.partition_index,
                        low_watermark=_NO_LOW_WATERMARK,
                        error_code=code,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


APIS = (
    ServedApi(ListOffsetsRequest, _list_offsets, _failed_list, is_long=_is_long),
    ServedApi(OffsetForLeaderEpochRequest, _offsets_for_leader_epochs, _failed_epochs),
    ServedApi(DeleteRecordsRequest, _delete_records, _failed_deletion, is_long=always),
)
