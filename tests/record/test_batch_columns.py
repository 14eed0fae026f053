"""Columns of batch headers: rows, ranges between control batches, checks of one batch."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.record import (
    BatchColumns,
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    ScanLimits,
    build_end_txn_batch,
    crc32c,
    parse_header,
    scan_batches,
)
from kclient.record.batch_columns import content_problem, framing_problem, offset_problem

MARKER = EndTxnMarker(ControlRecordType.COMMIT, 0)


def batch_at(offset: int, count: int = 1) -> bytes:
    builder = RecordBatchBuilder(bytearray(4096), base_offset=offset)
    for number in range(count):
        builder.append(1000 + number, b"key", b"value")
    return bytes(builder.seal(7, 1, 5, partition_leader_epoch=3))


def columns_of(controls: list[bool]) -> BatchColumns:
    """Return the columns of batches, of which some are control batches."""
    return scan_batches(
        b"".join(
            bytes(build_end_txn_batch(MARKER, 7, 1, 0, base_offset=offset))
            if control
            else batch_at(offset)
            for offset, control in enumerate(controls)
        )
    )


@given(st.lists(st.booleans(), max_size=12), st.none() | st.integers(0, 12))
def test_runs_cover_all_rows_and_isolate_control_batches(
    controls: list[bool], stop: int | None
) -> None:
    stop = None if stop is None else min(stop, len(controls))
    runs = list(columns_of(controls).runs(stop))
    assert [row for run in runs for row in run] == [*range(len(controls))][:stop]
    for run in runs:
        assert len(run) == 1 or not any(controls[row] for row in run)
    for before, after in pairwise(runs):  # no two that could be one
        assert controls[before[-1]] or controls[after[0]]


def test_header_of_a_row_is_that_of_the_batch() -> None:
    data = batch_at(0, 3) + batch_at(3, 2)
    columns = scan_batches(data)
    first = parse_header(data, 0, 0)
    assert columns.header(0) == first
    assert columns.header(1) == parse_header(data, first.size_in_bytes, first.size_in_bytes)


def test_framing_problem_reports_size_before_magic() -> None:
    data = bytearray(batch_at(5))
    limits = ScanLimits(max_batch_size=len(data))
    assert framing_problem(memoryview(data), 0, limits) is None
    data[16] = 1
    assert framing_problem(memoryview(data), 0, limits) == (
        "batch at offset 5: got magic 1, expected 2"
    )
    assert framing_problem(memoryview(data), 0, ScanLimits(max_batch_size=len(data) - 1)) == (
        f"batch at offset 5: got a size of {len(data)} bytes"
    )


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (ScanLimits(5, 7), None),
        (ScanLimits(6, 7), "batch of offsets 5 to 7: out of order, expected 6 to 7"),
        (ScanLimits(0, 6), "batch of offsets 5 to 7: out of order, expected 0 to 6"),
    ],
)
def test_offset_problem_at_the_limits(limits: ScanLimits, text: str | None) -> None:
    assert offset_problem(memoryview(batch_at(5, 3)), 0, limits) == text


def test_content_problem_covers_count_and_checksum() -> None:
    batch = bytearray(batch_at(5, 3))
    assert content_problem(memoryview(batch)) is None
    batch[-1] ^= 1
    assert "got checksum" in (content_problem(memoryview(batch)) or "")
    batch[57:61] = (4).to_bytes(4)
    batch[17:21] = crc32c(batch[21:]).to_bytes(4)
    assert content_problem(memoryview(batch)) == (
        "batch at offset 5: it states 4 records in 3 offsets"
    )
