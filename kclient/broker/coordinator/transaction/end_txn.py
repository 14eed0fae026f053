"""Decisions about the end of a transaction.

Up to version 4 of EndTxn the producer keeps its epoch. From version 5 on each end raises it, so
that a delayed request of one transaction cannot end the next one (KIP-890); the response has the
epoch of the next transaction, and a repeated request has the epoch before.
"""

from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.transaction_metadata import (
    EXHAUSTED_EPOCH,
    TransactionMetadata,
)
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.broker.log.producer_state_entry import TRANSACTION_V2
from kclient.common.broker_errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
)
from kclient.record import NO_PRODUCER_ID, ProducerIdAndEpoch

_COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
_COMMITS = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


def end_txn(
    metadata: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    *,
    commits: bool,
    is_pending: bool,
    now_ms: int,
) -> Decision:
    """Decide about an EndTxn up to version 4.

    Args:
        metadata: The transaction.
        producer: Producer id and epoch of the request.
        commits: Whether the producer commits.
        is_pending: Whether a transition is being logged.
        now_ms: Wall-clock time.

    Raises:
        InvalidPidMappingError: The id has another producer id.
        ProducerFencedError: The producer has another epoch.
        ConcurrentTransactionsError: A transition is pending, or the end is already being written.
        InvalidTxnStateError: No transaction is open, or it has ended in the other way.
    """
    if producer.producer_id != metadata.producer_id:
        raise InvalidPidMappingError(_text(metadata, f"producer id {producer.producer_id}"))
    if producer.epoch != metadata.producer_epoch:
        raise ProducerFencedError(_text(metadata, f"epoch {producer.epoch}"))
    if is_pending:
        raise ConcurrentTransactionsError(_text(metadata, "a transition is pending"))
    if metadata.state is not TransactionState.ONGOING:
        return _repeated(metadata, commits=commits)
    moved = metadata.prepared(
        commits=commits, bumps=False, version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
    )
    return Decision(moved.producer, moved)


def end_txn_and_bump(
    metadata: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    *,
    commits: bool,
    is_pending: bool,
    new_producer_id: int,
    now_ms: int,
) -> Decision | None:
    """Decide about an EndTxn from version 5 on.

    Args:
        metadata: The transaction.
        producer: Producer id and epoch of the request.
        commits: Whether the producer commits.
        is_pending: Whether a transition is being logged.
        new_producer_id: Producer id to use if that of the transaction is exhausted, or -1.
        now_ms: Wall-clock time.

    Returns:
        The decision; None if it needs a new producer id.

    Raises:
        KafkaError: As `end_txn`.
    """
    if is_pending:  # before the producer id, which the transition may change
        raise ConcurrentTransactionsError(_text(metadata, "a transition is pending"))
    is_repeated = _is_repeated(metadata, producer)
    if producer.producer_id != metadata.producer_id and not is_repeated:
        raise InvalidPidMappingError(_text(metadata, f"producer id {producer.producer_id}"))
    is_current = producer.epoch == metadata.producer_epoch and not metadata.state.is_prepared
    at_end = metadata.state.is_prepared or metadata.state in _COMPLETE
    if not (is_current or (is_repeated and at_end)):
        raise ProducerFencedError(_text(metadata, f"epoch {producer.epoch}"))
    if at_end and not is_current:
        return _repeated(metadata, commits=commits)
    if commits and metadata.state is not TransactionState.ONGOING:
        raise InvalidTxnStateError(_text(metadata, "no transaction is open"))
    # An abort without a transaction is legal: its first produce may have failed.
    return _prepared(metadata, TRANSACTION_V2, new_producer_id, now_ms, commits=commits)


def fence(
    metadata: TransactionMetadata, transaction_version: int, new_producer_id: int, now_ms: int
) -> Decision | None:
    """Decide to abort an open transaction with a raised epoch, so that its producer is fenced.

    The epoch is raised once, together with the decision: if that cannot be logged, nothing has
    changed, and a repetition raises it from the same value.

    Args:
        metadata: The open transaction.
        transaction_version: Finalized level of the cluster.
        new_producer_id: Producer id to use if that of the transaction is exhausted, or -1.
        now_ms: Wall-clock time.

    Returns:
        The decision; None if it needs a new producer id.
    """
    return _prepared(metadata, transaction_version, new_producer_id, now_ms, commits=False)


def _prepared(
    metadata: TransactionMetadata,
    version: int,
    new_producer_id: int,
    now_ms: int,
    *,
    commits: bool,
) -> Decision | None:
    rotates = metadata.is_exhausted and version >= TRANSACTION_V2
    if rotates and new_producer_id == NO_PRODUCER_ID:
        return None
    moved = metadata.prepared(
        commits=commits,
        bumps=True,
        version=version,
        next_producer_id=new_producer_id if rotates else NO_PRODUCER_ID,
        now_ms=now_ms,
    )
    return Decision(moved.next_producer, moved)


def _is_repeated(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Return whether a request is that which has led to the present epoch."""
    if producer.producer_id == metadata.producer_id:
        return metadata.producer_epoch == producer.epoch + 1
    return (
        producer == (metadata.previous_producer_id, EXHAUSTED_EPOCH)
        and metadata.producer_epoch == 0
    )


def _repeated(metadata: TransactionMetadata, *, commits: bool) -> Decision:
    """Return the response to an EndTxn after the decision about the transaction."""
    state = metadata.state
    if state is TransactionState.EMPTY or commits != (state in _COMMITS):
        raise InvalidTxnStateError(_text(metadata, "the transaction has not ended in this way"))
    if state.is_prepared:
        raise ConcurrentTransactionsError(_text(metadata, "the markers are being written"))
    return Decision(metadata.producer)


def _text(metadata: TransactionMetadata, what: str) -> str:
    return (
        f"transactional id {metadata.transactional_id!r}: {what}; producer id"
        f" {metadata.producer_id}, epoch {metadata.producer_epoch}, {metadata.state.label}"
    )
