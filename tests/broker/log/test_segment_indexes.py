"""Indexes of a segment."""

import os
from os.path import samestat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.segment_indexes import SegmentIndexes
from kclient.common.system_files import SystemFiles
from kclient.record import (
    scan_batches,
)
from tests.support.disks.batch_pieces import Piece, batches, pieces
from tests.support.disks.log_bench import LogBench, make_batch, offsets


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


def index_files(data: bytes, interval: int, index_bytes: int, parts: int) -> Any:
    """Return the index files, with batches indexed singly (0 parts) or in that many parts."""
    columns = scan_batches(data)
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    with TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "log").write_bytes(data)
        records = FileRecords(SystemFiles().open(directory / "log"), len(data))
        indexes = SegmentIndexes(SystemFiles(), directory, 0, config, records)
        indexes.reset()
        if parts:
            size = -(-columns.batch_count // parts)
            for start in range(0, columns.batch_count, size):
                indexes.index_batches(columns, range(start, min(start + size, columns.batch_count)))
        else:
            for row in range(columns.batch_count):
                indexes.index_batch(columns.header(row))
        greatest = indexes.max_timestamp_and_offset
        indexes.finish()
        indexes.release()
        records.close()
        return greatest, [path.read_bytes() for path in indexes.paths()[:2]]


@settings(max_examples=100)
@given(
    pieces, st.sampled_from([0, 70, 200, 4096]), st.sampled_from([24, 60, 4096]), st.integers(1, 4)
)
def test_index_batches_equals_index_batch(
    brief: list[Piece], interval: int, index_bytes: int, parts: int
) -> None:
    data = batches(brief)
    assert index_files(data, interval, index_bytes, parts) == index_files(
        data, interval, index_bytes, 0
    )
