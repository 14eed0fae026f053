"""Decisions about partitions that are added to a transaction."""

from dataclasses import replace

import pytest

from kclient.broker.coordinator.transaction.add_partitions import add_partitions
from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.broker_errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    ProducerFencedError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.record import ProducerIdAndEpoch

S = TransactionState
A, B = TopicPartition("t", 0), TopicPartition("t", 1)
NOW = 1_000


def metadata_in(state: TransactionState) -> TransactionMetadata:
    return TransactionMetadata("id", 7, 5, 60_000, state)


def add(
    metadata: TransactionMetadata,
    *partitions: TopicPartition,
    producer: tuple[int, int] = (7, 5),
    is_pending: bool = False,
    now_ms: int = NOW,
) -> Decision:
    return add_partitions(
        metadata,
        ProducerIdAndEpoch(*producer),
        partitions,
        is_pending=is_pending,
        client_version=2,
        now_ms=now_ms,
    )


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_first_partition_opens_the_transaction(state: TransactionState) -> None:
    found = add(metadata_in(state), A).transition
    assert found is not None
    assert (found.state, found.partitions, found.start_ms) == (S.ONGOING, frozenset({A}), NOW)
    assert (found.producer, found.client_version) == ((7, 5), 2)


def test_more_partitions_keep_the_start() -> None:
    opened = add(metadata_in(S.EMPTY), A).transition
    assert opened is not None
    found = add(opened, B, now_ms=NOW + 5).transition
    assert found is not None
    assert (found.partitions, found.start_ms, found.last_update_ms) == (
        frozenset({A, B}),
        NOW,
        NOW + 5,
    )


def test_known_partitions_are_not_logged_again() -> None:
    opened = add(metadata_in(S.EMPTY), A, B).transition
    assert opened is not None
    assert add(opened, A) == Decision(ProducerIdAndEpoch(7, 5))
    # the partitions of a completed transaction are no part of the next one
    stale = replace(metadata_in(S.COMPLETE_COMMIT), partitions=frozenset({A}))
    assert add(stale, A).transition is not None


@pytest.mark.parametrize(
    ("state", "producer", "is_pending", "error"),
    [
        (S.ONGOING, (8, 6), True, ConcurrentTransactionsError),
        (S.ONGOING, (8, 6), False, InvalidPidMappingError),
        (S.ONGOING, (7, 4), False, ProducerFencedError),
        (S.PREPARE_COMMIT, (7, 6), False, ProducerFencedError),
        (S.PREPARE_COMMIT, (7, 5), False, ConcurrentTransactionsError),
        (S.PREPARE_ABORT, (7, 5), False, ConcurrentTransactionsError),
    ],
)
def test_order_of_the_checks(
    state: TransactionState, producer: tuple[int, int], is_pending: bool, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        add(metadata_in(state), A, producer=producer, is_pending=is_pending)
