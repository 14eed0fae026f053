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
from kclient.admin.leader_requests import by_topic
from kclient.admin.requester import Requester, item_error, raise_error
from kclient.admin.results import Outcomes, Results, one_by_one, raising_if_single
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

LogDirs = dict[str, LogDirDescription]


def describe_log_dirs(
    requester: Requester, broker_ids: int | Iterable[int], *, timeout: float | None = None
) -> Steps[Results[int, dict[str, LogDirDescription]]]:
    """Return the log directories of brokers by path (DescribeLogDirs, KIP-113).

    Returns:
        Directories or error by broker id.
    """
    wanted = check_broker_ids(broker_ids)
    requester.limit(timeout)
    return raising_if_single(_describe(requester, wanted), broker_ids, int)


def _describe(requester: Requester, broker_ids: Iterable[int]) -> Steps[Results[int, LogDirs]]:
    outcomes = yield from one_by_one(broker_ids, lambda each: _directories(requester, each, None))
    return Results("describe_log_dirs", outcomes)


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
) -> Steps[Results[TopicPartitionReplica, ReplicaLogDirInfo]]:
    """Return the log directory of each replica (DescribeLogDirs, KIP-113).

    Returns:
        Directory or error by replica.
    """
    wanted = check_replicas(check_list("replicas", replicas, TopicPartitionReplica))
    requester.limit(timeout)
    return raising_if_single(_locate(requester, wanted), replicas, TopicPartitionReplica)


def _locate(
    requester: Requester, replicas: Sequence[TopicPartitionReplica]
) -> Steps[Results[TopicPartitionReplica, ReplicaLogDirInfo]]:
    grouped = _by_broker(replicas)
    found = yield from one_by_one(
        grouped, lambda broker_id: _locate_at(requester, broker_id, grouped[broker_id])
    )
    outcomes: Outcomes[TopicPartitionReplica, ReplicaLogDirInfo] = {}
    for replica in replicas:
        located = found[replica.broker_id]
        outcomes[replica] = located if isinstance(located, KafkaError) else located[replica]
    return Results("describe_replica_log_dirs", outcomes)


def _locate_at(
    requester: Requester, broker_id: int, partitions: Sequence[TopicPartition]
) -> Steps[dict[TopicPartitionReplica, ReplicaLogDirInfo]]:
    """Look for the replicas of one broker."""
    located = {
        TopicPartitionReplica(*partition, broker_id): ReplicaLogDirInfo()
        for partition in partitions
    }
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
) -> Steps[Results[TopicPartitionReplica, None]]:
    """Move replicas to other directories of their brokers (AlterReplicaLogDirs, KIP-113).

    Args:
        replica_assignment: Absolute path of a log directory by replica.
        timeout: Timeout in seconds.

    Returns:
        None or error by replica.

    Raises:
        LogDirNotFoundError: The broker has no such directory; the error of this replica.
        ReplicaNotAvailableError: The broker has no such replica yet, and will create it there; the
            error of this replica.
    """
    assignment = check_assignment(replica_assignment)
    requester.limit(timeout)
    return _assign(requester, assignment)


def _assign(
    requester: Requester, assignment: Mapping[TopicPartitionReplica, str]
) -> Steps[Results[TopicPartitionReplica, None]]:
    grouped: dict[int, dict[str, list[TopicPartition]]] = {}
    for (topic, partition, broker_id), path in assignment.items():
        directories = grouped.setdefault(broker_id, {})
        directories.setdefault(path, []).append(TopicPartition(topic, partition))
    moved = yield from one_by_one(
        grouped, lambda broker_id: _move(requester, broker_id, grouped[broker_id])
    )
    outcomes: Outcomes[TopicPartitionReplica, None] = {}
    for broker_id, of_broker in moved.items():
        if isinstance(of_broker, KafkaError):
            asked = [replica for replica in assignment if replica.broker_id == broker_id]
            outcomes |= dict.fromkeys(asked, of_broker)
        else:
            outcomes |= of_broker
    return Results("alter_replica_log_dirs", outcomes, assignment)


def _move(
    requester: Requester,
    broker_id: int,
    directories: Mapping[str, list[TopicPartition]],
) -> Steps[Outcomes[TopicPartitionReplica, None]]:
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

    def read(response: AlterReplicaLogDirsResponse) -> Outcomes[TopicPartitionReplica, None]:
        return {
            TopicPartitionReplica(topic.topic_name, part.partition_index, broker_id): item_error(
                f"replica {topic.topic_name}-{part.partition_index} at broker {broker_id}",
                part.error_code,
                None,
            )
            for topic in response.results
            for part in topic.partitions
        }

    return requester.send_to_broker(
        broker_id, SimpleBuilder(request), AlterReplicaLogDirsResponse, read
    )


def _by_broker(
    replicas: Sequence[TopicPartitionReplica],
) -> dict[int, list[TopicPartition]]:
    grouped: dict[int, list[TopicPartition]] = {}
    for topic, partition, broker_id in replicas:
        grouped.setdefault(broker_id, []).append(TopicPartition(topic, partition))
    return grouped
