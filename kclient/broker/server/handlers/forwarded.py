"""Requests of administrators that the active controller serves.

- ElectLeaders, versions 0-2.
- UnregisterBroker, version 0.
- AlterPartitionReassignments, versions 0-1; ListPartitionReassignments, version 0 (KIP-455).
- AlterClientQuotas, versions 0-1 (KIP-546).
- UpdateFeatures, versions 0-2 (KIP-584).

The broker checks what its client may do. Differences from Apache Kafka: reassignments are listed
from the metadata that this broker has; names of hosts are not resolved; a quota that is no number,
or an entity with a type twice, is refused.
"""

from collections.abc import Callable
from typing import Any

from kclient.broker.controller.partition_reassignments import list_partition_reassignments
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import ClusterAuthorizationError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response
from kclient.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from kclient.protocol.messages.node_registration import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from kclient.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
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


def _forwarded(
    request_type: type[RequestMessage],
    operation: AclOperation,
    refuse: Callable[[Any, int, str | None], Response],
) -> ServedApi:
    """Return an API whose requests need an operation on the cluster.

    Args:
        request_type: Class of the request.
        operation: The operation.
        refuse: Returns the response to a failed request, from its code and text.
    """

    def handle(services: BrokerServices, request: Request, body: RequestMessage) -> None:
        services.auth.require_cluster(request, operation)

        def on_done(outcome: Response | KafkaError) -> None:
            if isinstance(outcome, KafkaError):
                outcome = refuse(body, code_of(outcome), str(outcome))
            request.respond(outcome)

        services.controller.change(body, on_done)

    return ServedApi(request_type, handle, lambda body, code: refuse(body, code, None))


def _failed_reassignments(
    body: AlterPartitionReassignmentsRequest, code: int, text: str | None
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=text,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=code, error_message=text
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ],
    )


def _failed_features(
    _body: UpdateFeaturesRequest, code: int, text: str | None
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=text)


def _failed_quotas(
    body: AlterClientQuotasRequest, code: int, text: str | None
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=code, error_message=text, entity=each.entity
            )
            for each in body.entries
        ]
    )


def failed_quotas(body: AlterClientQuotasRequest, code: int) -> AlterClientQuotasResponse:
    """Return the response that refuses a whole request."""
    return _failed_quotas(body, code, None)


def _list_reassignments(
    services: BrokerServices, request: Request, body: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List the ongoing reassignments of all or of the named partitions."""
    services.auth.require_cluster(request, AclOperation.DESCRIBE)
    return list_partition_reassignments(services.metadata.image, body)


APIS = (
    ServedApi(ElectLeadersRequest, _elect_leaders),
    ServedApi(ListPartitionReassignmentsRequest, _list_reassignments),
    _forwarded(AlterPartitionReassignmentsRequest, AclOperation.ALTER, _failed_reassignments),
    _forwarded(AlterClientQuotasRequest, AclOperation.ALTER_CONFIGS, _failed_quotas),
    _forwarded(UpdateFeaturesRequest, AclOperation.ALTER, _failed_features),
    ServedApi(UnregisterBrokerRequest, _unregister),
)
