"""Offset, time and transaction index: look-ups, limits, trimming, sanity."""

import os
from bisect import bisect_right
from os.path import samestat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_errors import CorruptIndexError
from kclient.broker.log.offset_index import OffsetIndex, OffsetPosition
from kclient.broker.log.time_index import TimeIndex, TimestampOffset
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.common.errors import IllegalStateError, InvalidOffsetError
from kclient.common.system_files import SystemFiles
from tests.support.disks.log_bench import LogBench, make_batch, offsets

BASE = 1000


def offset_index(directory: Path, size: int = 80) -> OffsetIndex:
    index = OffsetIndex(SystemFiles(), directory / "x.index", BASE, size)
    index.open()
    return index


def time_index(directory: Path, size: int = 120) -> TimeIndex:
    index = TimeIndex(SystemFiles(), directory / "x.timeindex", BASE, size)
    index.open()
    return index


def test_index_file_contains_only_its_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, size=85)
    assert (tmp_path / "x.index").read_bytes() == b""
    index.append(BASE + 3, 17)
    assert (tmp_path / "x.index").stat().st_size == 8
    index.close()
    assert (tmp_path / "x.index").read_bytes() == bytes.fromhex("00000003 00000011")
    index.open()
    assert (index.entries, index.last_offset, index.is_full) == (1, BASE + 3, True)
    index.close()


def test_time_index_has_kafkas_format(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    index.maybe_append(5, BASE + 1)
    index.close()
    data = (tmp_path / "x.timeindex").read_bytes()
    assert data == bytes.fromhex("0000000000000005 00000001")


def test_full_offset_index_rejects_entries(tmp_path: Path) -> None:
    index = offset_index(tmp_path, size=16)
    fullness = []
    for number in range(2):
        index.append(BASE + number, number)
        fullness.append(index.is_full)
    assert fullness == [False, True]
    with pytest.raises(IllegalStateError, match="the index is full"):
        index.append(BASE + 2, 2)
    index.close()


def test_time_index_reserves_capacity_for_final_entry(tmp_path: Path) -> None:
    index = time_index(tmp_path, size=24)
    fullness = [index.is_full]
    index.maybe_append(1, BASE)
    fullness.append(index.is_full)
    assert fullness == [False, True]
    index.maybe_append(2, BASE + 1, closing=True)
    index.maybe_append(3, BASE + 2, closing=True)
    assert [index.entry(n).timestamp for n in range(index.entries)] == [1, 2, 3]
    index.close()


def test_index_entries_must_ascend(tmp_path: Path) -> None:
    offsets, times = offset_index(tmp_path), time_index(tmp_path)
    offsets.append(BASE + 5, 5)
    with pytest.raises(InvalidOffsetError, match="1005"):
        offsets.append(BASE + 5, 6)
    times.maybe_append(10, BASE + 5)
    times.maybe_append(10, BASE + 9)
    times.maybe_append(9, BASE + 9)
    assert times.entries == 1
    with pytest.raises(InvalidOffsetError, match="1005"):
        times.maybe_append(11, BASE + 4)
    offsets.close()
    times.close()


@settings(deadline=None)
@given(
    gaps=st.lists(st.integers(1, 1000), min_size=1, max_size=60),
    targets=st.lists(st.integers(BASE - 5, BASE + 70_000), min_size=1, max_size=20),
    cut=st.integers(BASE, BASE + 70_000),
)
def test_offset_lookup_returns_floor(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], targets: list[int], cut: int
) -> None:
    index = offset_index(tmp_path_factory.mktemp("index"), size=8 * 60)
    entries: list[OffsetPosition] = []
    offset = BASE
    for number, gap in enumerate(gaps):
        offset += gap
        entries.append(OffsetPosition(offset, number * 10))
        index.append(offset, number * 10)
    for _ in range(2):
        known = [entry.offset for entry in entries]
        for target in targets:
            place = bisect_right(known, target)
            expected = entries[place - 1] if place else OffsetPosition(BASE, 0)
            assert index.lookup(target) == expected
        entries = [entry for entry in entries if entry.offset < cut]
        index.truncate_to(cut)
        assert index.entries == len(entries)
        assert index.last_offset == (entries[-1].offset if entries else BASE)
    index.close()


@settings(deadline=None)
@given(
    gaps=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    targets=st.lists(st.integers(-1, 1600), min_size=1, max_size=20),
    cut=st.integers(BASE, BASE + 31),
)
def test_time_lookup_returns_floor(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], targets: list[int], cut: int
) -> None:
    index = time_index(tmp_path_factory.mktemp("index"), size=12 * 31)
    entries: list[TimestampOffset] = []
    timestamp = 0
    for number, gap in enumerate(gaps):
        timestamp += gap
        entries.append(TimestampOffset(timestamp, BASE + number))
        index.maybe_append(*entries[-1])
    for _ in range(2):
        known = [entry.timestamp for entry in entries]
        for target in targets:
            place = bisect_right(known, target)
            expected = entries[place - 1] if place else TimestampOffset(-1, BASE)
            assert index.lookup(target) == expected
        entries = [entry for entry in entries if entry.offset < cut]
        index.truncate_to(cut)
        assert index.last_entry == (entries[-1] if entries else TimestampOffset(-1, BASE))
    index.close()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.index", bytes(7)),
        ("x.index", bytes.fromhex("00000005 00000000 00000003 00000009")),
        ("x.index", bytes.fromhex("ffffffff 00000000")),
        ("x.timeindex", bytes(11)),
        ("x.timeindex", bytes.fromhex("0000000000000005 00000001 0000000000000004 00000002")),
        ("x.timeindex", bytes.fromhex("0000000000000005 ffffffff")),
    ],
)
def test_sanity_check_detects_damage(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    index = offset_index(tmp_path) if name == "x.index" else time_index(tmp_path)
    with pytest.raises(CorruptIndexError, match=name):
        index.sanity_check()
    index.release()


def test_empty_index_file_passes_sanity_check(tmp_path: Path) -> None:
    (tmp_path / "x.index").write_bytes(b"")
    index = offset_index(tmp_path)
    index.sanity_check()
    assert index.lookup(BASE + 7) == (BASE, 0)
    index.resize_for_append()
    index.append(BASE + 1, 3)
    assert index.lookup(BASE + 7) == (BASE + 1, 3)
    index.close()


TXNS = [AbortedTxn(7, 1000, 1010, 1005), AbortedTxn(8, 1005, 1020, 1021)]


def test_transaction_index_append_and_truncate(tmp_path: Path) -> None:
    path = tmp_path / "x.txnindex"
    index = TransactionIndex(SystemFiles(), path, BASE)
    assert index.aborted_txns() == []
    assert not path.exists()
    for txn in TXNS:
        index.append(txn)
    with pytest.raises(CorruptIndexError, match="1020"):
        index.append(TXNS[0])
    index.close()
    assert path.stat().st_size == 68
    assert path.read_bytes()[:10] == bytes.fromhex("0000 0000000000000007")
    index = TransactionIndex(SystemFiles(), path, BASE)
    index.sanity_check()
    assert index.aborted_txns() == TXNS
    index.truncate_to(1020)
    assert index.aborted_txns() == TXNS[:1]
    index.append(TXNS[1])
    index.reset()
    assert index.aborted_txns() == []
    index.close()


def test_sanity_check_of_transaction_index(tmp_path: Path) -> None:
    path = tmp_path / "x.txnindex"
    index = TransactionIndex(SystemFiles(), path, BASE)
    index.append(TXNS[0])
    index.close()
    good = path.read_bytes()
    for bad in (good[:-1], b"\1" + good[1:]):
        path.write_bytes(bad)
        index = TransactionIndex(SystemFiles(), path, BASE)
        with pytest.raises(CorruptIndexError):
            index.sanity_check()
        index.close()
    path.write_bytes(good)
    index = TransactionIndex(SystemFiles(), path, 2000)
    with pytest.raises(CorruptIndexError, match="before the segment"):
        index.sanity_check()
    index.close()


def test_empty_log_creates_index_files_on_first_append(bench: LogBench) -> None:
    log = bench.open()
    assert log.maintenance.recovery_point == log.log_end_offset == 0
    assert [path.name for path in bench.directory.iterdir()] == ["0" * 20 + ".log"]
    log.append_as_leader(make_batch(1), 0)
    assert bench.path(0, ".index").exists()
    assert bench.path(0, ".timeindex").exists()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("left", [(), (".index",), (".index", ".timeindex")])
def test_indexes_accept_entries_after_restart(
    bench: LogBench, left: tuple[str, ...], *, clean: bool
) -> None:
    """The files may be missing or empty, as for an empty log."""
    bench.open().close()
    for suffix in left:
        bench.path(0, suffix).touch()
    log = bench.open(LogConfig(index_interval_bytes=0), clean=clean)
    with bench.path(0, ".log").open() as segment:
        for _ in range(5):
            log.append_as_leader(make_batch(1), 0)
        # A full index would have caused a roll.
        assert samestat(bench.path(0, ".log").stat(), os.fstat(segment.fileno()))
        assert len(list(bench.directory.glob("*.log"))) == 1
    assert bench.path(0, ".index").stat().st_size == 4 * 8
    assert offsets(log) == list(range(5))
