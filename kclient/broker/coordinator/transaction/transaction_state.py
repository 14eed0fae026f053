"""States of a transaction, and the transitions between them."""

from enum import IntEnum

from kclient.common.errors import IllegalStateError


class TransactionState(IntEnum):
    """State of a transactional id; the value is its code in the log (Kafka: TransactionState)."""

    EMPTY = 0
    """The id is known and has had no transaction since its last initialization."""
    ONGOING = 1
    """Partitions have been added."""
    PREPARE_COMMIT = 2
    """The commit is decided; its markers are being written."""
    PREPARE_ABORT = 3
    """The abort is decided; its markers are being written."""
    COMPLETE_COMMIT = 4
    """All markers of the commit are written."""
    COMPLETE_ABORT = 5
    """All markers of the abort are written."""
    DEAD = 6
    """The id has expired; its tombstone is being written."""
    PREPARE_EPOCH_FENCE = 7
    """Name that requests may filter by. Here the fence and the abort are one transition."""

    @property
    def label(self) -> str:
        """Name in requests, such as ``CompleteCommit``."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and the markers are not all written."""
        return self in _PREPARED


_S = TransactionState
_PREPARED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
_AT_REST = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

# state -> states that may come before it; an abort of an empty transaction exists since
# transaction.version 2 (KIP-890)
PREVIOUS: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: _AT_REST,
    _S.ONGOING: _AT_REST | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: _AT_REST | {_S.ONGOING},
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: _AT_REST,
    _S.PREPARE_EPOCH_FENCE: frozenset(),
}


def check_transition(transactional_id: str, old: TransactionState, new: TransactionState) -> None:
    """Raise IllegalStateError if the table has no transition from `old` to `new`."""
    if old not in PREVIOUS[new]:
        raise IllegalStateError(
            f"transactional id {transactional_id!r} cannot go from {old.label} to {new.label}"
        )
