"""DescribeLogDirs, versions 1-5: this broker's log directory and the sizes of its logs (KIP-113).

Differences from Apache Kafka: there is one directory. The size of its volume is not returned.
Replicas are not moved between directories, so none is a future replica.
"""

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi, always
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.types import TopicPartition
from kclient.protocol.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(
    services: BrokerServices, request: Request, body: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe the log directory with the logs of the requested partitions, or of all."""
    if not services.auth.authorize_cluster(request, AclOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=code_of(ClusterAuthorizationError))
    directory = DescribeLogDirsResult(log_dir=str(services.config.data_dir))
    if services.replica_manager.is_offline:
        directory.error_code = code_of(KafkaStorageError)
    else:
        wanted = _wanted(services.metadata.image, body)
        directory.topics = [
            DescribeLogDirsTopic(name=topic, partitions=partitions)
            for topic, numbers in wanted.items()
            if (partitions := _partitions(services, topic, numbers))
        ]
    return DescribeLogDirsResponse(results=[directory])


def _wanted(image: MetadataImage, body: DescribeLogDirsRequest) -> dict[str, list[int]]:
    if body.topics is None:
        return {name: list(range(len(topic.partitions))) for name, topic in image.topics.items()}
    wanted: dict[str, dict[int, None]] = {}
    for requested in body.topics:
        wanted.setdefault(requested.topic, {}).update(dict.fromkeys(requested.partitions))
    return {name: list(numbers) for name, numbers in wanted.items()}


def _partitions(
    services: BrokerServices, topic: str, numbers: list[int]
) -> list[DescribeLogDirsPartition]:
    """Return the logs that this broker has."""
    found = []
    for number in numbers:
        try:
            log = services.replica_manager.partition(TopicPartition(topic, number)).log
        except (UnknownTopicOrPartitionError, KafkaStorageError):
            continue  # a log of another broker, or one that cannot be opened
        found.append(
            DescribeLogDirsPartition(
                partition_index=number,
                partition_size=log.size_in_bytes(),
                offset_lag=max(0, log.high_watermark - log.log_end_offset),
            )
        )
    return found


APIS = (ServedApi(DescribeLogDirsRequest, handle, is_long=always),)
