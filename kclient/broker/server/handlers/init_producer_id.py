"""InitProducerId, versions 0-5: a producer id for an idempotent producer.

Differences from Apache Kafka: transactions are not served; a transactional id fails with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which clients do not retry.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    InvalidRequestError,
    TransactionalIdAuthorizationError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def handle(services: BrokerServices, request: Request, body: InitProducerIdRequest) -> None:
    """Allocate a new producer id, with epoch 0."""
    if body.transactional_id is not None:
        if not body.transactional_id:
            raise InvalidRequestError("the transactional id is empty")
        raise TransactionalIdAuthorizationError("transactions are not served by this broker")

    if not services.auth.authorize_any_topic(request, AclOperation.WRITE):
        # Clients of before KIP-679 have an ACL for this alone.
        services.auth.require_cluster(request, AclOperation.IDEMPOTENT_WRITE)

    def on_done(result: int | KafkaError) -> None:
        if isinstance(result, KafkaError):
            request.respond(_failed(body, code_of(result)))
        else:
            request.respond(InitProducerIdResponse(producer_id=result, producer_epoch=0))

    services.producer_ids.generate(on_done)


def _failed(_body: InitProducerIdRequest, code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


APIS = (ServedApi(InitProducerIdRequest, handle, _failed),)
