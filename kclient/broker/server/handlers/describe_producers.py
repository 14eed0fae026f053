"""DescribeProducers, version 0: producers with state in the logs that this broker leads (KIP-664).

Differences from Apache Kafka: a partition that a request names repeatedly is in the response once.
"""

from kclient.broker.log.producer_state_entry import ProducerStateEntry
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi, always
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)


def handle(
    services: BrokerServices, request: Request, body: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Return the producers of each partition, or its error."""
    wanted = _wanted(body)
    denied = {
        name
        for name in wanted
        if not services.auth.authorize_topic(request, AclOperation.READ, name)
    }
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(
                name=name,
                partitions=[
                    _failed_partition(number, TopicAuthorizationError())
                    if name in denied
                    else _partition(services, TopicPartition(name, number))
                    for number in numbers
                ],
            )
            for name, numbers in wanted.items()
        ]
    )


def _wanted(body: DescribeProducersRequest) -> dict[str, dict[int, None]]:
    wanted: dict[str, dict[int, None]] = {}
    for topic in body.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return wanted


def _partition(
    services: BrokerServices, topic_partition: TopicPartition
) -> DescribeProducersPartitionResponse:
    number = topic_partition.partition
    if services.metadata.image.topic(topic_partition.topic) is None:
        return _failed_partition(number, UnknownTopicOrPartitionError())
    try:
        partition = services.replica_manager.partition(topic_partition)
        partition.check_leader_epoch(-1)
    except KafkaError as error:
        return _failed_partition(number, error)
    return DescribeProducersPartitionResponse(
        partition_index=number,
        active_producers=[_state(entry) for entry in partition.log.active_producers()],
    )


def _state(entry: ProducerStateEntry) -> DescribeProducersProducerState:
    first_offset = entry.current_txn_first_offset
    return DescribeProducersProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=-1 if first_offset is None else first_offset,
    )


def _failed_partition(number: int, error: KafkaError) -> DescribeProducersPartitionResponse:
    return DescribeProducersPartitionResponse(partition_index=number, error_code=code_of(error))


def _failed(body: DescribeProducersRequest, code: int) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(
                name=name,
                partitions=[
                    DescribeProducersPartitionResponse(partition_index=number, error_code=code)
                    for number in numbers
                ],
            )
            for name, numbers in _wanted(body).items()
        ]
    )


APIS = (ServedApi(DescribeProducersRequest, handle, _failed, is_long=always),)
