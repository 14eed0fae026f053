"""InitProducerId requests."""

from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.support.clients.wire import Wire


def test_producer_ids_are_unique(wire: Wire, other: Wire) -> None:
    ids = [
        connection.ask(
            InitProducerIdRequest(transactional_id=None), 0, InitProducerIdResponse
        ).producer_id
        for connection in (wire, other, wire, other)
    ]
    assert len(set(ids)) == 4


def test_transactional_id_without_coordinator_is_retriable(wire: Wire) -> None:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
    assert wire.ask(request, 4, InitProducerIdResponse).error_code == 16
