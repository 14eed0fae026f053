"""Batches of a file, read in chunks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from kclient.broker.log.file_records import FileRecords
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.system_files import SystemFiles
from kclient.record import (
    BatchHeader,
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    build_end_txn_batch,
)


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


LARGE = batches([Piece(value=10), Piece(value=3000), Piece(value=10)])


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileRecords:
    """Three batches, the second larger than what is read at a time."""
    monkeypatch.setattr("kclient.broker.log.file_records._READ_CHUNK", 100)
    monkeypatch.setattr("kclient.broker.log.file_records._HEADERS_CHUNK", 100)
    (tmp_path / "log").write_bytes(LARGE)
    return FileRecords(SystemFiles().open(tmp_path / "log"), len(LARGE))


def headers(found: Any) -> list[BatchHeader]:
    return [columns.header(row) for columns in found for row in range(columns.batch_count)]


def test_batches_larger_than_a_read_chunk(records: FileRecords) -> None:
    expected = list(records.headers())
    assert len(expected) == 3
    assert headers(records.valid_batch_columns()) == headers(records.header_columns()) == expected


@pytest.mark.parametrize("cut", [1, 80, 500, 3000])
def test_file_with_incomplete_last_batch(records: FileRecords, cut: int) -> None:
    records.truncate_to(len(LARGE) - cut)
    expected = list(records.headers())
    assert len(expected) < 3
    assert headers(records.valid_batch_columns()) == headers(records.header_columns()) == expected


def test_file_shorter_than_expected(records: FileRecords) -> None:
    records.file.truncate(len(LARGE) - 1)
    assert len(headers(records.valid_batch_columns())) == 2
    records.file.truncate(len(LARGE) - 90)
    assert len(headers(records.header_columns())) == 2


def test_offset_order_is_checked_across_chunks(records: FileRecords) -> None:
    records.file.write_at(list(records.headers())[2].position, bytes(8))
    for found in (records.valid_batch_columns(), records.header_columns()):
        assert next(found).batch_count == 1
        assert next(found).batch_count == 1
        with pytest.raises(CorruptRecordError, match="out of order"):
            next(found)
