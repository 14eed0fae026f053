"""Request classes by API."""

from collections.abc import Mapping
from types import MappingProxyType

from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.committed_offsets import OffsetCommitRequest, OffsetFetchRequest
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kclient.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kclient.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)

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
