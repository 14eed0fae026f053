"""This broker's log directory, and the sizes of its logs (KIP-113).

- DescribeLogDirs, versions 1-5.
- AlterReplicaLogDirs, versions 1-2.

Differences from Apache Kafka: there is one directory. Replicas are not moved between directories,
so none is a future replica; a move to the directory that they are in succeeds.
"""

from collections.abc import Callable

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi, always
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    NONE,
    ClusterAuthorizationError,
    KafkaStorageError,
    LogDirNotFoundError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.types import TopicPartition
from kclient.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
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
        size = services.replica_manager.volume_size()
        directory.total_bytes, directory.usable_bytes = size
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


def _alter(
    services: BrokerServices, request: Request, body: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Refuse moves of replicas to other directories."""
    services.auth.require_cluster(request, AclOperation.ALTER)
    return _moved(body, lambda path, partition: _move(services, path, partition))


def _move(services: BrokerServices, path: str, partition: TopicPartition) -> int:
    if path != str(services.config.data_dir):
        return code_of(LogDirNotFoundError)
    if services.metadata.image.partition(partition) is None or partition.partition < 0:
        return code_of(UnknownTopicOrPartitionError)
    try:
        services.replica_manager.partition(partition)
    except UnknownTopicOrPartitionError:
        # Of another broker: the directory is that of the replica which may follow.
        return code_of(ReplicaNotAvailableError)
    except KafkaStorageError as error:
        return code_of(error)
    return NONE


def _moved(
    body: AlterReplicaLogDirsRequest, code_of_move: Callable[[str, TopicPartition], int]
) -> AlterReplicaLogDirsResponse:
    """Return the outcome of each move, by topic."""
    codes: dict[str, dict[int, int]] = {}
    for directory in body.dirs:
        for topic in directory.topics:
            for number in topic.partitions:
                code = code_of_move(directory.path, TopicPartition(topic.name, number))
                codes.setdefault(topic.name, {})[number] = code
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)
                    for number, code in numbers.items()
                ],
            )
            for name, numbers in codes.items()
        ]
    )


def _failed_move(body: AlterReplicaLogDirsRequest, code: int) -> AlterReplicaLogDirsResponse:
    return _moved(body, lambda _path, _partition: code)


APIS = (
    ServedApi(DescribeLogDirsRequest, handle, is_long=always),
    ServedApi(AlterReplicaLogDirsRequest, _alter, _failed_move),
)
