"""Verification of transactions by their coordinator before records are appended (KIP-890)."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kclient.broker.log.transaction_verification import OPEN_TRANSACTION, VerificationGuard
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition

Refusals = Mapping[TopicPartition, KafkaError]
"""Error of each partition that may not be written; the others may."""

Guards = Mapping[TopicPartition, VerificationGuard]
"""Guard of each append to a transaction."""


class TransactionToVerify(NamedTuple):
    """Transaction that a producer writes in.

    Attributes:
        transactional_id: Transactional id.
        producer_id: Producer id.
        producer_epoch: Producer epoch.
        adds_partitions: Whether the leader adds its partitions to the transaction, as for producers
            of ``transaction.version`` 2; otherwise the producer has added them.
        has_abortable_error: Whether the producer knows TRANSACTION_ABORTABLE.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds_partitions: bool
    has_abortable_error: bool


AskCoordinator = Callable[
    [TransactionToVerify, Sequence[TopicPartition], Callable[[Refusals], None]], None
]
"""Asks the coordinator of a transaction to add or verify partitions.

The callback receives the coordinator's errors. It is called once, in any thread, without locks of
the broker. CONCURRENT_TRANSACTIONS of a producer that adds partitions is repeated for a short time
before (``add.partitions.to.txn.retry.backoff.max.ms``).
"""


class StartedVerification(NamedTuple):
    """Verification before its coordinator is asked.

    Attributes:
        transaction: The transaction.
        guards: Guard of the append to each partition.
        refused: Errors of partitions that cannot be written.
        unknown: Partitions that the coordinator must be asked about.
    """

    transaction: TransactionToVerify
    guards: Guards
    refused: Refusals
    unknown: Sequence[TopicPartition]


class TransactionVerification:
    """Verification of transactions before their first append to a log.

    (Kafka: ReplicaManager.maybeSendPartitionsToTransactionCoordinator)

    Attributes:
        ask_coordinator: Asks the coordinator of a transaction; None if transactions are not
            verified.
    """

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self.ask_coordinator: AskCoordinator | None = None

    def begin(
        self, transaction: TransactionToVerify, sequences: Mapping[TopicPartition, int]
    ) -> StartedVerification:
        """Look up which partitions are part of the transaction already.

        Args:
            transaction: The transaction.
            sequences: First sequence of the append to each partition, -1 for none.
        """
        guards: dict[TopicPartition, VerificationGuard] = {}
        refused: dict[TopicPartition, KafkaError] = {}
        for key, sequence in () if self.ask_coordinator is None else sequences.items():
            try:
                guards[key] = self._replicas.partition(key).begin_verification(
                    transaction.producer_id,
                    transaction.producer_epoch,
                    sequence,
                    supports_epoch_bump=transaction.adds_partitions,
                )
            except KafkaError as error:
                refused[key] = error
        unknown = [key for key, guard in guards.items() if guard is not OPEN_TRANSACTION]
        return StartedVerification(transaction, guards, refused, unknown)

    def complete(
        self, started: StartedVerification, on_verified: Callable[[Guards, Refusals], None]
    ) -> None:
        """Ask the coordinator about the partitions that are unknown.

        Args:
            started: The verification.
            on_verified: Receives the guards of the appends and the errors of the partitions that
                may not be written; now if nothing is unknown, else in any thread.
        """
        transaction, guards, refused, unknown = started

        def on_response(errors: Refusals) -> None:
            found = {key: _producer_error(each, transaction) for key, each in errors.items()}
            on_verified(guards, {**refused, **found})

        if unknown and self.ask_coordinator is not None:
            self.ask_coordinator(transaction, unknown, on_response)
        else:
            on_verified(guards, refused)


def _producer_error(error: KafkaError, transaction: TransactionToVerify) -> KafkaError:
    """Return the error for the producer (Kafka: AddPartitionsToTxnManager)."""
    if isinstance(error, ProducerFencedError):
        return InvalidProducerEpochError(str(error))
    if isinstance(error, TransactionAbortableError) and not transaction.has_abortable_error:
        return InvalidTxnStateError(str(error))
    return error
