"""Arguments and results of the calls of `AdminClient` for transactions."""

from enum import StrEnum
from typing import NamedTuple

from kclient.admin.admin_types import ProducerState
from kclient.common.types import Node, TopicPartition


class TransactionState(StrEnum):
    """State of a transaction at its coordinator (Kafka: TransactionState).

    A name of a newer broker is UNKNOWN.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, value: object) -> "TransactionState":
        return cls.UNKNOWN


class TransactionListing(NamedTuple):
    """A transactional id and its transaction (Kafka: TransactionListing)."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionDescription(NamedTuple):
    """Transaction of a transactional id (Kafka: TransactionDescription).

    Attributes:
        transactional_id: Transactional id.
        coordinator: Its coordinator.
        state: State of the transaction.
        producer_id: Producer id.
        producer_epoch: Producer epoch.
        transaction_timeout_ms: Time in ms after which the coordinator aborts the transaction.
        transaction_start_time_ms: Time of its start in ms since 1970, or None.
        topic_partitions: Partitions that are part of it and have no marker yet, as far as the
            client may describe their topics.
    """

    transactional_id: str
    coordinator: Node
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: frozenset[TopicPartition]


class FencedProducer(NamedTuple):
    """Producer id and epoch with which producers of a transactional id were fenced."""

    producer_id: int
    producer_epoch: int


class HangingTransaction(NamedTuple):
    """Open transaction of a producer in a partition that no coordinator will end."""

    partition: TopicPartition
    producer: ProducerState
