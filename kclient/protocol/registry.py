"""Request classes by API."""

from collections.abc import Mapping
from types import MappingProxyType

from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest
from kclient.protocol.messages.create_topics import CreateTopicsRequest
from kclient.protocol.messages.delete_groups import DeleteGroupsRequest
from kclient.protocol.messages.delete_records import DeleteRecordsRequest
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest
from kclient.protocol.messages.describe_cluster import DescribeClusterRequest
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.join_group import JoinGroupRequest
from kclient.protocol.messages.leave_group import LeaveGroupRequest
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.protocol.messages.list_offsets import ListOffsetsRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.offset_commit import OffsetCommitRequest
from kclient.protocol.messages.offset_fetch import OffsetFetchRequest
from kclient.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.sync_group import SyncGroupRequest

_REQUEST_TYPES: tuple[type[Request], ...] = (
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    SyncGroupRequest,
)

REQUESTS: Mapping[int, type[Request]] = MappingProxyType(
    {request.api_key: request for request in sorted(_REQUEST_TYPES, key=lambda each: each.api_key)}
)
"""Request classes by `ApiKey`; the response class is `Request.response_type`."""
