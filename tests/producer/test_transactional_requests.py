"""Requests of an idempotent producer: InitProducerId and its retries."""

import pytest

from kclient.common.errors import DisconnectedError, IllegalStateError, KafkaError
from kclient.producer.errors import ProducerFatalError
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_state import State
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.record import ProducerIdAndEpoch
from tests.support.virtual.producer_world import world


def test_illegal_transitions_of_the_producer_id_raise() -> None:
    manager = SequenceManager()
    with pytest.raises(IllegalStateError, match="UNINITIALIZED cannot become READY"):
        manager.initialized(ProducerIdAndEpoch(7, 0))
    manager.begin_initializing()
    with pytest.raises(IllegalStateError, match="INITIALIZING cannot become INITIALIZING"):
        manager.begin_initializing()
    manager.fail(KafkaError("fatal"))
    assert manager.state is State.FATAL_ERROR
    with pytest.raises(IllegalStateError, match="FATAL_ERROR cannot become INITIALIZING"):
        manager.begin_initializing()


def test_nothing_is_sent_before_the_producer_id_is_known() -> None:
    fresh = world()
    transactions = fresh.transactions
    assert transactions is not None
    transactions.producer = transactions.producer._replace(producer_id=-1)
    transactions._move_to(State.UNINITIALIZED)
    fresh.send(b"x")
    fresh.step()
    assert fresh.client.requests() == []
    (asked,) = fresh.client.requests(InitProducerIdRequest)
    assert asked.body == InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=2**31 - 1
    )
    fresh.step()
    assert len(fresh.client.requests(InitProducerIdRequest)) == 1
    assert fresh.client.polled_ms[-1] == 100


@pytest.mark.parametrize("code", [14, 15, 7])
def test_init_producer_id_is_retried(code: int) -> None:
    producer = world()
    transactions = producer.transactions
    assert transactions is not None
    transactions._move_to(State.UNINITIALIZED)
    producer.step()
    producer.client.end("0", InitProducerIdResponse(error_code=code))
    producer.step()
    producer.step(50)
    assert producer.client.requests(InitProducerIdRequest) == []
    producer.step(60)
    producer.client.end("0", error=DisconnectedError("gone"))
    producer.step()
    producer.step(250)
    producer.client.end("0", InitProducerIdResponse(producer_id=9, producer_epoch=0))
    producer.send(b"x")
    producer.settle()
    assert producer.broker[0].log[0].producer_id == 9


def test_permanent_init_producer_id_error_is_fatal() -> None:
    producer = world()
    transactions = producer.transactions
    assert transactions is not None
    transactions._move_to(State.UNINITIALIZED)
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", InitProducerIdResponse(error_code=31))
    producer.step()
    producer.step()
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        future.result(0)
    assert isinstance(producer.sender.failure, ProducerFatalError)
