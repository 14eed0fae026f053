"""Indexes of a segment."""

import os
from dataclasses import dataclass
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
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    build_end_txn_batch,
    scan_batches,
)
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


@dataclass(frozen=True)
class Piece:
    """Description of a batch."""

    records: int = 1
    producer: int = -1
    epoch: int = 0
    kind: str = "plain"
    value: int = 3
    timestamp: int = 1000


def batches(pieces: list[Piece]) -> bytes:
    """Return consecutive batches with continuing offsets and sequences."""
    parts, offset = [], 0
    for piece in pieces:
        if piece.kind in {"commit", "abort"} and piece.producer >= 0:
            marker = EndTxnMarker(ControlRecordType[piece.kind.upper()], piece.epoch)
            stamp = (piece.producer, piece.epoch, piece.timestamp)
            parts.append(bytes(build_end_txn_batch(marker, *stamp, base_offset=offset)))
            offset += 1
            continue
        builder = RecordBatchBuilder(bytearray(1 << 12), base_offset=offset)
        for _ in range(piece.records):
            builder.append(piece.timestamp, None, b"v" * piece.value)
        stamp = (piece.producer, piece.epoch, offset) if piece.producer >= 0 else (-1, -1, -1)
        transactional = piece.kind == "transactional" and piece.producer >= 0
        parts.append(bytes(builder.seal(*stamp, transactional=transactional)))
        offset += piece.records
    return b"".join(parts)


pieces = st.lists(
    st.builds(
        Piece,
        st.integers(1, 3),
        st.sampled_from([0, 0, 0, 0, -1, 1, 2, 3]),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(["plain", "transactional"] * 4 + ["commit", "abort"]),
        st.integers(0, 200),
        st.integers(-1, 9),
    ),
    min_size=1,
    max_size=40,
)


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


@settings(max_examples=100, deadline=None)
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


LARGE = batches([Piece(value=10), Piece(value=3000), Piece(value=10)])


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileRecords:
    """Three batches, the second larger than what is read at a time."""
    monkeypatch.setattr("kclient.broker.log.file_records._READ_CHUNK", 100)
    monkeypatch.setattr("kclient.broker.log.file_records._HEADERS_CHUNK", 100)
    (tmp_path / "log").write_bytes(LARGE)
    return FileRecords(SystemFiles().open(tmp_path / "log"), len(LARGE))
