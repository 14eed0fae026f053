"""Rules for sequences, epochs and markers of a producer."""

import pytest

from kclient.broker.log.producer_state_entry import MAX_PRODUCER_EPOCH
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kclient.record import ControlRecordType
from kclient.record.batch_header import MAX_SEQUENCE
from tests.support.disks.log_bench import LogBench, make_batch
from tests.support.disks.producer_batches import PID, begin_txn, end_txn, send


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open()


def test_last_five_batches_are_recognized_as_duplicates(log: UnifiedLog) -> None:
    for sequence in range(0, 12, 2):
        send(log, sequence, 2)
    for sequence in range(2, 12, 2):
        info = log.append_as_leader(make_batch(2, producer=(PID, 0, sequence)), 0)
        assert (info.duplicate, info.first_offset, info.last_offset) == (
            True, sequence, sequence + 1,
        )  # fmt: skip
    assert log.log_end_offset == 12
    with pytest.raises(OutOfOrderSequenceError, match="got sequence 0, expected 12"):
        send(log, 0, 2)


@pytest.mark.fault("B19")
def test_batch_with_other_sequences_is_no_duplicate(log: UnifiedLog) -> None:
    send(log, 0, 4)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 0, 3)


@pytest.mark.fault("B19")
def test_sequence_gap_is_rejected(log: UnifiedLog) -> None:
    send(log, 0)
    with pytest.raises(OutOfOrderSequenceError, match="got sequence 2, expected 1"):
        send(log, 2)
    assert log.log_end_offset == 1
    assert send(log, 1) == 1


def test_unknown_producer_may_start_at_any_sequence(log: UnifiedLog) -> None:
    assert send(log, 17) == 0


@pytest.mark.fault("B19")
def test_producer_epochs(log: UnifiedLog) -> None:
    send(log, 0, epoch=3)
    with pytest.raises(InvalidProducerEpochError, match="got epoch 2, expected at least 3"):
        send(log, 1, epoch=2)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 1, epoch=4)
    assert send(log, 0, epoch=4) == 1
    with pytest.raises(InvalidProducerEpochError):
        send(log, 1, epoch=3)
    assert not log.append_as_leader(make_batch(producer=(PID, 4, 1)), 0).duplicate


@pytest.mark.fault("B19")
def test_sequences_wrap_in_the_log(log: UnifiedLog) -> None:
    send(log, MAX_SEQUENCE - 1, 2)
    send(log, 0, 2)
    log.append_as_leader(make_batch(producer=(7, 0, MAX_SEQUENCE - 1)), 0)
    assert log.append_as_leader(make_batch(4, producer=(7, 0, MAX_SEQUENCE)), 0).last_offset == 8
    assert log.append_as_leader(make_batch(4, producer=(7, 0, MAX_SEQUENCE)), 0).duplicate
    assert not log.append_as_leader(make_batch(producer=(7, 0, 3)), 0).duplicate


def test_batches_of_one_request_are_in_sequence(log: UnifiedLog) -> None:
    request = make_batch(2, producer=(PID, 0, 0)) + make_batch(2, producer=(PID, 0, 2))
    assert log.append_as_leader(request, 0).last_offset == 3
    gap = make_batch(2, producer=(PID, 0, 4)) + make_batch(2, producer=(PID, 0, 9))
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(gap, 0)
    assert send(log, 4) == 4


def test_markers_are_fenced(log: UnifiedLog) -> None:
    begin_txn(log, 0, epoch=5)
    end_txn(log, ControlRecordType.COMMIT, epoch=5, coordinator=3)
    with pytest.raises(InvalidProducerEpochError):
        begin_txn(log, 1, epoch=4)
    with pytest.raises(InvalidProducerEpochError):
        end_txn(log, ControlRecordType.COMMIT, epoch=4, coordinator=3)
    with pytest.raises(TransactionCoordinatorFencedError, match="got a marker of"):
        end_txn(log, ControlRecordType.COMMIT, epoch=5, coordinator=2)
    begin_txn(log, 1, epoch=5)


def test_marker_of_transaction_version_2_has_a_later_epoch(log: UnifiedLog) -> None:
    """A marker of the present epoch would end the transaction that the producer has open now."""
    begin_txn(log, 0, epoch=5)
    with pytest.raises(InvalidProducerEpochError, match="got epoch 5, expected at least 6"):
        end_txn(log, ControlRecordType.COMMIT, epoch=5, transaction_version=2)
    assert log.last_stable_offset == 0
    end_txn(log, ControlRecordType.COMMIT, epoch=6, transaction_version=2)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2


def test_repeated_marker_of_transaction_version_2_is_accepted(log: UnifiedLog) -> None:
    """Its coordinator sends it again if it has not received the response (KAFKA-19999)."""
    begin_txn(log, 0, epoch=5)
    end_txn(log, ControlRecordType.ABORT, epoch=6, transaction_version=2)
    end_txn(log, ControlRecordType.ABORT, epoch=6, transaction_version=2)
    with pytest.raises(InvalidProducerEpochError):
        end_txn(log, ControlRecordType.ABORT, epoch=5, transaction_version=2)
    assert log.log_end_offset == 3


def test_marker_of_transaction_version_2_may_have_the_last_epoch_again(log: UnifiedLog) -> None:
    begin_txn(log, 0, epoch=MAX_PRODUCER_EPOCH)
    end_txn(log, ControlRecordType.COMMIT, epoch=MAX_PRODUCER_EPOCH, transaction_version=2)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2


def test_coordinator_appends_skip_sequence_checks(log: UnifiedLog) -> None:
    send(log, 0)
    log.append_as_leader(make_batch(producer=(PID, 0, 7)), 0, origin="coordinator")
    assert log.log_end_offset == 2
