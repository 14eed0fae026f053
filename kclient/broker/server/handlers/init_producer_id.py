"""InitProducerId, versions 0-5: the id and epoch of an idempotent or transactional producer."""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.record import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch

_KNOWS_FENCED = 4
"""First version whose clients know PRODUCER_FENCED."""


def handle(services: BrokerServices, request: Request, body: InitProducerIdRequest) -> None:
    """Allocate a producer id, or initialize the producer of a transactional id."""
    if body.transactional_id is None:
        _allocate(services, request, body)
    else:
        _initialize(services, request, body, body.transactional_id)


def _allocate(services: BrokerServices, request: Request, body: InitProducerIdRequest) -> None:
    if not services.auth.authorize_any_topic(request, AclOperation.WRITE):
        # Clients of before KIP-679 have an ACL for this alone.
        services.auth.require_cluster(request, AclOperation.IDEMPOTENT_WRITE)

    def on_done(result: int | KafkaError) -> None:
        if isinstance(result, KafkaError):
            request.respond(_failed(body, code_of(result)))
        else:
            request.respond(InitProducerIdResponse(producer_id=result, producer_epoch=0))

    services.producer_ids.generate(on_done)


def _initialize(
    services: BrokerServices, request: Request, body: InitProducerIdRequest, transactional_id: str
) -> None:
    kind = ResourceType.TRANSACTIONAL_ID
    if not services.auth.authorize(request, AclOperation.WRITE, kind, transactional_id):
        raise TransactionalIdAuthorizationError("Transactional Id authorization failed.")
    if not transactional_id:
        raise InvalidRequestError("the transactional id is empty")
    given = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)
    if (given.producer_id == NO_PRODUCER_ID) != (given.epoch == NO_PRODUCER_EPOCH):
        raise InvalidRequestError(
            f"producer: got id {given.producer_id} and epoch {given.epoch}, expected both or none"
        )

    def reply(result: ProducerIdAndEpoch | KafkaError) -> None:
        if isinstance(result, KafkaError):
            code = code_of(result)
            if code == code_of(ProducerFencedError) and request.header.api_version < _KNOWS_FENCED:
                code = code_of(InvalidProducerEpochError)
            request.respond(_failed(body, code))
        else:
            request.respond(
                InitProducerIdResponse(producer_id=result.producer_id, producer_epoch=result.epoch)
            )

    services.transactions.init_producer_id(
        transactional_id,
        body.transaction_timeout_ms,
        None if given.producer_id == NO_PRODUCER_ID else given,
        reply,
    )


def _failed(_body: InitProducerIdRequest, code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


APIS = (ServedApi(InitProducerIdRequest, handle, _failed),)
