"""Admin calls for the log directories of brokers (KIP-113)."""

from collections.abc import Mapping, Sequence

from kclient.admin.admin_types import (
    LogDirDescription,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from kclient.admin.replica_calls import by_topic
from kclient.admin.requester import Requester, item_error, raise_failures
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import KafkaStorageError, error_for_code
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
    requester: Requester, broker_ids: Sequence[int], deadline_ms: float
) -> Steps[dict[int, LogDirs]]:
    """Describe the log directories of brokers, by broker id and path."""
    described = {}
    for broker_id in broker_ids:
        described[broker_id] = yield from _directories(requester, broker_id, None, deadline_ms)
    return described


def _directories(
    requester: Requester,
    broker_id: int,
    topics: list[DescribableLogDirTopic] | None,
    deadline_ms: float,
) -> Steps[LogDirs]:
    def read(response: DescribeLogDirsResponse) -> LogDirs:
        error = error_for_code(response.error_code)
        if error is not None:
            raise error
        return {each.log_dir: _description(each) for each in response.results}

    builder = SimpleBuilder(DescribeLogDirsRequest(topics=topics))
    return requester.send_to_broker(broker_id, builder, DescribeLogDirsResponse, read, deadline_ms)


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
    requester: Requester, replicas: Sequence[TopicPartitionReplica], deadline_ms: float
) -> Steps[dict[TopicPartitionReplica, ReplicaLogDirInfo]]:
    """Return the directory of each replica, and the one it moves to."""
    located = dict.fromkeys(replicas, ReplicaLogDirInfo())
    for broker_id, partitions in _by_broker(replicas).items():
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
        found = yield from _directories(requester, broker_id, topics, deadline_ms)
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
    requester: Requester, assignment: Mapping[TopicPartitionReplica, str], deadline_ms: float
) -> Steps[None]:
    """Move replicas to other directories of their brokers."""
    failures: _Failures = {}
    for broker_id, partitions in _by_broker(assignment).items():
        directories: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            path = assignment[TopicPartitionReplica(*partition, broker_id)]
            directories.setdefault(path, []).append(partition)
        failures |= yield from _move(requester, broker_id, directories, deadline_ms)
    raise_failures(failures)


def _move(
    requester: Requester,
    broker_id: int,
    directories: Mapping[str, list[TopicPartition]],
    deadline_ms: float,
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
        failures = {}
        for topic in response.results:
            for part in topic.partitions:
                what = f"replica {topic.topic_name}-{part.partition_index} at broker {broker_id}"
                error = item_error(what, part.error_code, None)
                if error is not None:
                    failures[what] = error
        return failures

    return requester.send_to_broker(
        broker_id, SimpleBuilder(request), AlterReplicaLogDirsResponse, read, deadline_ms
    )


def _by_broker(
    replicas: Sequence[TopicPartitionReplica] | Mapping[TopicPartitionReplica, str],
) -> dict[int, list[TopicPartition]]:
    grouped: dict[int, list[TopicPartition]] = {}
    for topic, partition, broker_id in replicas:
        grouped.setdefault(broker_id, []).append(TopicPartition(topic, partition))
    return grouped
