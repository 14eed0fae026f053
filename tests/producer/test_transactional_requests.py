"""Requests of the transaction manager: InitProducerId, its retries, and the order of the queue."""

import threading

import pytest

from kclient.client.client_request import ClientResponse, RequestBuilder, SimpleBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import DisconnectedError, IllegalStateError, KafkaError
from kclient.producer.errors import ProducerFatalError
from kclient.producer.producer_batch import ProducerIdAndEpoch
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_state import State
from kclient.producer.transactional_requests import TransactionalRequests
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.support.virtual.producer_world import ProducerWorld, world


class Numbered:
    """A request that is recognized by its transaction timeout."""

    def __init__(self, number: int, priority: int) -> None:
        self.number = number
        self.priority = priority
        self.errors: list[KafkaError] = []

    def builder(self) -> RequestBuilder:
        return SimpleBuilder(InitProducerIdRequest(transaction_timeout_ms=self.number))

    def handle(self, response: ClientResponse) -> KafkaError | None:
        return self.errors.pop() if self.errors else None


def requests_of(producer: ProducerWorld) -> TransactionalRequests:
    assert producer.transactions is not None
    return TransactionalRequests(
        producer.network_client(),
        producer.metadata,
        producer.transactions,
        ExponentialBackoff(100, 1000, lambda: 0.0),
        30_000,
        threading.RLock(),
        lambda callback: callback,
    )


def sent_number(producer: ProducerWorld) -> int | None:
    """Returns the number of the request in flight, and completes it."""
    sent = producer.client.requests(InitProducerIdRequest)
    if not sent:
        return None
    assert isinstance(sent[0].body, InitProducerIdRequest)
    producer.client.end("0", InitProducerIdResponse())
    producer.client.poll(0, producer.clock.now_ms)
    return sent[0].body.transaction_timeout_ms


def test_requests_are_sent_one_at_a_time_by_priority() -> None:
    producer = world()
    requests = requests_of(producer)
    for number, priority in enumerate([3, 2, 3, 2]):
        requests.enqueue(Numbered(number, priority))
    numbers = []
    for _ in range(4):
        assert requests.step(0) == float("inf")
        assert requests.step(0) == float("inf")
        assert len(producer.client.requests(InitProducerIdRequest)) == 1
        numbers.append(sent_number(producer))
    assert numbers == [1, 3, 0, 2]
    assert requests.step(0) == float("inf")
    assert sent_number(producer) is None


def test_failed_request_is_retried_after_a_backoff_before_later_ones() -> None:
    producer = world()
    requests = requests_of(producer)
    first = Numbered(1, 2)
    first.errors = [KafkaError("retry")]
    requests.enqueue(first)
    requests.enqueue(Numbered(2, 2))
    now_ms = producer.clock.now_ms
    requests.step(now_ms)
    assert sent_number(producer) == 1
    assert str(requests.last_error) == "retry"
    assert requests.step(now_ms + 40) == 60
    assert sent_number(producer) is None
    requests.step(now_ms + 100)
    assert sent_number(producer) == 1
    assert requests.last_error is None
    requests.step(now_ms + 100)
    assert sent_number(producer) == 2


def test_nothing_is_sent_after_a_fatal_error() -> None:
    producer = world()
    requests = requests_of(producer)
    requests.enqueue(Numbered(1, 2))
    assert producer.transactions is not None
    producer.transactions.fail(KafkaError("fatal"))
    assert requests.step(0) == float("inf")
    assert sent_number(producer) is None


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
    transactions.state = State.UNINITIALIZED
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
    transactions.state = State.UNINITIALIZED
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
    transactions.state = State.UNINITIALIZED
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", InitProducerIdResponse(error_code=31))
    producer.step()
    producer.step()
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        future.result(0)
    assert isinstance(producer.sender.failure, ProducerFatalError)
