"""DescribeCluster (60): brokers and controller, without topics (KIP-700)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string
from kclient.protocol.message import Request, Response
from kclient.protocol.types import INT32_MIN


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
