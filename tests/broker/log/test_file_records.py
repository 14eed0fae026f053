"""Batches of a file, read in chunks."""

from pathlib import Path
from typing import Any

import pytest

from kclient.broker.log.file_records import FileRecords, framing_error
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.system_files import SystemFiles
from kclient.record import LOG_OVERHEAD, BatchHeader, parse_header
from tests.support.disks.batch_pieces import LARGE


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


@pytest.mark.parametrize(
    ("size", "is_valid"), [(61, True), (500_000_000, True), (60, False), (2**30 + 1, False)]
)
def test_size_of_a_batch_above_the_default_request_limit_is_valid(
    size: int, is_valid: bool
) -> None:
    start = bytearray(LARGE[:61])
    start[8:12] = (size - LOG_OVERHEAD).to_bytes(4, "big")
    error = framing_error(parse_header(start, 0, 0))
    assert (error is None) == is_valid, error


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
