"""Requests of the metadata quorum.

On listeners for controllers:

- Vote, versions 0-2; BeginQuorumEpoch and EndQuorumEpoch, versions 0-1.
- Fetch of the metadata log, versions 4-18; FetchSnapshot, versions 0-1.
- DescribeQuorum, versions 0-2; DescribeCluster of controllers, versions 0-2 (KIP-919).

They are events of the quorum, which responds at once, or, to a Fetch without new records, later.

On listeners for clients: DescribeQuorum, which the active controller serves.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import MismatchedEndpointTypeError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kclient.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    VoteRequest,
)

_WITH_NODES = 2
_CONTROLLERS = 2
_WRONG_ENDPOINT = (
    "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type "
    "BROKER"
)


def _handle(services: BrokerServices, request: Request, body: RequestMessage) -> None:
    """Handle a request of another voter."""
    services.auth.require_node(request)
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


def _describe_controllers(
    services: BrokerServices, _request: Request, body: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Return the voters, and the active controller as far as this node knows it."""
    if body.endpoint_type != _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=code_of(MismatchedEndpointTypeError()),
            error_message=_WRONG_ENDPOINT,
            endpoint_type=body.endpoint_type,
        )
    nodes = map(services.raft.controller_node, sorted(services.raft.voters.ids))
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=services.cluster_id,
        controller_id=services.raft.leader_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port, rack=None)
            for node in nodes
            if node is not None
        ],
    )


APIS = (ServedApi(DescribeQuorumRequest, _ask),)
"""The APIs of listeners for clients."""

CONTROLLER_APIS = (
    ServedApi(VoteRequest, _handle),
    ServedApi(BeginQuorumEpochRequest, _handle),
    ServedApi(EndQuorumEpochRequest, _handle),
    ServedApi(FetchRequest, _handle),
    ServedApi(FetchSnapshotRequest, _handle),
    ServedApi(DescribeQuorumRequest, _describe),
    ServedApi(DescribeClusterRequest, _describe_controllers),
)
