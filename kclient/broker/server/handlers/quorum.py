"""Requests of the metadata quorum, on listeners for controllers.

- Vote, versions 0-2; BeginQuorumEpoch and EndQuorumEpoch, versions 0-1.
- Fetch of the metadata log, versions 4-18; FetchSnapshot, versions 0-1.
- DescribeQuorum, versions 0-2.

They are events of the quorum, which responds at once, or, to a Fetch without new records, later.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    VoteRequest,
)


def _handle(services: BrokerServices, request: Request, body: RequestMessage) -> None:
    """Handle a request of another voter."""
    services.auth.require_cluster(request, AclOperation.CLUSTER_ACTION)
    services.raft.handle_request(body, request.respond)


def _describe(services: BrokerServices, request: Request, body: DescribeQuorumRequest) -> None:
    """Describe voters and observers; only the leader knows them."""
    services.auth.require_cluster(request, AclOperation.DESCRIBE)
    services.raft.handle_request(body, request.respond)


APIS = (
    ServedApi(VoteRequest, _handle),
    ServedApi(BeginQuorumEpochRequest, _handle),
    ServedApi(EndQuorumEpochRequest, _handle),
    ServedApi(FetchRequest, _handle),
    ServedApi(FetchSnapshotRequest, _handle),
    ServedApi(DescribeQuorumRequest, _describe),
)
