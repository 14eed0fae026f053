"""ListOffsets, versions 1-11: offsets by timestamp.

Differences from Apache Kafka: there is no tiered storage, so the local log is the whole log. After
DeleteRecords a look-up by timestamp finds the first remaining record, where Apache Kafka finds none
if the segment of that timestamp contains only deleted records.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.replication.fetch_params import FetchIsolation
from kclient.broker.replication.partition import Partition
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import (
    InvalidRequestError,
    UnsupportedVersionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
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
_MANY = 200
"""Number of partitions above which a request is handled as a long one."""

_NONE = OffsetAndTimestamp(-1, -1)


def handle(
    services: BrokerServices, request: Request, body: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Look up an offset for each partition."""
    isolation = FetchIsolation(1 if body.isolation_level == 1 else 0)
    version = request.header.api_version
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _result(services, topic.name, part, isolation, version)
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _result(
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
    elif timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        found = None
    else:
        raise InvalidRequestError(f"timestamp: got {timestamp}")
    return _NONE if found is None else found


def _failed(body: ListOffsetsRequest, code: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, error_code=code
                    )
                    for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _is_long(_services: BrokerServices, _request: Request, body: ListOffsetsRequest) -> bool:
    """Return whether the look-up takes long: many partitions, or by timestamp."""
    partitions = [part for topic in body.topics for part in topic.partitions]
    return len(partitions) > _MANY or any(
        part.timestamp >= 0 or part.timestamp == MAX_TIMESTAMP for part in partitions
    )


API = ServedApi(ListOffsetsRequest, handle, _failed, is_long=_is_long)
