"""States of a producer's id and transaction, as tables (Kafka: TransactionManager.State)."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class State(Enum):
    """State of the producer; an idempotent one without transactional id uses four of them."""

    __hash__ = object.__hash__

    UNINITIALIZED = "there is no producer id"
    INITIALIZING = "a producer id, or the next epoch, is requested"
    READY = "there is a producer id, and no transaction"
    IN_TRANSACTION = "records are part of the transaction"
    COMMITTING = "queued records are sent, then the transaction is committed"
    ABORTING = "batches in flight are awaited, then the transaction is aborted"
    ABORTABLE_ERROR = "the transaction has failed and can only be aborted"
    FATAL_ERROR = "the producer has failed and can only be closed"


_S = State

TRANSITIONS: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        _S.UNINITIALIZED: frozenset({_S.INITIALIZING}),
        _S.INITIALIZING: frozenset({_S.READY, _S.UNINITIALIZED}),
        # UNINITIALIZED: an idempotent producer whose id has no epochs left requests a new one.
        _S.READY: frozenset({_S.IN_TRANSACTION, _S.UNINITIALIZED}),
        _S.IN_TRANSACTION: frozenset({_S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR}),
        _S.COMMITTING: frozenset({_S.READY, _S.INITIALIZING, _S.ABORTABLE_ERROR}),
        _S.ABORTING: frozenset({_S.READY, _S.INITIALIZING}),
        _S.ABORTABLE_ERROR: frozenset({_S.ABORTING}),
        _S.FATAL_ERROR: frozenset(),
    }
)
"""States that may follow each state; FATAL_ERROR may follow all."""

CALLS: Mapping[str, Mapping[State, State]] = MappingProxyType(
    {
        "init_transactions": {_S.UNINITIALIZED: _S.INITIALIZING},
        "begin_transaction": {_S.READY: _S.IN_TRANSACTION},
        "send": {_S.IN_TRANSACTION: _S.IN_TRANSACTION},
        "send_offsets_to_transaction": {_S.IN_TRANSACTION: _S.IN_TRANSACTION},
        "commit_transaction": {_S.IN_TRANSACTION: _S.COMMITTING},
        "abort_transaction": {_S.IN_TRANSACTION: _S.ABORTING, _S.ABORTABLE_ERROR: _S.ABORTING},
    }
)
"""States that allow a call of the application, with the state that follows."""

ADVICE: Mapping[State, str] = MappingProxyType(
    {
        _S.UNINITIALIZED: "call init_transactions() first",
        _S.INITIALIZING: "call init_transactions() again, which waits until it has ended",
        _S.READY: "call begin_transaction() first",
        _S.IN_TRANSACTION: "end the transaction with commit_transaction() or abort_transaction()",
        _S.COMMITTING: "call commit_transaction() again, which returns the outcome",
        _S.ABORTING: "call abort_transaction() again, which returns the outcome",
        _S.ABORTABLE_ERROR: "call abort_transaction()",
        _S.FATAL_ERROR: "close the producer",
    }
)
"""What the application can do in each state."""
