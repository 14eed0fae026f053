"""Decisions about InitProducerId with a transactional id."""

from dataclasses import replace

import pytest

from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.init_producer_id import (
    first_decision,
    init_producer_id,
)
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.broker_errors import ConcurrentTransactionsError, ProducerFencedError
from kclient.common.types import TopicPartition
from kclient.record import ProducerIdAndEpoch

S = TransactionState
NOW = 1_000
AT_REST = [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT]


def metadata_in(state: TransactionState, epoch: int = 5) -> TransactionMetadata:
    return TransactionMetadata("id", 7, epoch, 60_000, state, start_ms=3)


def decide(
    metadata: TransactionMetadata,
    given: tuple[int, int] | None = None,
    *,
    is_pending: bool = False,
    new_producer_id: int = -1,
    transaction_version: int = 2,
) -> Decision | None:
    return init_producer_id(
        metadata,
        None if given is None else ProducerIdAndEpoch(*given),
        30_000,
        is_pending=is_pending,
        transaction_version=transaction_version,
        new_producer_id=new_producer_id,
        now_ms=NOW,
    )


def moved(decision: Decision | None) -> TransactionMetadata:
    assert decision is not None
    assert decision.transition is not None
    return decision.transition


def test_unknown_id_starts_with_epoch_0() -> None:
    decision = first_decision("id", 42, 30_000, NOW)
    assert decision.producer == (42, 0)
    found = moved(decision)
    assert (found.state, found.timeout_ms) == (S.EMPTY, 30_000)


@pytest.mark.parametrize("state", AT_REST)
def test_each_initialization_raises_the_epoch(state: TransactionState) -> None:
    decision = decide(metadata_in(state))
    found = moved(decision)
    assert decision is not None
    assert decision.producer == found.producer == (7, 6)
    assert (found.state, found.timeout_ms, found.start_ms) == (S.EMPTY, 30_000, -1)
    assert found.last_producer_epoch == -1


@pytest.mark.parametrize("state", AT_REST)
def test_producer_raises_its_own_epoch_and_may_repeat_that(state: TransactionState) -> None:
    found = moved(decide(metadata_in(state), (7, 5)))
    assert (found.producer, found.last_producer_epoch) == ((7, 6), 5)
    assert decide(found, (7, 5)) == Decision(ProducerIdAndEpoch(7, 6))
    for given in ((7, 4), (7, 7), (8, 6), (8, 5)):
        with pytest.raises(ProducerFencedError):
            decide(found, given)


def test_repetition_after_another_initialization_is_fenced() -> None:
    other = moved(decide(moved(decide(metadata_in(S.EMPTY), (7, 5)))))
    with pytest.raises(ProducerFencedError):
        decide(other, (7, 5))


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_transaction_that_has_not_ended_delays_the_producer(state: TransactionState) -> None:
    with pytest.raises(ConcurrentTransactionsError):
        decide(metadata_in(state))


def test_pending_transition_delays_the_producer() -> None:
    with pytest.raises(ConcurrentTransactionsError):
        decide(metadata_in(S.EMPTY), (8, 8), is_pending=True)


@pytest.mark.parametrize("transaction_version", [0, 2])
def test_open_transaction_is_aborted_first(transaction_version: int) -> None:
    ongoing = replace(metadata_in(S.ONGOING), partitions=frozenset({TopicPartition("t", 1)}))
    decision = decide(ongoing, transaction_version=transaction_version)
    assert decision is not None
    assert isinstance(decision.error, ConcurrentTransactionsError)
    found = moved(decision)
    assert (found.state, found.producer) == (S.PREPARE_ABORT, (7, 6))
    assert found.partitions == ongoing.partitions


def test_wrong_producer_does_not_abort_the_open_transaction() -> None:
    with pytest.raises(ProducerFencedError):
        decide(metadata_in(S.ONGOING), (8, 5))


@pytest.mark.parametrize("given", [None, (7, 32766)])
def test_exhausted_id_is_replaced(given: tuple[int, int] | None) -> None:
    metadata = metadata_in(S.COMPLETE_COMMIT, 32766)
    assert decide(metadata, given) is None
    found = moved(decide(metadata, given, new_producer_id=99))
    assert (found.producer, found.previous_producer_id) == ((99, 0), 7)
    if given is not None:
        assert decide(found, given) == Decision(ProducerIdAndEpoch(99, 0))


def test_former_id_is_fenced_unless_it_was_exhausted() -> None:
    metadata = replace(
        metadata_in(S.EMPTY, 0), producer_id=99, previous_producer_id=7, last_producer_epoch=32766
    )
    with pytest.raises(ProducerFencedError):
        decide(metadata, (7, 32765))
    with pytest.raises(ProducerFencedError):
        decide(metadata, (6, 32766))


def test_exhausted_id_fences_other_epochs() -> None:
    with pytest.raises(ProducerFencedError):
        decide(metadata_in(S.EMPTY, 32766), (7, 12), new_producer_id=99)
