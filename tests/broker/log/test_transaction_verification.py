"""Verification of a transaction before its first append."""

import pytest

from kclient.broker.log.producer_state_manager import ProducerLimits
from kclient.broker.log.transaction_verification import OPEN_TRANSACTION, VerificationGuard
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from kclient.record import ControlRecordType
from tests.support.disks.log_bench import LogBench, ManualClock, make_batch
from tests.support.disks.producer_batches import PID, end_txn

COMMIT = ControlRecordType.COMMIT


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open()


def begin(
    log: UnifiedLog, sequence: int = 0, epoch: int = 0, *, pid: int = PID, v2: bool = False
) -> VerificationGuard:
    return log.begin_verification(pid, epoch, sequence, supports_epoch_bump=v2)


def send(
    log: UnifiedLog, guard: VerificationGuard, sequence: int = 0, epoch: int = 0, pid: int = PID
) -> int:
    """Append a record of a transaction; return its offset."""
    batch = make_batch(producer=(pid, epoch, sequence), transactional=True)
    return log.append_as_leader(batch, 0, guard=guard).first_offset


def test_first_append_needs_the_guard_of_its_verification(log: UnifiedLog) -> None:
    guard = begin(log)
    for other in (OPEN_TRANSACTION, VerificationGuard()):
        with pytest.raises(InvalidTxnStateError, match="not part of an open transaction"):
            send(log, other)
    assert send(log, guard) == 0
    assert log.last_stable_offset == 0


def test_open_transaction_needs_no_verification(log: UnifiedLog) -> None:
    send(log, begin(log))
    assert begin(log, 1) is OPEN_TRANSACTION
    assert send(log, OPEN_TRANSACTION, 1) == 1


def test_requests_of_one_transaction_share_the_guard(log: UnifiedLog) -> None:
    assert begin(log, 1) is begin(log, 0)
    assert begin(log) is not begin(log, pid=PID + 1)


def test_append_without_verification_is_not_checked(log: UnifiedLog) -> None:
    log.append_as_leader(make_batch(producer=(PID, 0, 0), transactional=True), 0)
    assert log.log_end_offset == 1


def test_marker_ends_the_verification_of_a_delayed_append(log: UnifiedLog) -> None:
    """The append would otherwise become part of the next transaction."""
    send(log, begin(log))
    end_txn(log, COMMIT)
    late = begin(log, 1)
    end_txn(log, COMMIT)
    with pytest.raises(InvalidTxnStateError):
        send(log, late, 1)
    following = begin(log, 1)
    assert following is not late
    with pytest.raises(InvalidTxnStateError):
        send(log, late, 1)
    assert send(log, following, 1) == 3


def test_append_ends_its_verification(log: UnifiedLog) -> None:
    guard = begin(log)
    send(log, guard)
    end_txn(log, COMMIT)
    with pytest.raises(InvalidTxnStateError):
        send(log, guard, 1)


def test_marker_of_version_2_does_not_end_the_verification_of_the_next_epoch(
    log: UnifiedLog,
) -> None:
    """The producer has the new epoch from the response, which precedes the markers."""
    send(log, begin(log, v2=True))
    following = begin(log, 0, 1, v2=True)
    end_txn(log, COMMIT, epoch=1, transaction_version=2)
    assert send(log, following, 0, 1) == 2


def test_transaction_of_an_earlier_epoch_is_not_open_for_a_later_one(log: UnifiedLog) -> None:
    send(log, begin(log))
    assert begin(log, 0, 1) is not OPEN_TRANSACTION
    with pytest.raises(InvalidTxnStateError):
        send(log, OPEN_TRANSACTION, 0, 1)


def test_stale_epoch_is_reported_before_the_missing_verification(log: UnifiedLog) -> None:
    send(log, begin(log, epoch=3), epoch=3)
    end_txn(log, COMMIT, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        send(log, OPEN_TRANSACTION, 1, 2)


def test_duplicate_is_recognized_without_verification(log: UnifiedLog) -> None:
    send(log, begin(log))
    end_txn(log, COMMIT)
    assert send(log, OPEN_TRANSACTION) == 0
    assert log.log_end_offset == 2


def test_later_sequence_than_the_lowest_that_waits_is_refused(log: UnifiedLog) -> None:
    """A producer without state in the log could begin with any sequence otherwise."""
    guard = begin(log, 5)
    assert begin(log, 3) is guard
    with pytest.raises(OutOfOrderSequenceError, match="got sequence 5, expected 3"):
        send(log, guard, 5)
    assert send(log, guard, 3) == 0


def test_producer_of_version_2_without_state_begins_with_sequence_0(log: UnifiedLog) -> None:
    guard = begin(log, 2, v2=True)
    with pytest.raises(OutOfOrderSequenceError, match="got sequence 2, expected 0"):
        send(log, guard, 2)
    assert begin(log, v2=True) is guard
    assert send(log, guard) == 0


def test_verifications_expire_with_their_producers(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(producers=ProducerLimits(expiration_ms=1_000))
    guard = begin(log)
    clock.elapsed_ms += 999
    log.maintenance.remove_expired_producers()
    assert begin(log) is guard
    clock.elapsed_ms += 1
    log.maintenance.remove_expired_producers()
    assert begin(log) is not guard


def test_number_of_verifications_is_limited(bench: LogBench) -> None:
    log = bench.open(producers=ProducerLimits(max_ids=2))
    first, second = begin(log, pid=1), begin(log, pid=2)
    begin(log, pid=3)
    assert begin(log, pid=2) is second
    with pytest.raises(InvalidTxnStateError):
        send(log, first, pid=1)
