"""Requests of the metadata quorum.

On listeners for controllers:

- Vote, versions 0-2; BeginQuorumEpoch and EndQuorumEpoch, versions 0-1.
- Fetch of the metadata log, versions 4-18; FetchSnapshot, versions 0-1.
- DescribeQuorum, versions 0-2.

They are events of the quorum, which responds at once, or, to a Fetch without new records, later.

On listeners for clients: DescribeQuorum, which the active controller serves.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import code_of
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    VoteRequest,
)

_WITH_NODES = 2


def _handle(services: BrokerServices, request: Request, body: RequestMessage) -> None:
    """Handle a request of another voter."""
    services.auth.require_cluster(request, AclOperation.CLUSTER_ACTION)
    services.raft.handle_request(body, request.respond)


def _describe(services: BrokerServices, request: Request, body: DescribeQuorumRequest) -> None:
    """Describe voters and observers; only the leader knows them."""
    services.auth.require_cluster(request, AclOperation.DESCRIBE)
    services.raft.handle_request(
        body, lambda response: request.respond(_in_version_of(request, response))
    )


def _ask(services: BrokerServices, request: Request, body: DescribeQuorumRequest) -> None:
    """Let the leader of the quorum describe it."""
    services.auth.require_cluster(request, AclOperation.DESCRIBE)

    def on_done(outcome: DescribeQuorumResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            outcome = DescribeQuorumResponse(
                error_code=code_of(outcome), error_message=str(outcome)
            )
        request.respond(_in_version_of(request, outcome))

    services.controller.send(body, on_done)


def _in_version_of(request: Request, response: ResponseMessage) -> ResponseMessage:
    """Leave out the addresses of nodes, which older versions do not have."""
    if isinstance(response, DescribeQuorumResponse) and request.header.api_version < _WITH_NODES:
        response.nodes = []
    return response


APIS = (ServedApi(DescribeQuorumRequest, _ask),)
"""The APIs of listeners for clients."""

CONTROLLER_APIS = (
    ServedApi(VoteRequest, _handle),
    ServedApi(BeginQuorumEpochRequest, _handle),
    ServedApi(EndQuorumEpochRequest, _handle),
    ServedApi(FetchRequest, _handle),
    ServedApi(FetchSnapshotRequest, _handle),
    ServedApi(DescribeQuorumRequest, _describe),
)
