"""The coordinator is asked before the first append to a transaction."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from kclient.broker.server.transaction_verification import Refusals, TransactionToVerify
from kclient.common import broker_errors as e
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.committed_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kclient.record.batch_header import ATTRIBUTES_AT, TRANSACTIONAL_FLAG
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.transactions import (
    commit_in_transaction,
    end_group_transaction,
    end_transaction,
    fetch_offset,
    transactional_batch,
)
from tests.support.clients.wire import Wire, batch, records_of

PID = 4000

Asked = tuple[TransactionToVerify, list[TopicPartition]]


class Coordinator:
    """Coordinator of transactions.

    Attributes:
        asked: What it was asked.
        error: Error of each partition, or None.
        refuses: Partition numbers that have the error.
        held: Responses that are not sent yet; None to respond at once.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.error: KafkaError | None = None
        self.refuses: Sequence[int] = (0, 1)
        self.held: list[Callable[[], None]] | None = None

    def ask(
        self,
        transaction: TransactionToVerify,
        partitions: Sequence[TopicPartition],
        on_response: Callable[[Refusals], None],
    ) -> None:
        self.asked.append((transaction, list(partitions)))
        error, refused = self.error, {}
        if error is not None:
            refused = {each: error for each in partitions if each.partition in self.refuses}
        if self.held is None:
            on_response(refused)
        else:
            self.held.append(lambda: on_response(refused))


@pytest.fixture
def coordinator(cluster: EmbeddedCluster) -> Iterator[Coordinator]:
    verification = cluster.broker.services.transaction_verification
    made = Coordinator()
    before = verification.ask_coordinator
    verification.ask_coordinator = made.ask
    yield made
    verification.ask_coordinator = before


def send(wire: Wire, topic: str, sequence: int = 0, *, version: int = 9, epoch: int = 0) -> int:
    records = transactional_batch([b"t%d" % sequence], PID, sequence, epoch)
    return wire.produce(topic, records, version=version, transactional_id="id").error_code


def produce_request(topic: str, *partitions: int) -> ProduceRequest:
    data = [
        PartitionProduceData(index=index, records=transactional_batch([b"t"], PID))
        for index in partitions
    ]
    return ProduceRequest(
        transactional_id="id",
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )


@pytest.mark.parametrize(
    ("version", "adds", "abortable"), [(10, False, False), (11, False, True), (12, True, True)]
)
def test_coordinator_is_asked_before_the_first_append(
    wire: Wire, topic: str, coordinator: Coordinator, version: int, *, adds: bool, abortable: bool
) -> None:
    transaction = TransactionToVerify("id", PID, 0, adds, abortable)
    assert [send(wire, topic, sequence, version=version) for sequence in (0, 1)] == [NONE, NONE]
    assert coordinator.asked == [(transaction, [TopicPartition(topic, 0)])]
    assert end_transaction(wire, PID, topic) == NONE
    assert send(wire, topic, 2, version=version) == NONE
    assert len(coordinator.asked) == 2


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (9, e.InvalidTxnStateError(), e.InvalidTxnStateError),
        (9, e.ProducerFencedError(), e.InvalidProducerEpochError),
        (9, e.InvalidPidMappingError(), e.InvalidPidMappingError),
        (9, e.CoordinatorLoadInProgressError(), e.NotEnoughReplicasError),
        (9, e.CoordinatorNotAvailableError(), e.NotEnoughReplicasError),
        (9, e.NotCoordinatorError(), e.NotEnoughReplicasError),
        (9, e.NetworkError(), e.NotEnoughReplicasError),
        (9, e.ConcurrentTransactionsError(), e.NotEnoughReplicasError),
        (12, e.ConcurrentTransactionsError(), e.ConcurrentTransactionsError),
        (10, e.TransactionAbortableError(), e.InvalidTxnStateError),
        (11, e.TransactionAbortableError(), e.TransactionAbortableError),
    ],
)
def test_refused_append_has_an_error_that_the_producer_handles(
    wire: Wire,
    topic: str,
    coordinator: Coordinator,
    version: int,
    error: KafkaError,
    expected: type[KafkaError],
) -> None:
    coordinator.error = error
    assert send(wire, topic, version=version) == code_of(expected)
    assert wire.fetch(topic, 0).high_watermark == 0
    coordinator.error = None
    assert send(wire, topic, version=version) == NONE


def test_partitions_are_refused_one_by_one(
    wire: Wire, topic: str, coordinator: Coordinator
) -> None:
    coordinator.error, coordinator.refuses = e.InvalidTxnStateError(), (1,)
    response = wire.ask(produce_request(topic, 0, 1, 7), 9, ProduceResponse)
    codes = [part.error_code for part in response.responses[0].partition_responses]
    unknown = code_of(e.UnknownTopicOrPartitionError)
    assert codes == [NONE, code_of(e.InvalidTxnStateError), unknown]
    ((_, partitions),) = coordinator.asked
    assert partitions == [TopicPartition(topic, 0), TopicPartition(topic, 1)]


def test_records_wait_for_the_coordinator(
    wire: Wire, other: Wire, topic: str, coordinator: Coordinator
) -> None:
    coordinator.held = []
    sent = wire.send(produce_request(topic, 0), 9)
    assert other.produce(topic, batch([b"x" * 500])).base_offset == 0
    wait_until(lambda: coordinator.held, "the coordinator is asked", 10)
    coordinator.held.pop()()
    correlation_id, response = wire.receive(ProduceResponse, 9)
    assert correlation_id == sent
    assert response.responses[0].partition_responses[0].base_offset == 1
    values = [record.value for record in records_of(other.fetch(topic, 0).records)]
    assert values == [b"x" * 500, b"t"]


def test_append_that_is_verified_after_the_end_of_its_transaction_is_refused(
    wire: Wire, other: Wire, topic: str, coordinator: Coordinator
) -> None:
    coordinator.held = []
    wire.send(produce_request(topic, 0), 9)
    wait_until(lambda: coordinator.held, "the coordinator is asked", 10)
    assert end_transaction(other, PID, topic, commit=False) == NONE
    coordinator.held.pop()()
    _, response = wire.receive(ProduceResponse, 9)
    refused = response.responses[0].partition_responses[0]
    assert refused.error_code == code_of(e.InvalidTxnStateError)
    assert other.fetch(topic, 0, isolation=1).last_stable_offset == 1


def test_corrupt_batch_is_refused_without_the_coordinator(
    wire: Wire, topic: str, coordinator: Coordinator
) -> None:
    """The producer repeats it; an error of the coordinator about another id would be fatal."""
    damaged = bytearray(transactional_batch([b"t"], PID))
    damaged[-1] ^= 1
    for transactional_id in (None, "id"):
        refused = wire.produce(topic, bytes(damaged), transactional_id=transactional_id)
        assert refused.error_code == code_of(e.CorruptRecordError)
    assert damaged[ATTRIBUTES_AT + 1] & TRANSACTIONAL_FLAG
    assert coordinator.asked == []


def test_plain_batch_is_not_verified(wire: Wire, topic: str, coordinator: Coordinator) -> None:
    assert wire.produce(topic, batch([b"a"]), transactional_id="id").error_code == NONE
    assert coordinator.asked == []


def commit_offset(wire: Wire, group: str, *, version: int = 4) -> int:
    (code,) = commit_in_transaction(wire, group, group, 7, PID, version=version)
    return code


@pytest.fixture
def group(wire: Wire, topic: str) -> str:
    """A group, named as a topic."""
    wire.metadata("__consumer_offsets", create=True)
    return topic


@pytest.mark.parametrize(
    ("version", "adds", "abortable"), [(3, False, False), (4, False, True), (5, True, True)]
)
def test_coordinator_is_asked_before_the_first_offset(
    wire: Wire,
    group: str,
    cluster: EmbeddedCluster,
    coordinator: Coordinator,
    version: int,
    *,
    adds: bool,
    abortable: bool,
) -> None:
    assert [commit_offset(wire, group, version=version) for _ in range(2)] == [NONE, NONE]
    transaction = TransactionToVerify("id", PID, 0, adds, abortable)
    key = cluster.broker.services.groups.partition_of(group)
    assert coordinator.asked == [(transaction, [key])]
    assert end_group_transaction(wire, group, PID) == NONE
    assert commit_offset(wire, group, version=version) == NONE
    assert len(coordinator.asked) == 2
    assert end_group_transaction(wire, group, PID) == NONE


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (4, e.InvalidTxnStateError(), e.InvalidTxnStateError),
        (4, e.ProducerFencedError(), e.InvalidProducerEpochError),
        (4, e.NotCoordinatorError(), e.NotCoordinatorError),
        (4, e.NetworkError(), e.CoordinatorLoadInProgressError),
        (1, e.NetworkError(), e.CoordinatorNotAvailableError),
        (3, e.TransactionAbortableError(), e.InvalidTxnStateError),
        (4, e.TransactionAbortableError(), e.TransactionAbortableError),
    ],
)
def test_refused_offset_has_an_error_that_the_producer_handles(
    wire: Wire,
    group: str,
    coordinator: Coordinator,
    version: int,
    error: KafkaError,
    expected: type[KafkaError],
) -> None:
    coordinator.error, coordinator.refuses = error, range(50)
    assert commit_offset(wire, group, version=version) == code_of(expected)
    assert fetch_offset(wire, group, group, require_stable=True) == (-1, NONE)


def test_offset_that_is_verified_after_the_end_of_its_transaction_is_refused(
    wire: Wire, other: Wire, group: str, coordinator: Coordinator
) -> None:
    coordinator.held = []
    part = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id="id",
        group_id=group,
        producer_id=PID,
        topics=[TxnOffsetCommitRequestTopic(name=group, partitions=[part])],
    )
    wire.send(request, 4)
    wait_until(lambda: coordinator.held, "the coordinator is asked", 10)
    assert end_group_transaction(other, group, PID, commit=False) == NONE
    coordinator.held.pop()()
    _, response = wire.receive(TxnOffsetCommitResponse, 4)
    assert response.topics[0].partitions[0].error_code == code_of(e.InvalidTxnStateError)
    assert fetch_offset(other, group, group, require_stable=True) == (-1, NONE)
