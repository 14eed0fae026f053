"""DescribeTopicPartitions (75): partitions of topics in pages (KIP-966)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int16, int32, string, struct, uuid
from kclient.protocol.message import Request, Response


class DescribeTopicPartitionsResponsePartition(Struct):
    """State of a partition."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    eligible_leader_replicas: list[int] | None = array(int32, nullable="0+", default=None)
    last_known_elr: list[int] | None = array(int32, nullable="0+", default=None)
    offline_replicas: list[int] = array(int32, ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    """Topic with partitions."""

    error_code: int = int16()
    name: str | None = string(nullable="0+", map_key=True)
    topic_id: bytes = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(default=-2147483648)


class Cursor(Struct):
    """First partition of a page."""

    topic_name: str = string()
    partition_index: int = int32()


class DescribeTopicPartitionsResponse(Response, versions="0", flexible="0+"):
    """Partitions of topics, and where the next page starts."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, nullable="0+", default=None)


class DescribeTopicPartitionsTopicRequest(Struct):
    """A topic."""

    name: str = string()


class DescribeTopicPartitionsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    response=DescribeTopicPartitionsResponse,
    versions="0",
    flexible="0+",
):
    """Asks for the partitions of topics, from a cursor on."""

    topics: list[DescribeTopicPartitionsTopicRequest] = array(DescribeTopicPartitionsTopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = struct(Cursor, nullable="0+", default=None)
