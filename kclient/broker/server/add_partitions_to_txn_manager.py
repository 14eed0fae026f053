"""Verification of transactions by the leaders of partitions (KIP-890)."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kclient.broker.coordinator.runtime.partition_log import partition_for
from kclient.broker.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kclient.broker.log.producer_state_entry import TRANSACTION_V2
from kclient.broker.metadata.metadata_image import TRANSACTION_STATE, MetadataImage
from kclient.broker.server.transaction_verification import Refusals, TransactionToVerify
from kclient.common.broker_errors import (
    NONE,
    ConcurrentTransactionsError,
    CoordinatorNotAvailableError,
    InvalidTxnStateError,
    NetworkError,
    TransactionAbortableError,
    error_of_code,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock, Lock
from kclient.common.types import TopicPartition
from kclient.protocol.message import Response
from kclient.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kclient.record import ProducerIdAndEpoch

SendToBroker = Callable[
    [int, AddPartitionsToTxnRequest, Callable[[Response | KafkaError], None]], None
]
"""Sends a request to another broker; the callback receives the response, or the failure."""


@dataclass(frozen=True, slots=True)
class _Verification:
    """Question of a leader about a transaction."""

    transaction: TransactionToVerify
    partitions: Sequence[TopicPartition]
    deadline_ms: float
    on_response: Callable[[Refusals], None]

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.transaction.producer_id, self.transaction.producer_epoch)


class AddPartitionsToTxnManager:
    """Asks the coordinators of transactions about partitions (Kafka: AddPartitionsToTxnManager).

    Leaders verify the first batch of a transaction: a delayed batch of a transaction that has ended
    must not begin another one, which nothing would end. For producers of transaction.version 2,
    which do not add partitions themselves, it adds them.

    The lock guards the verifications that are to be repeated.

    Args:
        node_id: Id of this broker.
        coordinator: Coordinator of this broker.
        send: Sends requests to other coordinators.
        image: Returns the metadata of the cluster.
        clock: Monotonic clock.
        lock: The lock.
        retry_ms: Time between two attempts while the last transaction has not ended.
        retry_max_ms: Time after which the error is returned to the producer.
        verifies: Whether partitions that producers have added are verified.

    Attributes:
        wakeup: Called when `step` has work before the time that it returned last.
    """

    def __init__(
        self,
        node_id: int,
        coordinator: TransactionCoordinator,
        send: SendToBroker,
        image: Callable[[], MetadataImage],
        clock: Clock,
        lock: Lock,
        retry_ms: float,
        retry_max_ms: float,
        *,
        verifies: bool = True,
    ) -> None:
        self._node_id = node_id
        self._coordinator = coordinator
        self._send = send
        self._image = image
        self._clock = clock
        self._lock = lock
        self._retry_ms = retry_ms
        self._retry_max_ms = retry_max_ms
        self.verifies = verifies
        self._retries: deque[tuple[float, _Verification]] = deque()
        self.wakeup: Callable[[], None] = _nothing

    def ask(
        self,
        transaction: TransactionToVerify,
        partitions: Sequence[TopicPartition],
        on_response: Callable[[Refusals], None],
    ) -> None:
        """Verify that partitions are part of a transaction, or add them to it.

        Args:
            transaction: The transaction.
            partitions: The partitions.
            on_response: Receives the errors of the coordinator, or NetworkError if it does not
                respond.
        """
        if not (self.verifies or transaction.adds_partitions):
            on_response({})
            return
        deadline_ms = self._clock.monotonic_ms() + self._retry_max_ms
        self._ask(_Verification(transaction, partitions, deadline_ms, on_response))

    def step(self, now_ms: float) -> float | None:
        """Repeat what is due; return the time of the next repetition, or None."""
        due: list[_Verification] = []
        with self._lock:
            while self._retries and self._retries[0][0] <= now_ms:
                due.append(self._retries.popleft()[1])
        for each in due:
            self._ask(each)
        with self._lock:
            return self._retries[0][0] if self._retries else None

    def _ask(self, asked: _Verification) -> None:
        leader = self._coordinator_of(asked.transaction.transactional_id)
        if leader is None:
            error = CoordinatorNotAvailableError("the transaction coordinator has no leader")
            self._take(asked, dict.fromkeys(asked.partitions, error))
        elif leader != self._node_id:
            self._send(leader, _request(asked), partial(self._take_response, asked))
        elif asked.transaction.adds_partitions:
            self._coordinator.add_partitions(
                asked.transaction.transactional_id,
                asked.producer,
                asked.partitions,
                TRANSACTION_V2,
                partial(self._take_result, asked),
            )
        else:
            self._take(asked, self._verified(asked))

    def _coordinator_of(self, transactional_id: str) -> int | None:
        topic = self._image().topics.get(TRANSACTION_STATE)
        if topic is None:
            return None
        leader = topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader
        return None if leader < 0 else leader

    def _verified(self, asked: _Verification) -> dict[TopicPartition, KafkaError]:
        try:
            present = self._coordinator.partitions_of(
                asked.transaction.transactional_id, asked.producer
            )
        except KafkaError as error:
            return dict.fromkeys(asked.partitions, error)
        absent = TransactionAbortableError("the partition is not part of the transaction")
        return {each: absent for each in asked.partitions if each not in present}

    def _take_result(self, asked: _Verification, result: ProducerIdAndEpoch | KafkaError) -> None:
        if isinstance(result, KafkaError):
            self._take(asked, dict.fromkeys(asked.partitions, result))
        else:
            self._take(asked, {})

    def _take_response(self, asked: _Verification, response: Response | KafkaError) -> None:
        if isinstance(response, AddPartitionsToTxnResponse):
            self._take(asked, _errors(asked, response))
        else:
            error = NetworkError(f"the transaction coordinator does not respond: {response}")
            self._take(asked, dict.fromkeys(asked.partitions, error))

    def _take(self, asked: _Verification, errors: Refusals) -> None:
        """Report errors, or repeat the question while the last transaction is being ended."""
        is_concurrent = any(isinstance(e, ConcurrentTransactionsError) for e in errors.values())
        due_ms = self._clock.monotonic_ms() + self._retry_ms
        if is_concurrent and asked.transaction.adds_partitions and due_ms <= asked.deadline_ms:
            with self._lock:
                self._retries.append((due_ms, asked))
            self.wakeup()
            return
        asked.on_response(errors)


def _request(asked: _Verification) -> AddPartitionsToTxnRequest:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, number in asked.partitions:
        topic = topics.setdefault(name, AddPartitionsToTxnTopic(name=name))
        topic.partitions.append(number)
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=asked.transaction.transactional_id,
                producer_id=asked.producer.producer_id,
                producer_epoch=asked.producer.epoch,
                verify_only=not asked.transaction.adds_partitions,
                topics=list(topics.values()),
            )
        ]
    )


def _errors(
    asked: _Verification, response: AddPartitionsToTxnResponse
) -> dict[TopicPartition, KafkaError]:
    """Return the errors of a response; a partition that it does not name has one, too."""
    missing = NetworkError("the response of the transaction coordinator lacks the partition")
    if response.error_code != NONE:  # of this broker's rights, which are no matter of a producer
        error = InvalidTxnStateError(f"not verified: error code {response.error_code}")
        return dict.fromkeys(asked.partitions, error)
    codes = {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for result in response.results_by_transaction
        if result.transactional_id == asked.transaction.transactional_id
        for topic in result.topic_results
        for each in topic.results_by_partition
    }
    return {
        each: error_of_code(codes[each]) if each in codes else missing
        for each in asked.partitions
        if codes.get(each) != NONE
    }


def _nothing() -> None:
    return None
