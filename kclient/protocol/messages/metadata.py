"""The cluster's brokers, topics and partitions.

- Metadata (3): brokers, topics and partition leaders.
- DescribeCluster (60): brokers and controller, without topics (KIP-700).
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string, uuid
from kclient.protocol.message import Request, Response
from kclient.protocol.types import INT32_MIN


class MetadataResponseBroker(Struct):
    """Live broker."""

    node_id: int = int32(map_key=True)
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    """A partition with its leader and replicas."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    """Topic with its partitions, or an error."""

    error_code: int = int16()
    name: str | None = string(nullable="12+", map_key=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=INT32_MIN)


class MetadataResponse(Response, versions="0-13", flexible="9+"):
    """Cluster as known to the broker."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=INT32_MIN)
    error_code: int = int16("13+", ignorable=True)


class MetadataRequestTopic(Struct):
    """Requested topic, by name or by id."""

    topic_id: bytes = uuid("10+", ignorable=True)
    name: str | None = string(nullable="10+")


class MetadataRequest(
    Request, api_key=ApiKey.METADATA, response=MetadataResponse, versions="0-13", flexible="9+"
):
    """Request for topics: null requests all, an empty list none.

    Version 0 has no null: there an empty list means all.
    """

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


class DescribeClusterBroker(Struct):
    """A broker or a controller."""

    broker_id: int = int32(map_key=True)
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


class DescribeClusterResponse(Response, versions="0-2", flexible="0+"):
    """The cluster."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=INT32_MIN)


class DescribeClusterRequest(
    Request,
    api_key=ApiKey.DESCRIBE_CLUSTER,
    response=DescribeClusterResponse,
    versions="0-2",
    flexible="0+",
):
    """Request for the cluster; endpoint type 1 is brokers, 2 is controllers."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")
