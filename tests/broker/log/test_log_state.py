"""State of one log: offsets and their bounds, topic id, guard of the lock."""

import errno
from collections.abc import Iterator

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_loader import LogCheckpoint
from kclient.broker.log.log_state import LogState
from kclient.broker.log.producer_state_manager import DEFAULT_LIMITS
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
)
from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.disks.log_bench import NOW_MS, PARTITION, TOPIC_ID, LogBench, make_batch

OTHER_ID = bytes(16)


@pytest.fixture
def log(bench: LogBench) -> UnifiedLog:
    """Log of ten batches with one record each, epochs 0 and 1."""
    made = bench.open(LogConfig(segment_bytes=3 * len(make_batch(1))))
    for number in range(10):
        made.append_as_leader(make_batch(1), number // 5)
    return made


@pytest.fixture
def state(log: UnifiedLog) -> LogState:
    return log._state


@pytest.fixture
def unloaded(bench: LogBench) -> Iterator[LogState]:
    made = LogState(
        bench.runtime, bench.directory, PARTITION, LogConfig(), bench.failures, DEFAULT_LIMITS
    )
    yield made
    made.local.release()


@pytest.mark.parametrize(("wanted", "expected"), [(7, 7), (11, 10), (2, 3), (-1, 3)])
def test_high_watermark_stays_within_the_log(state: LogState, wanted: int, expected: int) -> None:
    state.raise_log_start(3)
    state.set_high_watermark(wanted)
    assert state.high_watermark == expected


def test_log_start_offset_only_ascends_and_takes_the_high_watermark_along(
    state: LogState,
) -> None:
    state.set_high_watermark(4)
    state.raise_log_start(6)
    assert (state.log_start_offset, state.high_watermark) == (6, 6)
    assert state.epochs.end_offset_for(0, 10) == (0, 6)
    state.raise_log_start(5)
    assert state.log_start_offset == 6


def test_truncation_lowers_every_offset_above_it(state: LogState) -> None:
    state.set_high_watermark(9)
    state.cleaned_to = 8
    state.truncate_to(4)
    assert (state.local.log_end_offset, state.high_watermark, state.cleaned_to) == (4, 4, 4)
    assert state.log_start_offset == 0
    assert state.epochs.end_offset_for(1, 4) == (-1, -1)  # epoch 1 began at 5


def test_truncation_before_the_log_starts_it_again(state: LogState) -> None:
    state.raise_log_start(8)
    with state.lock:
        state.local.remove_segments(state.local.all_segments()[:2], 0.0)
    assert state.local.first_offset == 6
    state.truncate_to(2)
    assert (state.local.first_offset, state.local.log_end_offset) == (2, 2)
    assert (state.log_start_offset, state.high_watermark) == (2, 2)


def test_last_stable_offset_is_below_open_transactions(log: UnifiedLog, state: LogState) -> None:
    log.append_as_leader(make_batch(1, producer=(5, 0, 0), transactional=True), 1)
    log.append_as_leader(make_batch(1), 1)
    state.set_high_watermark(9)
    assert state.last_stable_offset() == 9
    state.set_high_watermark(12)
    assert state.last_stable_offset() == 10


def test_topic_id_is_assigned_once(state: LogState, bench: LogBench) -> None:
    path = bench.directory / "partition.metadata"
    state.assign_topic_id(TOPIC_ID)
    unwritten = [(state.has_unwritten_topic_id, path.exists())]
    state.write_topic_id()
    unwritten.append((state.has_unwritten_topic_id, path.exists()))
    assert unwritten == [(True, False), (False, True)]
    written = path.read_text()
    state.assign_topic_id(TOPIC_ID)
    with pytest.raises(InconsistentTopicIdError, match="topic with another id"):
        state.assign_topic_id(OTHER_ID)
    assert (state.topic_id, path.read_text()) == (TOPIC_ID, written)


def test_topic_id_is_read_at_loading(unloaded: LogState, bench: LogBench) -> None:
    bench.directory.mkdir(parents=True)
    (bench.directory / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )
    with unloaded.lock:
        unloaded.load(LogCheckpoint())
    assert unloaded.topic_id == TOPIC_ID
    assert not unloaded.has_unwritten_topic_id


def test_failed_write_of_the_topic_id_is_repeated(
    state: LogState, files: FaultySystemFiles
) -> None:
    state.assign_topic_id(TOPIC_ID)
    files.fail("write", "partition.metadata", errno.ENOSPC)
    with pytest.raises(KafkaStorageError), state.locked("write"):
        state.write_topic_id()
    files.heal()
    unwritten = [state.has_unwritten_topic_id]
    state.write_topic_id()
    unwritten.append(state.has_unwritten_topic_id)
    assert unwritten == [True, False]


def test_closed_log_cannot_be_locked(log: UnifiedLog, state: LogState) -> None:
    log.close()
    error = pytest.raises(NotLeaderOrFollowerError, match="topic-0: the log was closed")
    with error, state.locked("read"):
        raise AssertionError("the log is closed")


def test_operating_system_error_becomes_a_storage_error_that_names_the_action(
    state: LogState,
) -> None:
    with pytest.raises(KafkaStorageError, match="topic-0: sweep"), state.guarded("sweep"):
        raise OSError(errno.ENOSPC, "full")


def test_renamed_directory_holds_all_further_files(state: LogState, bench: LogBench) -> None:
    target = bench.directory.with_name("topic-0.moved")
    state.rename_directory(target)
    assert state.directory == target
    with state.lock:
        state.epochs.assign(7, 10)
    assert "7 10" in (target / "leader-epoch-checkpoint").read_text()
    assert not bench.directory.exists()
    target.rename(bench.directory)  # where the fixture expects it


def test_truncation_to_the_end_removes_an_epoch_without_records(log: UnifiedLog) -> None:
    """A leader may assign its epoch and lose the leadership before its first append."""
    log.assign_epoch_start(3)
    assert log.end_offset_for_epoch(3) == (3, 10)
    assert log.end_offset_for_epoch(2) == (1, 10)
    log.truncate_to(10)
    assert log.latest_epoch == 1
    assert log.end_offset_for_epoch(2) == (-1, -1)


def test_epoch_start_is_written_with_the_first_record(log: UnifiedLog, bench: LogBench) -> None:
    path = bench.directory / "leader-epoch-checkpoint"
    before = path.read_text()
    log.assign_epoch_start(3)
    assert path.read_text() == before
    log.append_as_leader(make_batch(2), 3)
    log.assign_epoch_start(3)
    assert path.read_text() == "0\n3\n0 0\n1 5\n3 10\n"


def test_full_truncation_removes_epochs_and_producers(log: UnifiedLog) -> None:
    log.append_as_leader(make_batch(1, producer=(7, 0, 0)), 1)
    log.high_watermark = 8
    log.truncate_fully_and_start_at(50)
    bounds = (log.first_segment_base_offset, log.log_start_offset, log.high_watermark)
    assert bounds == (50, 50, 50)
    assert log.log_end_offset == 50
    assert log.latest_epoch is None
    assert log._state.producers.is_empty
    assert log.append_as_leader(make_batch(2, producer=(7, 0, 5)), 4).first_offset == 50


def test_log_start_offset_follows_the_leader_up_to_the_log_end(log: UnifiedLog) -> None:
    log.high_watermark = 2
    assert log.maybe_increment_log_start_offset(6)
    assert (log.log_start_offset, log.high_watermark) == (6, 6)
    assert not log.maybe_increment_log_start_offset(4)
    assert log.log_start_offset == 6
    with pytest.raises(OffsetOutOfRangeError):
        log.maybe_increment_log_start_offset(11)
    assert log.maybe_increment_log_start_offset(10)


def abort(log: UnifiedLog, offset: int) -> None:
    log.append_as_leader(make_batch(1, producer=(7, 0, offset), transactional=True), 2)
    marker = build_end_txn_batch(EndTxnMarker(ControlRecordType.ABORT, 0), 7, 0, NOW_MS)
    log.append_as_leader(marker, 2, origin="coordinator")


def test_truncation_opens_transactions_whose_marker_it_removes(log: UnifiedLog) -> None:
    abort(log, 0)  # 10 and 11
    abort(log, 1)  # 12 and 13
    log.high_watermark = 14
    assert log.last_stable_offset == 14
    log.truncate_to(13)
    assert (log.high_watermark, log.last_stable_offset) == (13, 12)
    indexed = [
        txn.last_offset
        for segment in log._state.local.all_segments()
        for txn in segment.transactions.aborted_txns()
    ]
    assert indexed == [11]
    log.truncate_to(12)
    assert log.last_stable_offset == 12


def test_truncation_keeps_the_last_batches_of_a_producer(log: UnifiedLog) -> None:
    for sequence in range(8):
        log.append_as_leader(make_batch(1, producer=(7, 0, sequence)), 2)
    log.truncate_to(16)
    kept = log._state.producers.entries[7]
    assert [batch.last_sequence for batch in kept.batches] == [1, 2, 3, 4, 5]
    assert log.append_as_leader(make_batch(1, producer=(7, 0, 2)), 2).duplicate


def test_flush_during_a_truncation_flushes_what_was_appended_then(
    log: UnifiedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    active, flushes = log._state.local.active, []

    def truncate_meanwhile() -> None:
        flushes.append(log.log_end_offset)
        if len(flushes) == 1:
            log.truncate_to(9)
            log.append_as_leader(make_batch(4), 3)

    monkeypatch.setattr(type(active), "flush_records", lambda _: truncate_meanwhile())
    log.flush()
    assert log.maintenance.recovery_point == 10
    assert flushes[-1] == 13
