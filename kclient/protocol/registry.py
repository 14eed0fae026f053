"""Request classes by API."""

from collections.abc import Mapping
from types import MappingProxyType

from kclient.protocol.message import Request
from kclient.protocol.messages.acls import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from kclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    EnvelopeRequest,
)
from kclient.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kclient.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kclient.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest
from kclient.protocol.messages.describe_producers import DescribeProducersRequest
from kclient.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
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
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kclient.protocol.messages.log_dirs import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kclient.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
)
from kclient.protocol.messages.offset_delete import OffsetDeleteRequest
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    VoteRequest,
)
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from kclient.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kclient.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kclient.protocol.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
)
from kclient.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kclient.protocol.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kclient.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    WriteTxnMarkersRequest,
)
from kclient.protocol.messages.update_features import UpdateFeaturesRequest
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)

_REQUEST_TYPES: tuple[type[Request], ...] = (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddRaftVoterRequest,
    AllocateProducerIdsRequest,
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterReplicaLogDirsRequest,
    AlterShareGroupOffsetsRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    AssignReplicasToDirsRequest,
    BeginQuorumEpochRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ConsumerGroupDescribeRequest,
    ControllerRegistrationRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeDelegationTokenRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeTopicPartitionsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    EndQuorumEpochRequest,
    EndTxnRequest,
    EnvelopeRequest,
    ExpireDelegationTokenRequest,
    FetchRequest,
    FetchSnapshotRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    RemoveRaftVoterRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ShareGroupDescribeRequest,
    SyncGroupRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
    WriteTxnMarkersRequest,
)

REQUESTS: Mapping[int, type[Request]] = MappingProxyType(
    {request.api_key: request for request in sorted(_REQUEST_TYPES, key=lambda each: each.api_key)}
)
"""Request classes by `ApiKey`; the response class is `Request.response_type`."""
