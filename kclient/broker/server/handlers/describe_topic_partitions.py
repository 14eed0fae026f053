"""DescribeTopicPartitions, version 0: partitions of topics in pages (KIP-966).

Differences from Apache Kafka: none known.
"""

from kclient.broker.metadata.metadata_image import MetadataImage, PartitionRegistration, TopicImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi, always
from kclient.common.acls import ResourceType
from kclient.common.broker_errors import (
    InvalidRequestError,
    InvalidTopicError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import topic_name_problem
from kclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_PARTITION_LIMIT = 2_000
"""Default of ``max.request.partition.size.limit``."""


def handle(
    services: BrokerServices, request: Request, body: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe partitions from the cursor on, up to the limit."""
    image = services.metadata.image
    wanted = _names(image, body)
    auth = services.auth
    if body.topics:
        names = auth.described_topics(request, wanted)
    else:
        names = auth.shown_topics(request, wanted)
    left = max(1, min(body.response_partition_limit, _PARTITION_LIMIT))
    cursor = body.cursor
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            if body.topics:
                response.topics.append(_missing(name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        end = min(first + left, len(topic.partitions))
        described = _topic(image, topic, range(first, end))
        described.topic_authorized_operations = auth.authorized_operations(
            request, ResourceType.TOPIC, name
        )
        response.topics.append(described)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        left -= max(0, end - first)
    if body.topics:
        response.topics += [_unauthorized(name) for name in wanted if name not in names]
    return response


def _names(image: MetadataImage, body: DescribeTopicPartitionsRequest) -> list[str]:
    """Return the names to describe in order; without names in the request, all."""
    names = {topic.name for topic in body.topics} or set(image.topics)
    cursor = body.cursor
    if cursor is None:
        return sorted(names)
    if cursor.partition_index < 0:
        raise InvalidRequestError(
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor}"
        )
    if body.topics and cursor.topic_name not in names:
        raise InvalidRequestError(
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: "
            f"{cursor.topic_name:.250}"
        )
    return sorted(name for name in names if name >= cursor.topic_name)


def _unauthorized(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code_of(TopicAuthorizationError), name=name
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    absence: type[KafkaError] = UnknownTopicOrPartitionError
    if topic_name_problem(name) is not None:
        absence = InvalidTopicError
    return DescribeTopicPartitionsResponseTopic(error_code=code_of(absence), name=name)


def _topic(
    image: MetadataImage, topic: TopicImage, numbers: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(image, number, topic.partitions[number]) for number in numbers],
    )


def _partition(
    image: MetadataImage, number: int, registration: PartitionRegistration
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=number,
        leader_id=registration.leader,
        leader_epoch=registration.leader_epoch,
        replica_nodes=list(registration.replicas),
        isr_nodes=list(registration.isr),
        eligible_leader_replicas=list(registration.elr),
        last_known_elr=list(registration.last_known_elr),
        offline_replicas=[
            node_id
            for node_id in registration.replicas
            if (broker := image.broker(node_id)) is None or broker.fenced
        ],
    )


def _failed(body: DescribeTopicPartitionsRequest, code: int) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name)
            for topic in body.topics
        ]
    )


APIS = (ServedApi(DescribeTopicPartitionsRequest, handle, _failed, is_long=always),)
