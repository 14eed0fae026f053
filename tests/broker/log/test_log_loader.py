"""Recovery after crashes and damaged files."""

import struct
from pathlib import Path

import pytest

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import CorruptRecordError
from kclient.record import read_batches
from tests.support.disks.log_bench import NOW_MS, LogBench, make_batch, offsets, read_all

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=150, segment_index_bytes=120)


def fill(log: UnifiedLog, batches: int = 20) -> None:
    for number in range(batches):
        stamp = NOW_MS + 10 * number
        log.append_as_leader(make_batch(5, first_timestamp=stamp), number // 7)
    log.high_watermark = log.log_end_offset


def segments(bench: LogBench, suffix: str = ".log") -> list[Path]:
    return sorted(bench.directory.glob(f"*{suffix}"))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def snapshot_of(bench: LogBench) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in bench.directory.iterdir()}


@pytest.fixture
def filled(bench: LogBench) -> UnifiedLog:
    log = bench.open(CONFIG)
    fill(log)
    assert len(segments(bench)) > 2
    return log


def test_clean_restart_changes_no_file(bench: LogBench, filled: UnifiedLog) -> None:
    filled.close()
    before = snapshot_of(bench)
    log = bench.open(CONFIG, clean=True)
    assert offsets(log) == list(range(100))
    log.close()
    assert snapshot_of(bench) == before


def test_recovery_rebuilds_the_files_of_a_clean_shutdown(
    bench: LogBench, filled: UnifiedLog
) -> None:
    filled.close()
    clean = snapshot_of(bench)
    for suffix in (".index", ".timeindex", ".snapshot"):
        for path in segments(bench, suffix):
            path.unlink()
    log = bench.open(CONFIG)
    log.close()
    assert snapshot_of(bench) == clean


@pytest.mark.fault("B1")
@pytest.mark.parametrize("cut", [1, 12, 40, 61, 80])
def test_torn_tail_is_truncated(bench: LogBench, filled: UnifiedLog, cut: int) -> None:
    bench.crash(filled)
    active = segments(bench)[-1]
    content = active.read_bytes()
    last = list(read_batches(content))[-1]
    assert last.size_in_bytes > cut
    active.write_bytes(content[:-cut])
    log = bench.open(CONFIG, recovery_point=90)
    assert offsets(log) == list(range(95))
    assert log.append_as_leader(make_batch(), 9).first_offset == 95
    assert offsets(log) == list(range(96))


@pytest.mark.fault("B1")
@pytest.mark.parametrize("tail", [bytes(1), bytes(100), b"\xff" * 100, bytes(8) + b"\x7f" * 100])
def test_garbage_after_the_tail_is_truncated(
    bench: LogBench, filled: UnifiedLog, tail: bytes
) -> None:
    bench.crash(filled)
    active = segments(bench)[-1]
    active.write_bytes(active.read_bytes() + tail)
    assert offsets(bench.open(CONFIG)) == list(range(100))


@pytest.mark.parametrize("tail", [1, 40, -30])
def test_torn_tail_is_truncated_after_clean_shutdown(
    bench: LogBench, filled: UnifiedLog, tail: int
) -> None:
    """Batches appended after a torn tail could not be read."""
    filled.close()
    last = segments(bench)[-1]
    content = last.read_bytes()
    last.write_bytes(content + bytes(tail) if tail > 0 else content[:tail])
    log = bench.open(CONFIG, clean=True, recovery_point=100)
    kept = offsets(log)
    assert kept == list(range(100 if tail > 0 else 95))
    log.append_as_leader(make_batch(5), 9)
    assert len(offsets(log)) == len(kept) + 5


def test_repeated_batch_is_truncated(bench: LogBench, filled: UnifiedLog) -> None:
    bench.crash(filled)
    active = segments(bench)[-1]
    content = active.read_bytes()
    last = list(read_batches(content))[-1]
    active.write_bytes(content + last.buffer)
    assert offsets(bench.open(CONFIG)) == list(range(100))


def test_segments_after_invalid_batch_are_deleted(bench: LogBench, filled: UnifiedLog) -> None:
    bench.crash(filled)
    second = segments(bench)[1]
    flip(second, 70)
    log = bench.open(CONFIG)
    kept = offsets(log)
    assert kept == list(range(int(second.stem)))
    assert log.log_end_offset == int(second.stem)
    assert segments(bench)[-1] == second


@pytest.mark.fault("B13")
def test_flushed_segments_are_not_verified_by_recovery(bench: LogBench, filled: UnifiedLog) -> None:
    """A flipped bit in a flushed segment is found by readers; the log is not truncated there."""
    bench.crash(filled)
    flip(segments(bench)[0], 70)
    log = bench.open(CONFIG, recovery_point=95)
    assert log.log_end_offset == 100
    first, *others = read_all(log)
    assert not first.is_valid()
    assert all(batch.is_valid() for batch in others)


@pytest.mark.fault("B13")
def test_corrupt_batch_size_in_flushed_segment_is_an_error(
    bench: LogBench, filled: UnifiedLog
) -> None:
    bench.crash(filled)
    content = bytearray(segments(bench)[0].read_bytes())
    second = next(iter(read_batches(content))).size_in_bytes
    struct.pack_into(">i", content, second + 8, -5)
    segments(bench)[0].write_bytes(content)
    log = bench.open(CONFIG, recovery_point=95)
    assert log.read(0, 1).start_offset == 0
    with pytest.raises(CorruptRecordError, match="size"):
        log.read(5, 1)
    assert len(log.read(95, 1).records) > 0


@pytest.mark.fault("B13")
def test_offset_beyond_index_range_is_an_error(bench: LogBench, filled: UnifiedLog) -> None:
    filled.close()
    content = bytearray(segments(bench)[-1].read_bytes())
    size = list(read_batches(content))[-1].size_in_bytes
    struct.pack_into(">q", content, len(content) - size, 2**40)
    segments(bench)[-1].write_bytes(content)
    segments(bench, ".timeindex")[-1].write_bytes(b"")
    log = bench.open(CONFIG, clean=True)
    with pytest.raises(CorruptRecordError, match="does not belong to this segment"):
        log.close()


@pytest.mark.fault("B3")
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "garbage", "short", "ahead", "zeros"])
def test_corrupt_indexes_are_rebuilt(
    bench: LogBench, filled: UnifiedLog, suffix: str, damage: str
) -> None:
    filled.close()
    clean = snapshot_of(bench)
    index = segments(bench, suffix)[1]
    good = index.read_bytes()
    assert good
    entry = 8 if suffix == ".index" else 12
    damaged = {
        "garbage": b"\x7f\x01" * 20,
        "short": good[:-3],
        "ahead": good[:-4] + b"\x7f\xff\xff\xff",
        "zeros": good + bytes(entry),
    }
    index.unlink()
    if damage in damaged:
        index.write_bytes(damaged[damage])
    log = bench.open(CONFIG, clean=True)
    for offset in range(100):
        records = log.read(offset, 1).records
        assert not isinstance(records, bytes)
        batch = next(iter(read_batches(records.read())))
        assert batch.base_offset <= offset <= batch.last_offset
        wanted = NOW_MS + 10 * (offset // 5) + offset % 5
        assert log.offset_for_timestamp(wanted) == (offset, wanted, batch.partition_leader_epoch)
    log.close()
    assert snapshot_of(bench) == clean


@pytest.mark.fault("B3")
def test_missing_indexes_are_rebuilt(bench: LogBench, filled: UnifiedLog) -> None:
    filled.close()
    for path in segments(bench, "index"):
        path.unlink()
    log = bench.open(CONFIG, clean=True)
    assert offsets(log) == list(range(100))


def test_index_without_log_file_is_removed(bench: LogBench, filled: UnifiedLog) -> None:
    filled.close()
    for suffix in (".index", ".timeindex", ".txnindex"):
        bench.path(777, suffix).write_bytes(b"")
    bench.open(CONFIG, clean=True)
    assert not list(bench.directory.glob("*777.*"))


@pytest.mark.fault("B4")
def test_files_of_interrupted_deletion_and_cleaning_are_removed(
    bench: LogBench, filled: UnifiedLog
) -> None:
    filled.close()
    names = [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.cleaned",
        "leader-epoch-checkpoint.tmp",
    ]
    for name in names:
        (bench.directory / name).write_bytes(b"x")
    log = bench.open(CONFIG, clean=True)
    assert offsets(log) == list(range(100))
    assert not [name for name in names if (bench.directory / name).exists()]


@pytest.mark.fault("B4")
@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_interrupted_swap_is_completed(bench: LogBench, filled: UnifiedLog, renamed: int) -> None:
    """A cleaned segment that replaces two others, interrupted at each step of the swap."""
    filled.close()
    old = segments(bench)[:2]
    third = segments(bench)[2]
    merged = b"".join(path.read_bytes() for path in old)
    kept = [bytes(batch.buffer) for batch in read_batches(merged)][1:]
    swap = old[0].with_name(old[0].name + ".swap")
    swap.write_bytes(b"".join(kept))
    index_swap = old[0].with_name(old[0].stem + ".index.swap")
    index_swap.write_bytes(b"")
    for path in old[:renamed]:
        path.unlink()
    log = bench.open(CONFIG, clean=True)
    assert offsets(log) == list(range(5, 100))
    assert segments(bench)[:2] == [old[0], third]
    assert not list(bench.directory.glob("*.swap"))


@pytest.mark.fault("B4")
def test_swap_file_of_incomplete_split_is_deleted(bench: LogBench, filled: UnifiedLog) -> None:
    filled.close()
    first = segments(bench)[0]
    first.with_name(first.name + ".swap").write_bytes(b"")
    first.with_name(first.name + ".cleaned").write_bytes(b"")
    assert offsets(bench.open(CONFIG, clean=True)) == list(range(100))


@pytest.mark.fault("B3")
@pytest.mark.parametrize("content", [None, b"", b"garbage", b"0\n1\nx y\n"])
def test_leader_epochs_are_rebuilt(
    bench: LogBench, filled: UnifiedLog, content: bytes | None
) -> None:
    filled.close()
    checkpoint = bench.directory / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n3\n0 0\n1 35\n2 70\n"
    checkpoint.unlink()
    if content is not None:
        checkpoint.write_bytes(content)
    log = bench.open(CONFIG, clean=True)
    assert [log.end_offset_for_epoch(epoch) for epoch in range(3)] == [(0, 35), (1, 70), (2, 100)]
    assert checkpoint.read_text() == "0\n3\n0 0\n1 35\n2 70\n"


@pytest.mark.fault("B3")
def test_epochs_after_the_log_end_are_removed(bench: LogBench, filled: UnifiedLog) -> None:
    bench.crash(filled)
    active = segments(bench)[-1]
    active.write_bytes(active.read_bytes()[:-1])
    (bench.directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n9 99\n")
    log = bench.open(CONFIG)
    assert log.end_offset_for_epoch(9) == (-1, -1)


def test_empty_directory_is_an_empty_log(bench: LogBench) -> None:
    log = bench.open(CONFIG, clean=False, recovery_point=50)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    bench.crash(log)
    log = bench.open(CONFIG)
    assert log.append_as_leader(make_batch(), 0).first_offset == 0


def test_log_that_ends_before_its_start_offset_is_reset(
    bench: LogBench, filled: UnifiedLog
) -> None:
    bench.crash(filled)
    log = bench.open(CONFIG, log_start=500)
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert log.append_as_leader(make_batch(), 0).first_offset == 500


def test_log_start_offset_survives_restart(bench: LogBench, filled: UnifiedLog) -> None:
    filled.delete_records_before(12)
    filled.close()
    log = bench.open(CONFIG, clean=True, log_start=12)
    assert log.log_start_offset == 12
    assert log.earliest_offset()[0] == 12


@pytest.mark.fault("B1")
def test_recovery_is_idempotent(bench: LogBench, filled: UnifiedLog) -> None:
    bench.crash(filled)
    active = segments(bench)[-1]
    active.write_bytes(active.read_bytes()[:-10])
    bench.crash(bench.open(CONFIG))
    once = snapshot_of(bench)
    bench.crash(bench.open(CONFIG))
    assert snapshot_of(bench) == once


def test_reduced_index_size_keeps_existing_entries(bench: LogBench, filled: UnifiedLog) -> None:
    bench.crash(filled)
    log = bench.open(CONFIG.with_values(segment_index_bytes=24))
    assert offsets(log) == list(range(100))
    log.append_as_leader(make_batch(), 9)
    assert offsets(log) == list(range(101))
