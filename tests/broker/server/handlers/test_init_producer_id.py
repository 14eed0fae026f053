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


def test_transactional_id_fails_without_retry(wire: Wire) -> None:
    response = wire.ask(InitProducerIdRequest(transactional_id="t"), 4, InitProducerIdResponse)
    assert response.error_code == 53
