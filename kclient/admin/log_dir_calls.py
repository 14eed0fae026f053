"""Admin calls for the log directories of brokers (KIP-113)."""

from collections.abc import Iterable, Mapping, Sequence

from kclient.admin.admin_types import (
    LogDirDescription,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from kclient.admin.arguments import check_list
from kclient.admin.cluster_arguments import check_assignment, check_broker_ids, check_replicas
from kclient.admin.replica_calls import by_topic
from kclient.admin.requester import Requester, item_error, item_errors, raise_error, raise_failures
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

_Failures = dict[str, KafkaError]
LogDirs = dict[str, LogDirDescription]


def describe_log_dirs(
    requester: Requester, broker_ids: int | Iterable[int], *, timeout: float | None = None
) -> Steps[dict[int, dict[str, LogDirDescription]]]:
    """Return the log directories by broker id and path (DescribeLogDirs, KIP-113)."""
    wanted = check_broker_ids(broker_ids)
    requester.limit(timeout)
    return _describe(requester, wanted)


def _describe(requester: Requester, broker_ids: Iterable[int]) -> Steps[dict[int, LogDirs]]:
    described = {}
    for broker_id in broker_ids:
        described[broker_id] = yield from _directories(requester, broker_id, None)
    return described


def _directories(
    requester: Requester,
    broker_id: int,
    topics: list[DescribableLogDirTopic] | None,
) -> Steps[LogDirs]:
    def read(response: DescribeLogDirsResponse) -> LogDirs:
        raise_error(response.error_code)
        return {each.log_dir: _description(each) for each in response.results}

    builder = SimpleBuilder(DescribeLogDirsRequest(topics=topics))
    return requester.send_to_broker(broker_id, builder, DescribeLogDirsResponse, read)


def _description(found: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        error=item_error(f"log directory {found.log_dir}", found.error_code, None),
        replica_infos={
            TopicPartition(topic.name, part.partition_index): ReplicaInfo(
                part.partition_size, part.offset_lag, part.is_future_key
            )
            for topic in found.topics
            for part in topic.partitions
        },
        total_bytes=found.total_bytes if found.total_bytes >= 0 else None,
        usable_bytes=found.usable_bytes if found.usable_bytes >= 0 else None,
        is_cordoned=found.is_cordoned,
    )


def describe_replica_log_dirs(
    requester: Requester,
    replicas: TopicPartitionReplica | Iterable[TopicPartitionReplica],
    *,
    timeout: float | None = None,
) -> Steps[dict[TopicPartitionReplica, ReplicaLogDirInfo]]:
    """Return the log directory of each replica (DescribeLogDirs, KIP-113)."""
    wanted = check_replicas(check_list("replicas", replicas, TopicPartitionReplica))
    requester.limit(timeout)
    return _locate(requester, wanted)


def _locate(
    requester: Requester, replicas: Sequence[TopicPartitionReplica]
) -> Steps[dict[TopicPartitionReplica, ReplicaLogDirInfo]]:
    located = dict.fromkeys(replicas, ReplicaLogDirInfo())
    for broker_id, partitions in _by_broker(replicas).items():
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
        found = yield from _directories(requester, broker_id, topics)
        for path, directory in found.items():
            if directory.error is not None and not isinstance(directory.error, KafkaStorageError):
                raise directory.error
            for partition, info in directory.replica_infos.items():
                replica = TopicPartitionReplica(*partition, broker_id)
                if replica in located:
                    located[replica] = _located(located[replica], path, info)
    return located


def _located(known: ReplicaLogDirInfo, path: str, info: ReplicaInfo) -> ReplicaLogDirInfo:
    if info.is_future:
        return known._replace(
            future_replica_log_dir=path, future_replica_offset_lag=info.offset_lag
        )
    return known._replace(current_replica_log_dir=path, current_replica_offset_lag=info.offset_lag)


def alter_replica_log_dirs(
    requester: Requester,
    replica_assignment: Mapping[TopicPartitionReplica, str],
    *,
    timeout: float | None = None,
) -> Steps[None]:
    """Move replicas to other directories of their brokers (AlterReplicaLogDirs, KIP-113).

    Args:
        replica_assignment: Absolute path of a log directory by replica.
        timeout: Timeout in seconds.

    Raises:
        LogDirNotFoundError: A broker has no such directory.
        ReplicaNotAvailableError: A broker has no such replica yet; it will be created there.
    """
    assignment = check_assignment(replica_assignment)
    requester.limit(timeout)
    return _assign(requester, assignment)


def _assign(requester: Requester, assignment: Mapping[TopicPartitionReplica, str]) -> Steps[None]:
    failures: _Failures = {}
    for broker_id, partitions in _by_broker(assignment).items():
        directories: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            path = assignment[TopicPartitionReplica(*partition, broker_id)]
            directories.setdefault(path, []).append(partition)
        failures |= yield from _move(requester, broker_id, directories)
    raise_failures(failures)


def _move(
    requester: Requester,
    broker_id: int,
    directories: Mapping[str, list[TopicPartition]],
) -> Steps[_Failures]:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                    for topic, numbers in by_topic(partitions).items()
                ],
            )
            for path, partitions in directories.items()
        ]
    )

    def read(response: AlterReplicaLogDirsResponse) -> _Failures:
        return item_errors(
            (
                f"replica {topic.topic_name}-{part.partition_index} at broker {broker_id}",
                part.error_code,
                None,
            )
            for topic in response.results
            for part in topic.partitions
        )

    return requester.send_to_broker(
        broker_id, SimpleBuilder(request), AlterReplicaLogDirsResponse, read
    )


def _by_broker(
    replicas: Sequence[TopicPartitionReplica] | Mapping[TopicPartitionReplica, str],
) -> dict[int, list[TopicPartition]]:
    grouped: dict[int, list[TopicPartition]] = {}
    for topic, partition, broker_id in replicas:
        grouped.setdefault(broker_id, []).append(TopicPartition(topic, partition))
    return grouped
