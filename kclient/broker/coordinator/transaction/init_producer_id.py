"""Decision about an InitProducerId with a transactional id.

The initialization of a producer fences its predecessor: it aborts the open transaction and raises
the epoch (KIP-98). A producer that gives its id and epoch raises its own epoch, and is fenced if
another one has been initialized since (KIP-360).
"""

from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.end_txn import fence
from kclient.broker.coordinator.transaction.transaction_metadata import (
    EXHAUSTED_EPOCH,
    TransactionMetadata,
)
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.broker_errors import ConcurrentTransactionsError, ProducerFencedError
from kclient.record import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch


def init_producer_id(
    metadata: TransactionMetadata,
    given: ProducerIdAndEpoch | None,
    timeout_ms: int,
    *,
    is_pending: bool,
    transaction_version: int,
    new_producer_id: int,
    now_ms: int,
) -> Decision | None:
    """Decide about the initialization of a known id (Kafka: prepareInitProducerIdTransit).

    Args:
        metadata: The transaction.
        given: Producer id and epoch of the request, None if it has none.
        timeout_ms: Longest time of the next transactions.
        is_pending: Whether a transition is being logged.
        transaction_version: Finalized level of the cluster.
        new_producer_id: Producer id to use if that of the transaction is exhausted, or -1.
        now_ms: Wall-clock time.

    Returns:
        The decision; None if it needs a new producer id.

    Raises:
        ConcurrentTransactionsError: A transition is pending, or the last transaction has not ended.
        ProducerFencedError: Another producer has been initialized since.
    """
    if is_pending:
        raise ConcurrentTransactionsError(_text(metadata, "a transition is pending"))
    _check_producer(metadata, given)
    if metadata.state.is_prepared:
        raise ConcurrentTransactionsError(_text(metadata, "the transaction has not ended"))
    if metadata.state is TransactionState.ONGOING:
        aborted = fence(metadata, transaction_version, new_producer_id, now_ms)
        error = ConcurrentTransactionsError(_text(metadata, "the open transaction is aborted"))
        return None if aborted is None else aborted._replace(error=error)
    is_current = given is None or given.epoch == metadata.producer_epoch
    if metadata.is_exhausted and is_current:
        return _rotated(metadata, given, timeout_ms, new_producer_id, now_ms)
    return _raised(metadata, given, timeout_ms, now_ms)


def first_decision(
    transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int
) -> Decision:
    """Return the decision about the initialization of an unknown id."""
    metadata = TransactionMetadata(
        transactional_id,
        producer_id,
        0,
        timeout_ms,
        TransactionState.EMPTY,
        last_update_ms=now_ms,
    )
    return Decision(metadata.producer, metadata)


def _check_producer(metadata: TransactionMetadata, given: ProducerIdAndEpoch | None) -> None:
    """Check the producer id of a request; the epoch is checked where it is raised."""
    if given is None or NO_PRODUCER_EPOCH in (given.epoch, metadata.producer_epoch):
        return
    if given.producer_id == metadata.producer_id:
        return
    # The response with the next producer id may have been lost.
    was_exhausted = given.epoch >= EXHAUSTED_EPOCH
    if given.producer_id != metadata.previous_producer_id or not was_exhausted:
        raise ProducerFencedError(_text(metadata, f"producer id {given.producer_id} is fenced"))


def _rotated(
    metadata: TransactionMetadata,
    given: ProducerIdAndEpoch | None,
    timeout_ms: int,
    new_producer_id: int,
    now_ms: int,
) -> Decision | None:
    if new_producer_id == NO_PRODUCER_ID:
        return None
    moved = metadata.moved(
        TransactionState.EMPTY,
        now_ms,
        producer_id=new_producer_id,
        producer_epoch=0,
        previous_producer_id=metadata.producer_id,
        last_producer_epoch=NO_PRODUCER_EPOCH if given is None else metadata.producer_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=-1,
    )
    return Decision(moved.producer, moved)


def _raised(
    metadata: TransactionMetadata, given: ProducerIdAndEpoch | None, timeout_ms: int, now_ms: int
) -> Decision:
    stored = metadata.producer_epoch
    if given is not None and stored not in (given.epoch, NO_PRODUCER_EPOCH):
        if given.epoch != metadata.last_producer_epoch:
            raise ProducerFencedError(_text(metadata, f"epoch {given.epoch} is fenced"))
        return Decision(metadata.producer)  # the response was lost
    moved = metadata.moved(
        TransactionState.EMPTY,
        now_ms,
        producer_epoch=stored + 1,
        last_producer_epoch=NO_PRODUCER_EPOCH if given is None else stored,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=-1,
    )
    return Decision(moved.producer, moved)


def _text(metadata: TransactionMetadata, what: str) -> str:
    return f"transactional id {metadata.transactional_id!r}: {what}"
