"""Decisions about EndTxn, each state with each kind of epoch."""

from dataclasses import replace

import pytest

from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.end_txn import end_txn, end_txn_and_bump, fence
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.record import ProducerIdAndEpoch

S = TransactionState
PID = 7
EPOCH = 5
NEW_PID = 99
NOW = 1_000
NO_WRITE = "NONE"
MAPPING = "INVALID_PRODUCER_ID_MAPPING"
FENCED = "PRODUCER_FENCED"
STATE = "INVALID_TXN_STATE"
CONCURRENT = "CONCURRENT_TRANSACTIONS"
COMMIT = "PREPARE_COMMIT"
ABORT = "PREPARE_ABORT"
PARTITIONS = frozenset({TopicPartition("t", 0)})


def metadata_in(state: TransactionState, epoch: int = EPOCH) -> TransactionMetadata:
    open_states = (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)
    partitions = PARTITIONS if state in open_states else frozenset()
    return TransactionMetadata("id", PID, epoch, 60_000, state, partitions, start_ms=10)


def outcome(
    metadata: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    *,
    commits: bool,
    version: int,
    is_pending: bool = False,
) -> tuple[str, Decision | None]:
    """Return the name of the error or of the next state, with the decision."""
    try:
        decision: Decision | None
        if version < 5:
            decision = end_txn(
                metadata, producer, commits=commits, is_pending=is_pending, now_ms=NOW
            )
        else:
            decision = end_txn_and_bump(
                metadata,
                producer,
                commits=commits,
                is_pending=is_pending,
                new_producer_id=NEW_PID,
                now_ms=NOW,
            )
    except KafkaError as error:
        return type(error).error_name, None
    assert decision is not None
    moved = decision.transition
    return NO_WRITE if moved is None else moved.state.name, decision


FIRST_VERSIONS = {  # state -> commit, abort
    S.EMPTY: (STATE, STATE),
    S.ONGOING: (COMMIT, ABORT),
    S.PREPARE_COMMIT: (CONCURRENT, STATE),
    S.PREPARE_ABORT: (STATE, CONCURRENT),
    S.COMPLETE_COMMIT: (NO_WRITE, STATE),
    S.COMPLETE_ABORT: (STATE, NO_WRITE),
}


@pytest.mark.parametrize("state", FIRST_VERSIONS)
def test_versions_without_bump(state: TransactionState) -> None:
    metadata, producer = metadata_in(state), ProducerIdAndEpoch(PID, EPOCH)
    for commits, expected in zip((True, False), FIRST_VERSIONS[state], strict=True):
        found, decision = outcome(metadata, producer, commits=commits, version=4)
        assert found == expected
        if decision is not None:
            assert decision.producer == producer
        pending = outcome(metadata, producer, commits=commits, version=4, is_pending=True)
        assert pending[0] == CONCURRENT
        for epoch in (EPOCH - 1, EPOCH + 1):
            other = outcome(metadata, ProducerIdAndEpoch(PID, epoch), commits=commits, version=4)
            assert other[0] == FENCED
        other = outcome(metadata, ProducerIdAndEpoch(8, EPOCH), commits=commits, version=4)
        assert other[0] == MAPPING


WITH_BUMP = {  # state -> commit, repeated commit, abort, repeated abort
    S.EMPTY: (STATE, FENCED, ABORT, FENCED),
    S.ONGOING: (COMMIT, FENCED, ABORT, FENCED),
    S.PREPARE_COMMIT: (FENCED, CONCURRENT, FENCED, STATE),
    S.PREPARE_ABORT: (FENCED, STATE, FENCED, CONCURRENT),
    S.COMPLETE_COMMIT: (STATE, NO_WRITE, ABORT, STATE),
    S.COMPLETE_ABORT: (STATE, STATE, ABORT, NO_WRITE),
}


@pytest.mark.parametrize("state", WITH_BUMP)
def test_versions_that_raise_the_epoch(state: TransactionState) -> None:
    metadata = metadata_in(state)
    cells = ((True, EPOCH), (True, EPOCH - 1), (False, EPOCH), (False, EPOCH - 1))
    for (commits, epoch), expected in zip(cells, WITH_BUMP[state], strict=True):
        producer = ProducerIdAndEpoch(PID, epoch)
        found, decision = outcome(metadata, producer, commits=commits, version=5)
        assert found == expected, (commits, epoch)
        if expected in (COMMIT, ABORT):
            assert decision is not None
            assert decision.producer == ProducerIdAndEpoch(PID, EPOCH + 1)
        elif decision is not None:
            assert decision.producer == ProducerIdAndEpoch(PID, EPOCH)
        pending = outcome(metadata, producer, commits=commits, version=5, is_pending=True)
        assert pending[0] == CONCURRENT
        other = outcome(metadata, ProducerIdAndEpoch(8, epoch), commits=commits, version=5)
        assert other[0] == MAPPING
    for epoch in (EPOCH - 2, EPOCH + 1):
        assert outcome(metadata, ProducerIdAndEpoch(PID, epoch), commits=True, version=5)[0] == (
            FENCED
        )


def test_exhausted_producer_gets_another_id_when_its_transaction_completes() -> None:
    last = ProducerIdAndEpoch(PID, 32766)
    metadata = metadata_in(S.ONGOING, 32766)
    _found, decision = outcome(metadata, last, commits=True, version=5)
    assert decision is not None
    prepared = decision.transition
    assert prepared is not None
    assert decision.producer == ProducerIdAndEpoch(NEW_PID, 0)
    assert prepared.producer == ProducerIdAndEpoch(PID, 32767)
    assert outcome(prepared, last, commits=True, version=5)[0] == CONCURRENT

    completed = prepared.completed(NOW)
    assert completed.producer == ProducerIdAndEpoch(NEW_PID, 0)
    assert completed.previous_producer_id == PID
    assert completed.partitions == frozenset()
    found, repeated = outcome(completed, last, commits=True, version=5)
    assert found == NO_WRITE
    assert repeated is not None
    assert repeated.producer == ProducerIdAndEpoch(NEW_PID, 0)
    assert outcome(completed, last, commits=False, version=5)[0] == STATE
    assert outcome(completed, ProducerIdAndEpoch(PID, 32765), commits=True, version=5)[0] == MAPPING


def test_exhausted_producer_needs_an_id_before_the_decision() -> None:
    metadata = metadata_in(S.ONGOING, 32766)
    needs = end_txn_and_bump(
        metadata,
        ProducerIdAndEpoch(PID, 32766),
        commits=True,
        is_pending=False,
        new_producer_id=-1,
        now_ms=NOW,
    )
    assert needs is None
    assert fence(metadata, 2, -1, NOW) is None


def test_prepared_transaction_keeps_partitions_and_start() -> None:
    for version in (4, 5):
        _found, decision = outcome(
            metadata_in(S.ONGOING), ProducerIdAndEpoch(PID, EPOCH), commits=False, version=version
        )
        assert decision is not None
        prepared = decision.transition
        assert prepared is not None
        assert (prepared.partitions, prepared.start_ms) == (PARTITIONS, 10)
        assert prepared.client_version == (2 if version == 5 else 0)
        assert prepared.completed(NOW).producer == prepared.producer


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_fence_raises_the_epoch_once(transaction_version: int) -> None:
    decision = fence(metadata_in(S.ONGOING), transaction_version, -1, NOW)
    assert decision is not None
    prepared = decision.transition
    assert prepared is not None
    assert prepared.state is S.PREPARE_ABORT
    assert prepared.completed(NOW).producer == ProducerIdAndEpoch(PID, EPOCH + 1)


@pytest.mark.parametrize(("transaction_version", "after"), [(1, (PID, 32767)), (2, (NEW_PID, 0))])
def test_fence_of_the_last_epoch(transaction_version: int, after: tuple[int, int]) -> None:
    decision = fence(metadata_in(S.ONGOING, 32766), transaction_version, NEW_PID, NOW)
    assert decision is not None
    prepared = decision.transition
    assert prepared is not None
    assert prepared.producer_epoch == 32767
    assert prepared.completed(NOW).producer == after


def test_abort_after_a_timeout_returns_the_next_epoch() -> None:
    # The broker has aborted; the producer does not know that yet.
    decision = fence(metadata_in(S.ONGOING), 2, -1, NOW)
    assert decision is not None
    prepared = decision.transition
    assert prepared is not None
    producer = ProducerIdAndEpoch(PID, EPOCH)
    completed = prepared.completed(NOW)
    found, repeated = outcome(completed, producer, commits=False, version=5)
    assert found == NO_WRITE
    assert repeated is not None
    assert repeated.producer == ProducerIdAndEpoch(PID, EPOCH + 1)
    assert outcome(completed, producer, commits=True, version=5)[0] == STATE
    assert outcome(completed, producer, commits=False, version=4)[0] == FENCED


def test_start_of_an_abort_without_transaction_is_that_of_the_abort() -> None:
    metadata = replace(metadata_in(S.EMPTY), start_ms=-1)
    _found, decision = outcome(metadata, ProducerIdAndEpoch(PID, EPOCH), commits=False, version=5)
    assert decision is not None
    assert decision.transition is not None
    assert decision.transition.start_ms == NOW
