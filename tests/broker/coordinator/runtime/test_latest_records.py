"""Last records of keys, with transactions that were committed, aborted or are open."""

from kclient.broker.coordinator.runtime.latest_records import LatestRecords, LoadedRecord
from kclient.broker.coordinator.runtime.partition_log import LogBatch
from kclient.record import Record

A, B = b"a", b"b"
PID = 7


def added(*batches: LogBatch) -> LatestRecords:
    latest = LatestRecords()
    for batch in batches:
        latest.add(batch)
    return latest


def records(*batches: LogBatch) -> list[LoadedRecord]:
    return list(added(*batches).take_records())


def plain(offset: int, key: bytes = A, value: bytes | None = b"plain") -> LogBatch:
    return LogBatch([Record(offset, -1, key, value, [])])


def transactional(offset: int, key: bytes = A, producer_id: int = PID) -> LogBatch:
    return LogBatch([Record(offset, -1, key, b"txn", [])], producer_id)


COMMIT, ABORT = LogBatch((), PID, True), LogBatch((), PID, False)


def test_records_of_an_open_transaction_follow_with_its_producer() -> None:
    assert records(plain(0), transactional(1), plain(2, B)) == [
        (A, b"plain", 0, -1),
        (B, b"plain", 2, -1),
        (A, b"txn", 1, PID),
    ]


def test_committed_record_replaces_an_earlier_one() -> None:
    assert records(plain(0), transactional(1), COMMIT) == [(A, b"txn", 1, -1)]


def test_committed_record_does_not_replace_a_later_one() -> None:
    assert records(transactional(0), plain(1), COMMIT) == [(A, b"plain", 1, -1)]


def test_aborted_records_are_left_out() -> None:
    assert records(plain(0), transactional(1), ABORT) == [(A, b"plain", 0, -1)]


def test_marker_ends_the_transaction_of_its_producer_alone() -> None:
    found = records(transactional(0), transactional(1, producer_id=8), COMMIT)
    assert found == [(A, b"txn", 0, -1), (A, b"txn", 1, 8)]


def test_tombstone_removes_records_of_open_transactions() -> None:
    found = records(transactional(0), transactional(1, B), plain(2, value=None), COMMIT)
    assert found == [(A, None, 2, -1), (B, b"txn", 1, -1)]


def test_records_without_key_are_left_out() -> None:
    assert records(LogBatch([Record(0, -1, None, b"v", [])])) == []


def test_only_ends_of_returned_transactions_are_returned() -> None:
    latest = added(transactional(0), COMMIT, transactional(2))
    assert [producer_id for *_, producer_id in latest.take_records()] == [-1, PID]
    assert not latest.has_any
    for batch in (LogBatch((), 8, True), transactional(4), ABORT, COMMIT):
        latest.add(batch)
    assert (latest.take_ended(), list(latest.take_records())) == ({PID: False}, [])
    assert not latest.has_any
