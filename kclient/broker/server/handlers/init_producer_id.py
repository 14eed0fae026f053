"""InitProducerId, versions 0-5: a producer id for an idempotent producer.

Differences from Apache Kafka: transactions are not served; a transactional id fails with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which clients do not retry.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
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

    def on_done(result: int | KafkaError) -> None:
        if isinstance(result, KafkaError):
            request.respond(InitProducerIdResponse(error_code=code_of(result)))
        else:
            request.respond(InitProducerIdResponse(producer_id=result, producer_epoch=0))

    services.producer_ids.generate(on_done)


APIS = (ServedApi(InitProducerIdRequest, handle),)
