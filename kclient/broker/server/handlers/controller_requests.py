"""Requests of brokers to the active controller, on listeners for controllers.

- BrokerRegistration, BrokerHeartbeat, AlterPartition, AllocateProducerIds.
- Changes that clients ask a broker for: CreateTopics, CreatePartitions, DeleteTopics, CreateAcls,
  DeleteAcls, AlterUserScramCredentials, ElectLeaders, UnregisterBroker, IncrementalAlterConfigs,
  AlterConfigs, AlterPartitionReassignments, AlterClientQuotas, UpdateFeatures. The broker has
  checked what its client may do.

A response is sent when the change is committed. A controller that is not active refuses with
NOT_CONTROLLER. Differences from Apache Kafka: brokers do not wrap requests of clients in Envelope.
"""

from kclient.broker.controller.topic_requests import handle_request
from kclient.broker.network.request_channel import Request
from kclient.broker.server.handlers import acls, alter_configs, forwarded, scram_credentials, topics
from kclient.broker.server.served_api import BrokerServices, ErrorResponse, ServedApi
from kclient.common.broker_errors import code_of
from kclient.common.errors import KafkaError
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest
from kclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
)
from kclient.protocol.messages.client_quotas import AlterClientQuotasRequest
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
)
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    UnregisterBrokerRequest,
)
from kclient.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kclient.protocol.messages.update_features import UpdateFeaturesRequest
from kclient.protocol.messages.user_scram_credentials import AlterUserScramCredentialsRequest


def _served(request_type: type[RequestMessage], on_error: ErrorResponse | None = None) -> ServedApi:
    def handle(services: BrokerServices, request: Request, body: RequestMessage) -> None:
        services.auth.require_node(request)

        def on_done(outcome: ResponseMessage | KafkaError) -> None:
            if not isinstance(outcome, KafkaError):
                request.respond(outcome)
                return
            refusal = api.error_response(body, code_of(outcome))
            if refusal is None:
                request.close_connection()
            else:
                request.respond(refusal)

        services.raft.submit(lambda controller: handle_request(controller, body, on_done))

    api = ServedApi(request_type, handle, on_error)
    return api


APIS = (
    _served(BrokerRegistrationRequest),
    _served(BrokerHeartbeatRequest),
    _served(AlterPartitionRequest),
    _served(AllocateProducerIdsRequest),
    _served(CreateTopicsRequest, topics.failed_creation),
    _served(CreatePartitionsRequest, topics.failed_partitions),
    _served(DeleteTopicsRequest, topics.failed_deletion),
    _served(ElectLeadersRequest),
    _served(UnregisterBrokerRequest),
    _served(AlterPartitionReassignmentsRequest),
    _served(UpdateFeaturesRequest),
    _served(AlterClientQuotasRequest, forwarded.failed_quotas),
    _served(CreateAclsRequest, acls.failed_creation),
    _served(DeleteAclsRequest, acls.failed_deletion),
    _served(AlterUserScramCredentialsRequest, scram_credentials.failed_alteration),
    _served(IncrementalAlterConfigsRequest, alter_configs.failed_incremental_alteration),
    _served(AlterConfigsRequest, alter_configs.failed_alteration),
)
