"""Requests of the metadata quorum.

On listeners for controllers:

- Vote, versions 0-2; BeginQuorumEpoch and EndQuorumEpoch, versions 0-1.
- Fetch of the metadata log, versions 4-18; FetchSnapshot, versions 0-1.
- DescribeQuorum, versions 0-2; DescribeCluster of controllers, versions 0-2 (KIP-919).

They are events of the quorum, which responds at once, or, to a Fetch without new records, later.

On all listeners: AddRaftVoter, versions 0-1, and RemoveRaftVoter, version 0 (KIP-853). The voters
of a cluster are configured (kraft.version 0), so that they are refused. A broker sends them to the
active controller, as it does with DescribeQuorum.
"""

from collections.abc import Callable

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
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
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


def _change_voters(services: BrokerServices, request: Request, body: RequestMessage) -> None:
    """Add or remove a voter; only the leader can."""
    services.auth.require_cluster(request, AclOperation.ALTER)
    services.raft.handle_request(body, request.respond)


def _sent_to_leader(
    request_type: type[RequestMessage],
    operation: AclOperation,
    refuse: Callable[[int, str], ResponseMessage],
) -> ServedApi:
    """Return an API of clients that the leader of the quorum serves.

    Args:
        request_type: Class of the request.
        operation: Operation on the cluster that the client needs.
        refuse: Returns the response to a failed request, from its code and text.
    """

    def handle(services: BrokerServices, request: Request, body: RequestMessage) -> None:
        services.auth.require_cluster(request, operation)

        def on_done(outcome: ResponseMessage | KafkaError) -> None:
            if isinstance(outcome, KafkaError):
                outcome = refuse(code_of(outcome), str(outcome))
            request.respond(_in_version_of(request, outcome))

        services.controller.send(body, on_done)

    return ServedApi(request_type, handle)


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


APIS = (
    _sent_to_leader(
        DescribeQuorumRequest,
        AclOperation.DESCRIBE,
        lambda code, text: DescribeQuorumResponse(error_code=code, error_message=text),
    ),
    _sent_to_leader(
        AddRaftVoterRequest,
        AclOperation.ALTER,
        lambda code, text: AddRaftVoterResponse(error_code=code, error_message=text),
    ),
    _sent_to_leader(
        RemoveRaftVoterRequest,
        AclOperation.ALTER,
        lambda code, text: RemoveRaftVoterResponse(error_code=code, error_message=text),
    ),
)
"""The APIs of listeners for clients."""

CONTROLLER_APIS = (
    ServedApi(VoteRequest, _handle),
    ServedApi(BeginQuorumEpochRequest, _handle),
    ServedApi(EndQuorumEpochRequest, _handle),
    ServedApi(FetchRequest, _handle),
    ServedApi(FetchSnapshotRequest, _handle),
    ServedApi(DescribeQuorumRequest, _describe),
    ServedApi(DescribeClusterRequest, _describe_controllers),
    ServedApi(AddRaftVoterRequest, _change_voters),
    ServedApi(RemoveRaftVoterRequest, _change_voters),
)
