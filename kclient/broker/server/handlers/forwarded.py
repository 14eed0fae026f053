"""Requests of administrators that the active controller serves.

- ElectLeaders, versions 0-2.
- UnregisterBroker, version 0.

The broker checks what its client may do.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import ClusterAuthorizationError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.leaders_and_reassignments import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from kclient.protocol.messages.node_registration import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

_WITH_ERROR = 1


def _elect_leaders(services: BrokerServices, request: Request, body: ElectLeadersRequest) -> None:
    """Elect leaders of partitions, all of them if the request names none (KIP-460)."""

    def on_done(outcome: ElectLeadersResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            version = request.header.api_version
            outcome = _failed_elections(body, code_of(outcome), version)
        request.respond(outcome)

    if services.auth.authorize_cluster(request, AclOperation.ALTER):
        services.controller.change(body, on_done)
    else:
        on_done(ClusterAuthorizationError())


def _failed_elections(body: ElectLeadersRequest, code: int, version: int) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code if version >= _WITH_ERROR else 0,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersPartitionResult(
                        partition_id=number, error_code=code, error_message=None
                    )
                    for number in topic.partitions
                ],
            )
            for topic in body.topic_partitions or ()
        ],
    )


def _unregister(services: BrokerServices, request: Request, body: UnregisterBrokerRequest) -> None:
    """Remove the registration of a broker that has stopped."""
    services.auth.require_cluster(request, AclOperation.ALTER)

    def on_done(outcome: UnregisterBrokerResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            outcome = UnregisterBrokerResponse(
                error_code=code_of(outcome), error_message=str(outcome)
            )
        request.respond(outcome)

    services.controller.change(
        body, on_done, lambda _response, image: image.broker(body.broker_id) is None
    )


APIS = (
    ServedApi(ElectLeadersRequest, _elect_leaders),
    ServedApi(UnregisterBrokerRequest, _unregister),
)
