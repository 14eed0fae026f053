"""Producer state: duplicates, gaps, epochs, sequence wrap, snapshots."""

from functools import partial

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.producer_snapshot import encode_snapshot
from kclient.broker.log.producer_state_entry import ProducerStateEntry
from kclient.broker.log.producer_state_manager import ProducerLimits
from kclient.broker.log.transaction_index import AbortedTxn
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from kclient.record import ControlRecordType
from tests.support.disks.log_bench import NOW_MS, LogBench, ManualClock, make_batch, offsets
from tests.support.disks.producer_batches import PID, begin_txn, end_txn, send

_YEAR_MS = 365 * 86_400_000


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    return bench.open()


def test_producer_state_survives_clean_restart(bench: LogBench, log: UnifiedLog) -> None:
    send(log, 0, 5)
    log.close()
    assert bench.path(5, ".snapshot").exists()
    log = bench.open(clean=True)
    assert log.append_as_leader(make_batch(5, producer=(PID, 0, 0)), 0).duplicate
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 9)


@pytest.mark.fault("B3")
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("snapshots", ["kept", "missing", "corrupt", "ahead"])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 330], ids=["one segment", "rolls"])
def test_five_in_flight_batches_are_recognized_after_restart(
    bench: LogBench, segment_bytes: int, snapshots: str, clean: bool
) -> None:
    """Their responses were lost with the broker, so their producer retries all of them."""
    config = LogConfig(segment_bytes=segment_bytes)
    log = bench.open(config)
    for sequence in range(0, 24, 2):
        send(log, sequence, 2)
        send(log, sequence, 2, pid=PID + 1)
    log.close() if clean else bench.crash(log)
    for path in bench.directory.glob("*.snapshot"):
        if snapshots == "corrupt":
            path.write_bytes(path.read_bytes()[:-1] + b"x")
        elif snapshots == "missing":
            path.unlink()
    if snapshots == "ahead":
        bench.path(9999, ".snapshot").write_bytes(encode_snapshot([ProducerStateEntry(PID, 3)]))
    log = bench.open(config, clean=clean)
    for sequence in range(14, 24, 2):
        for pid in (PID, PID + 1):
            info = log.append_as_leader(make_batch(2, producer=(pid, 0, sequence)), 0)
            assert (info.duplicate, info.first_offset) == (True, 2 * sequence + 2 * (pid - PID))
    assert log.log_end_offset == 48
    assert send(log, 24, 2) == 48


@pytest.mark.parametrize("first_bytes", [1, 500, 1 << 20])
@pytest.mark.parametrize("most_bytes", [2500, 1 << 20])
def test_recent_batches_are_searched_backwards(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch, first_bytes: int, most_bytes: int
) -> None:
    monkeypatch.setattr("kclient.broker.log.log_segment._FIRST_BYTES", first_bytes)
    monkeypatch.setattr("kclient.broker.log.producer_state_recovery._TAIL_BYTES", most_bytes)
    config = LogConfig(segment_bytes=1500, index_interval_bytes=150)
    log = bench.open(config)
    for sequence in range(40):
        send(log, sequence)
        send(log, sequence, pid=PID + 1)
    log.close()
    log = bench.open(config, clean=True)
    for sequence in range(35, 40):
        for pid in (PID, PID + 1):
            info = log.append_as_leader(make_batch(1, producer=(pid, 0, sequence)), 0)
            assert (info.duplicate, info.first_offset) == (True, 2 * sequence + pid - PID)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 34)


@pytest.mark.fault("B3")
def test_producer_state_survives_crash(bench: LogBench, log: UnifiedLog) -> None:
    for sequence in range(8):
        send(log, sequence)
    log.maintenance.roll()
    for sequence in range(8, 12):
        send(log, sequence)
    bench.crash(log)
    log = bench.open()
    for sequence in range(7, 12):
        assert log.append_as_leader(make_batch(producer=(PID, 0, sequence)), 0).duplicate
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 3)


@pytest.mark.fault("B3")
@pytest.mark.parametrize("damage", ["garbage", "truncated", "empty", "bit flip", "missing"])
def test_corrupt_snapshot_is_ignored(bench: LogBench, log: UnifiedLog, damage: str) -> None:
    for sequence in range(8):
        send(log, sequence)
    log.close()
    snapshot = bench.path(8, ".snapshot")
    good = snapshot.read_bytes()
    damaged = {
        "garbage": b"garbage!" * 10,
        "truncated": good[:-1],
        "empty": b"",
        "bit flip": good[:-1] + bytes([good[-1] ^ 1]),
    }
    snapshot.unlink()
    if damage in damaged:
        snapshot.write_bytes(damaged[damage])
    log = bench.open(clean=True)
    for sequence in range(3, 8):
        assert log.append_as_leader(make_batch(producer=(PID, 0, sequence)), 0).duplicate


def test_snapshots_are_deleted_with_their_segments(bench: LogBench, log: UnifiedLog) -> None:
    for sequence in range(3):
        send(log, sequence)
        log.maintenance.roll()
    log.high_watermark = 3
    log.delete_records_before(2)
    assert log.maintenance.delete_old_segments(0) == 2
    assert [path.name[:20] for path in sorted(bench.directory.glob("*.snapshot"))] == [
        f"{offset:020d}" for offset in (2, 3)
    ]


def test_stray_snapshots_are_removed(bench: LogBench, log: UnifiedLog) -> None:
    send(log, 0)
    log.close()
    data = bench.path(1, ".snapshot").read_bytes()
    log = bench.open(clean=True)
    send(log, 1)
    bench.path(2, ".snapshot").write_bytes(data)
    log.close()
    bench.open(clean=True)
    assert not bench.path(1, ".snapshot").exists()
    assert bench.path(2, ".snapshot").exists()


def test_idle_producers_expire(bench: LogBench, log: UnifiedLog, clock: ManualClock) -> None:
    send(log, 0)
    log.maintenance.remove_expired_producers()
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 5)
    clock.elapsed_ms = 86_400_000
    log.maintenance.remove_expired_producers()
    assert send(log, 5) == 1


@pytest.mark.fault("B16")
def test_longest_idle_producer_is_evicted(bench: LogBench) -> None:
    log = bench.open(producers=ProducerLimits(max_ids=3))
    for pid in (1, 2, 3, 1, 4):
        send(log, 0 if pid != 1 or not log.log_end_offset else 1, pid=pid)
    assert log.append_as_leader(make_batch(producer=(1, 0, 1)), 0).duplicate
    for pid in (3, 4):
        with pytest.raises(OutOfOrderSequenceError):
            send(log, 5, pid=pid)
    # Producer 2 was evicted; its next batch is accepted as that of a new producer.
    assert send(log, 5, pid=2) == 5
    assert send(log, 5, pid=3) == 6
    end = log.log_end_offset
    for pid in range(100, 1100):
        send(log, 0, pid=pid)
    log.close()
    assert bench.path(end + 1000, ".snapshot").stat().st_size == 10 + 3 * 46


@pytest.mark.fault("B16")
def test_producer_with_ongoing_transaction_is_not_evicted(bench: LogBench) -> None:
    log = bench.open(producers=ProducerLimits(max_ids=2))
    begin_txn(log, 0)
    for pid in range(5):
        send(log, 0, pid=pid)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 0
    end_txn(log, ControlRecordType.COMMIT)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset


@pytest.mark.parametrize("shift_ms", [-3_600_000, _YEAR_MS])
def test_wall_clock_jump_expires_no_producer(
    log: UnifiedLog, clock: ManualClock, shift_ms: int
) -> None:
    send(log, 0)
    clock.wall_shift_ms = shift_ms
    log.maintenance.remove_expired_producers()
    assert log.append_as_leader(make_batch(producer=(PID, 0, 0)), 0).duplicate
    assert log.log_end_offset == 1


def test_producer_with_old_timestamps_does_not_expire(log: UnifiedLog, clock: ManualClock) -> None:
    old = partial(make_batch, first_timestamp=NOW_MS - _YEAR_MS)
    log.append_as_leader(old(producer=(PID, 0, 0)), 0)
    clock.elapsed_ms = 600_000
    log.maintenance.remove_expired_producers()
    assert log.append_as_leader(old(producer=(PID, 0, 0)), 0).duplicate
    clock.elapsed_ms += 86_400_000
    log.maintenance.remove_expired_producers()
    assert send(log, 5) == 1


@pytest.mark.parametrize("clean", [True, False])
def test_producer_state_survives_restart_with_wrong_clock(
    bench: LogBench, log: UnifiedLog, clock: ManualClock, *, clean: bool
) -> None:
    send(log, 0)
    log.close()
    clock.wall_shift_ms = _YEAR_MS
    loaded = bench.open(clean=clean)
    loaded.maintenance.remove_expired_producers()
    assert loaded.append_as_leader(make_batch(producer=(PID, 0, 0)), 0).duplicate
    clock.elapsed_ms = 86_400_000
    loaded.maintenance.remove_expired_producers()
    assert send(loaded, 5) == 1


def test_truncation_reverts_producer_state(bench: LogBench, log: UnifiedLog) -> None:
    for sequence in range(4):
        send(log, sequence)
    log.truncate_to(2)
    assert send(log, 2) == 2
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 4)


def test_ongoing_transaction_limits_last_stable_offset(log: UnifiedLog) -> None:
    send(log, 0, pid=1)
    begin_txn(log, 0)
    send(log, 1, pid=1)
    log.high_watermark = 3
    assert log.last_stable_offset == 1
    end_txn(log, ControlRecordType.COMMIT)
    assert log.last_stable_offset == 1
    log.high_watermark = 4
    assert log.last_stable_offset == 4


@pytest.mark.parametrize("restart", ["none", "clean", "crash"])
def test_aborted_transactions_are_listed(bench: LogBench, log: UnifiedLog, restart: str) -> None:
    begin_txn(log, 0)
    begin_txn(log, 1)
    end_txn(log, ControlRecordType.ABORT)
    begin_txn(log, 2)
    end_txn(log, ControlRecordType.COMMIT)
    if restart == "clean":
        log.close()
        log = bench.open(clean=True)
    elif restart == "crash":
        bench.crash(log)
        log = bench.open()
    log.high_watermark = 5
    assert log.last_stable_offset == 5
    found = log.read(0, 1 << 20, include_aborted=True)
    assert found.aborted_transactions == [AbortedTxn(PID, 0, 2, 3)]
    assert log.read(3, 1 << 20, include_aborted=True).aborted_transactions == []
    assert offsets(log) == [0, 1, 2, 3, 4]
    with pytest.raises(OutOfOrderSequenceError):
        begin_txn(log, 9)


def test_ongoing_transaction_survives_restart(bench: LogBench, log: UnifiedLog) -> None:
    begin_txn(log, 0)
    log.close()
    log = bench.open(clean=True)
    log.high_watermark = 1
    assert log.last_stable_offset == 0
    with pytest.raises(InvalidTxnStateError, match="outside of its transaction"):
        send(log, 1)
    end_txn(log, ControlRecordType.ABORT)
    log.high_watermark = 2
    assert log.last_stable_offset == 2


def test_append_time_of_a_duplicate(bench: LogBench, clock: ManualClock) -> None:
    log = bench.open(LogConfig(message_timestamp_type="LogAppendTime"))
    send(log, 0)
    clock.elapsed_ms = 5000
    info = log.append_as_leader(make_batch(producer=(PID, 0, 0)), 0)
    assert (info.duplicate, info.log_append_time) == (True, NOW_MS)
