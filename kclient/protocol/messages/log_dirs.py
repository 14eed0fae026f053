"""Directories of brokers: AlterReplicaLogDirs (34), DescribeLogDirs (35) (KIP-113)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class AlterReplicaLogDirPartitionResult(Struct):
    """The outcome for a partition."""

    partition_index: int = int32()
    error_code: int = int16()


class AlterReplicaLogDirTopicResult(Struct):
    """The outcomes for a topic."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Response, versions="1-2", flexible="2+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)


class AlterReplicaLogDirTopic(Struct):
    """Topic with replicas to move."""

    name: str = string(map_key=True)
    partitions: list[int] = array(int32)


class AlterReplicaLogDir(Struct):
    """Directory with the replicas to move to it."""

    path: str = string(map_key=True)
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(
    Request,
    api_key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    response=AlterReplicaLogDirsResponse,
    versions="1-2",
    flexible="2+",
):
    """Moves replicas between the directories of a broker."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class DescribeLogDirsPartition(Struct):
    """Log of a partition; sizes are bytes."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


class DescribeLogDirsTopic(Struct):
    """Topic with logs in a directory."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    """Directory with its logs; sizes are bytes."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


class DescribeLogDirsResponse(Response, versions="1-5", flexible="2+"):
    """The directories of a broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)


class DescribableLogDirTopic(Struct):
    """Topic with partitions."""

    topic: str = string(map_key=True)
    partitions: list[int] = array(int32)


class DescribeLogDirsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_LOG_DIRS,
    response=DescribeLogDirsResponse,
    versions="1-5",
    flexible="2+",
):
    """Asks for the directories of a broker and the sizes of its logs."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")
