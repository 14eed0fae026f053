"""States of a transaction and their transitions."""

import pytest

from kclient.broker.coordinator.transaction.transaction_state import (
    PREVIOUS,
    TransactionState,
    check_transition,
)
from kclient.common.errors import IllegalStateError

S = TransactionState


def test_each_transition_exists_only_if_the_table_has_it() -> None:
    for old in S:
        for new in S:
            if old in PREVIOUS[new]:
                check_transition("id", old, new)
            else:
                with pytest.raises(IllegalStateError, match=f"from {old.label} to {new.label}"):
                    check_transition("id", old, new)


def test_decided_transaction_only_completes_in_the_same_way() -> None:
    assert [new for new in S if S.PREPARE_COMMIT in PREVIOUS[new]] == [S.COMPLETE_COMMIT]
    assert [new for new in S if S.PREPARE_ABORT in PREVIOUS[new]] == [S.COMPLETE_ABORT]
    assert [new for new in S if S.DEAD in PREVIOUS[new]] == []


def test_labels_are_those_of_kafka() -> None:
    labels = "Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead"
    assert [state.label for state in S] == [*labels.split(), "PrepareEpochFence"]
