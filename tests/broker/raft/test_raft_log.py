"""The metadata log, over a partition's log on disk and one in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.memory_records import keyed_batch
from kclient.broker.raft.raft_log import MetadataLog, RaftLog, Retention
from kclient.broker.raft.raft_types import FatalRaftError, OffsetAndEpoch
from kclient.broker.raft.snapshots import SnapshotFiles, SnapshotWriter
from kclient.common.errors import InvalidArgumentError
from kclient.common.files import FileSlice
from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from tests.support.disks.log_bench import NOW_MS, LogBench
from tests.support.quorum.memory_log import MemoryLog, split

CONFIG = LogConfig(cleanup_policy=(), max_message_bytes=8 << 20)


@pytest.fixture(params=["disk", "memory"])
def inner(
    request: pytest.FixtureRequest, runtime: Runtime, tmp_path: Path
) -> Iterator[MetadataLog]:
    bench = LogBench(runtime, tmp_path)
    yield MemoryLog() if request.param == "memory" else bench.open(CONFIG)
    bench.close()


@pytest.fixture
def log(inner: MetadataLog, tmp_path: Path) -> RaftLog:
    return loaded(inner, tmp_path)


def loaded(inner: MetadataLog, tmp_path: Path) -> RaftLog:
    log = RaftLog(inner, SnapshotFiles(SystemFiles(), tmp_path), Retention(1, 10**12))
    log.load()
    return log


def append(log: RaftLog, epoch: int, *counts: int) -> None:
    for count in counts:
        batch = keyed_batch(NOW_MS, [(None, b"%d" % number) for number in range(count)])
        log.append_as_leader(batch, epoch)
    log.flush()


def content(log: RaftLog, offset: int) -> bytes:
    records = log.read(offset, 1 << 20)
    return records.read() if isinstance(records, FileSlice) else bytes(records)


def snapshot(log: RaftLog, offset: int, epoch: int) -> None:
    raw = log.create_snapshot(OffsetAndEpoch(offset, epoch))
    assert raw is not None
    SnapshotWriter(raw, NOW_MS, []).freeze()


@pytest.fixture
def filled(log: RaftLog) -> RaftLog:
    """Epoch 1: 0 to 4; epoch 3: 5 to 9, in batches of 2 and 3."""
    append(log, 1, 2, 3)
    append(log, 3, 2, 3)
    return log


def test_end_and_epochs(filled: RaftLog) -> None:
    assert filled.end == OffsetAndEpoch(10, 3)
    assert filled.end_offset_for_epoch(1) == OffsetAndEpoch(5, 1)
    assert filled.end_offset_for_epoch(2) == OffsetAndEpoch(5, 1)
    assert filled.end_offset_for_epoch(3) == OffsetAndEpoch(10, 3)
    assert filled.end_offset_for_epoch(9) == OffsetAndEpoch(10, 3)


def test_empty_log(log: RaftLog) -> None:
    assert log.end == OffsetAndEpoch(0, 0)
    assert log.validate(0, 0).is_valid
    assert list(log.batches(0, 0)) == []


def test_leader_does_not_append_in_an_older_epoch(filled: RaftLog) -> None:
    with pytest.raises(FatalRaftError):
        append(filled, 2, 1)


@pytest.mark.parametrize(
    ("offset", "epoch", "diverging"),
    [
        (0, 0, None),
        (2, 1, None),
        (5, 1, None),
        (6, 1, (5, 1)),
        (7, 2, (5, 1)),
        (10, 3, None),
        (11, 3, (10, 3)),
        (3, 4, (10, 3)),
    ],
)
def test_fetch_positions(
    filled: RaftLog, offset: int, epoch: int, diverging: tuple[int, int] | None
) -> None:
    assert filled.validate(offset, epoch).diverging == diverging


def test_fetch_positions_with_snapshots(filled: RaftLog) -> None:
    filled.update_high_watermark(10)
    snapshot(filled, 5, 1)
    snapshot(filled, 7, 3)
    assert filled.validate(0, 0).snapshot == (7, 3)
    assert filled.validate(2, 1).is_valid
    assert filled.delete_before_snapshot(OffsetAndEpoch(5, 1), 0.0)
    assert filled.start_offset == 5
    assert filled.validate(2, 1).snapshot == (7, 3)
    assert filled.validate(5, 1).is_valid
    assert filled.validate(5, 0).snapshot == (7, 3)
    assert filled.validate(8, 1).diverging == (5, 1)
    assert filled.validate(8, 3).is_valid


def test_follower_appends_what_fits(filled: RaftLog, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    follower = loaded(MemoryLog(), tmp_path / "none")
    data = content(filled, 0)
    assert follower.append_as_follower(data[:-1], 3) == 7
    assert follower.append_as_follower(data, 3) == 0
    assert follower.append_as_follower(content(filled, 7), 2) == 0
    assert follower.append_as_follower(content(filled, 7), 3) == 3
    assert follower.end == filled.end
    assert content(follower, 0) == data


def test_damaged_batch_is_not_appended(filled: RaftLog, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    follower = loaded(MemoryLog(), tmp_path / "none")
    data = bytearray(content(filled, 0))
    first = split(bytes(data))[0].size_in_bytes
    data[first + 70] ^= 1
    assert follower.append_as_follower(data, 3) == 2
    assert follower.append_as_follower(b"short", 3) == 0


def test_truncation_to_the_common_end(filled: RaftLog) -> None:
    assert filled.truncate_to_end_offset(OffsetAndEpoch(7, 3)) == 7
    assert filled.truncate_to_end_offset(OffsetAndEpoch(99, 2)) == 5
    assert filled.end == OffsetAndEpoch(5, 1)


def test_truncation_below_the_high_watermark_is_fatal(filled: RaftLog) -> None:
    filled.update_high_watermark(7)
    with pytest.raises(FatalRaftError, match="below the high watermark"):
        filled.truncate_to_end_offset(OffsetAndEpoch(5, 1))
    assert filled.end_offset == 10


def test_high_watermark_never_falls(filled: RaftLog) -> None:
    filled.update_high_watermark(7)
    for offset in (6, 11):
        with pytest.raises(FatalRaftError):
            filled.update_high_watermark(offset)


@pytest.mark.parametrize(("offset", "epoch"), [(10, 3), (6, 3), (7, 1), (7, 2)])
def test_illegal_snapshots(filled: RaftLog, offset: int, epoch: int) -> None:
    """Above the high watermark, inside a batch, of another epoch."""
    filled.update_high_watermark(7)
    with pytest.raises(InvalidArgumentError):
        filled.create_snapshot(OffsetAndEpoch(offset, epoch))


def test_cleaning_keeps_the_latest_snapshot(filled: RaftLog, tmp_path: Path) -> None:
    filled.update_high_watermark(10)
    snapshot(filled, 5, 1)
    snapshot(filled, 7, 3)
    filled.clean(0.0, NOW_MS)
    assert (filled.start_offset, filled.snapshots.ids) == (7, [(7, 3)])
    assert list(tmp_path.glob("*.deleted"))
    filled.clean(60_000.0, NOW_MS)
    assert not list(tmp_path.glob("*.deleted"))
    assert [batch.base_offset for batch in filled.batches(7, 10)] == [7]


def test_snapshot_of_a_leader_replaces_the_log(filled: RaftLog, inner: MetadataLog) -> None:
    filled.update_high_watermark(5)
    raw = filled.snapshots.write(OffsetAndEpoch(50, 2))
    SnapshotWriter(raw, NOW_MS, []).freeze()
    filled.truncate_to_snapshot(OffsetAndEpoch(50, 2))
    assert filled.end == OffsetAndEpoch(50, 2)
    assert (filled.start_offset, filled.high_watermark) == (50, 50)
    append(filled, 4, 1)
    assert filled.end == OffsetAndEpoch(51, 4)


def test_start_truncates_to_a_later_snapshot(inner: MetadataLog, tmp_path: Path) -> None:
    log = loaded(inner, tmp_path)
    append(log, 1, 2)
    SnapshotWriter(log.snapshots.write(OffsetAndEpoch(50, 2)), NOW_MS, []).freeze()
    again = loaded(inner, tmp_path)
    assert again.end == OffsetAndEpoch(50, 2)


def test_missing_records_are_fatal(inner: MetadataLog, tmp_path: Path) -> None:
    inner.truncate_fully_and_start_at(5)
    with pytest.raises(FatalRaftError, match="records are missing"):
        loaded(inner, tmp_path)
