"""Decision about partitions that a producer or a leader adds to a transaction, or verifies."""

from collections.abc import Collection

from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.broker_errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    ProducerFencedError,
)
from kclient.common.types import TopicPartition
from kclient.record import ProducerIdAndEpoch


def add_partitions(
    metadata: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    is_pending: bool,
    client_version: int,
    now_ms: int,
) -> Decision:
    """Decide about partitions that are added.

    Args:
        metadata: The transaction.
        producer: Producer id and epoch of the request.
        partitions: The partitions.
        is_pending: Whether a transition is being logged.
        client_version: Level of transaction.version that the producer follows.
        now_ms: Wall-clock time.

    Raises:
        ConcurrentTransactionsError: A transition is pending, or the last transaction has not ended.
        InvalidPidMappingError: The id has another producer id.
        ProducerFencedError: The producer has another epoch.
    """
    check_producer(metadata, producer, is_pending=is_pending)
    is_ongoing = metadata.state is TransactionState.ONGOING
    if is_ongoing and metadata.partitions.issuperset(partitions):
        return Decision(metadata.producer)
    moved = metadata.moved(
        TransactionState.ONGOING,
        now_ms,
        partitions=metadata.partitions.union(partitions),
        start_ms=metadata.start_ms if is_ongoing else now_ms,
        client_version=client_version,
    )
    return Decision(moved.producer, moved)


def check_producer(
    metadata: TransactionMetadata, producer: ProducerIdAndEpoch, *, is_pending: bool
) -> None:
    """Check that a producer may add partitions, or have them verified; raises as above."""
    name = f"transactional id {metadata.transactional_id!r}"
    if is_pending:
        raise ConcurrentTransactionsError(f"{name}: a transition is pending")
    if producer.producer_id != metadata.producer_id:
        raise InvalidPidMappingError(
            f"{name}: got producer id {producer.producer_id}, expected {metadata.producer_id}"
        )
    if producer.epoch != metadata.producer_epoch:
        raise ProducerFencedError(
            f"{name}: got epoch {producer.epoch}, expected {metadata.producer_epoch}"
        )
    if metadata.state.is_prepared:
        raise ConcurrentTransactionsError(f"{name}: the last transaction has not ended")
