"""Scan of many batches: results, and equality of both implementations."""

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.record import (
    BatchColumns,
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    ScanLimits,
    build_end_txn_batch,
    crc32c,
    read_batches,
)
from kclient.record.reference import batch_scan
from tests.fuzz.batch_mutation import FIELDS


def implementations() -> list[Any]:
    try:
        return [batch_scan, import_module("kclient.record._scan")]
    except ImportError:  # built without a compiler
        return [batch_scan]


SCANNERS = implementations()
HEADER = 61


@pytest.fixture(params=SCANNERS, ids=lambda module: module.__name__.rpartition(".")[2])
def scanner(request: pytest.FixtureRequest) -> Any:
    return request.param


def batch_at(offset: int, count: int = 2, producer: tuple[int, int, int] = (7, 1, 40)) -> bytes:
    builder = RecordBatchBuilder(bytearray(4096), base_offset=offset)
    for number in range(count):
        builder.append(1000 + number, b"key", b"v" * number)
    return bytes(builder.seal(*producer, partition_leader_epoch=3))


def marker_at(offset: int) -> bytes:
    marker = EndTxnMarker(ControlRecordType.ABORT, 0)
    return bytes(build_end_txn_batch(marker, 7, 1, 5, base_offset=offset))


def changed(batch: bytes, position: int, new: bytes, *, sealed: bool = True) -> bytes:
    data = bytearray(batch)
    data[position : position + len(new)] = new
    if sealed:
        data[17:21] = crc32c(data[21:]).to_bytes(4)
    return bytes(data)


GOOD = batch_at(0) + batch_at(2, 3) + marker_at(5) + batch_at(9, 1)


def test_scan_returns_every_header_field(scanner: Any) -> None:
    found: BatchColumns = scanner.scan_batches(GOOD, 1000)
    batches = list(read_batches(GOOD))
    assert list(found.positions) == [1000 + GOOD.index(batch.buffer) for batch in batches]
    for column, name in (
        (found.sizes, "size_in_bytes"), (found.base_offsets, "base_offset"),
        (found.last_offsets, "last_offset"), (found.leader_epochs, "partition_leader_epoch"),
        (found.crcs, "crc"), (found.attributes, "attributes"),
        (found.base_timestamps, "base_timestamp"), (found.max_timestamps, "max_timestamp"),
        (found.producer_ids, "producer_id"), (found.producer_epochs, "producer_epoch"),
        (found.base_sequences, "base_sequence"), (found.record_counts, "count"),
    ):  # fmt: skip
        assert list(column) == [getattr(batch, name) for batch in batches], name
    assert list(found.controls) == [2]
    assert (found.batch_count, found.end, found.problem) == (4, 1000 + len(GOOD), None)


def test_scan_of_empty_buffer(scanner: Any) -> None:
    assert scanner.scan_batches(b"").batch_count == 0
    assert scanner.scan_batches(bytes(60))[-3:] == (0, HEADER, None)


@pytest.mark.parametrize("cut", [1, 60, 61])
def test_incomplete_batch_reports_wanted_size(scanner: Any, cut: int) -> None:
    first, second = batch_at(0), batch_at(2, 9)
    found = scanner.scan_batches(first + second[:cut])
    assert (found.batch_count, found.end, found.problem) == (1, len(first), None)
    assert found.wanted == (len(second) if cut == HEADER else HEADER)


def test_scan_headers_needs_only_the_header_of_the_last_batch(scanner: Any) -> None:
    first, second = batch_at(0), batch_at(2, 9)
    data, end = first + second[:HEADER], 50 + len(first + second)
    assert scanner.scan_headers(data, 50, end)[-3:] == (end, HEADER, None)
    assert scanner.scan_headers(data, 50, end - 1)[-3:] == (50 + len(first), len(second), None)


WRONG = {
    "size of 60": changed(batch_at(2), 8, (48).to_bytes(4)),
    "size of -2147483636": changed(batch_at(2), 8, b"\x80\0\0\0"),
    "got magic 1": changed(batch_at(2), 16, b"\x01"),
    "offsets 1 to 2: out of order": batch_at(1),
    "offsets 2 to 1: out of order": changed(batch_at(2), 23, b"\xff" * 4),
    "offsets 9223372036854775807 to": changed(batch_at(2), 0, b"\x7f" + b"\xff" * 7),
    "states 3 records in 2 offsets": changed(batch_at(2), 57, b"\0\0\0\x03"),
    "states -1 records": changed(batch_at(2), 57, b"\xff" * 4),
    "got checksum": changed(batch_at(2), 61, b"x", sealed=False),
}


@pytest.mark.parametrize("problem", WRONG)
def test_invalid_batch_ends_the_scan_and_is_reported(scanner: Any, problem: str) -> None:
    first = batch_at(0)
    found = scanner.scan_batches(first + WRONG[problem] + batch_at(20))
    assert (found.batch_count, found.end) == (1, len(first))
    assert problem in found.problem


def test_scan_limits_are_enforced(scanner: Any) -> None:
    size = len(batch_at(5))
    data = batch_at(5)
    assert scanner.scan_batches(data, 0, ScanLimits(5, 6, size)).batch_count == 1
    assert scanner.scan_batches(data, 0, ScanLimits(6, 6, size)).batch_count == 0
    assert scanner.scan_batches(data, 0, ScanLimits(5, 5, size)).batch_count == 0
    assert scanner.scan_batches(data, 0, ScanLimits(5, 6, size - 1)).batch_count == 0


def test_scan_of_many_batches(scanner: Any) -> None:
    found = scanner.scan_batches(b"".join(batch_at(number, 1) for number in range(300)))
    assert list(found.base_offsets) == list(range(300))


# --- the two side by side

fields = st.sampled_from(sorted(FIELDS))
numbers = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63])
damages = st.lists(st.tuples(st.integers(0, 5), fields, numbers), max_size=3)
lengths = st.lists(st.integers(1, 3), min_size=1, max_size=6)
limits = st.builds(
    ScanLimits,
    st.sampled_from([0, 1, 2**63 - 1]),
    st.sampled_from([2**63 - 2, 2**31, 7, 0]),
    st.sampled_from([2**31 - 1 + 12, 100, 61, 0]),
)


def damaged(counts: list[int], changes: Any, *, sealed: bool) -> bytes:
    parts, offset = [], 0
    for count in counts:
        parts.append(batch_at(offset, count) if count < 3 else marker_at(offset))
        offset += count
    for number, field, value in changes:
        width = FIELDS[field][1] // 8
        new = (value % 256**width).to_bytes(width)
        place = number % len(parts)
        parts[place] = changed(parts[place], field, new, sealed=sealed)
    return b"".join(parts)


def stories(data: bytes, position: int, bounds: ScanLimits, end: int) -> list[Any]:
    return [
        (
            module.scan_batches(data, position, bounds),
            module.scan_headers(data, position, end, bounds),
        )
        for module in SCANNERS
    ]


@settings(max_examples=300)
@given(lengths, damages, st.booleans(), limits, st.integers(0, 200), st.integers(-200, 5000))
def test_scan_twins_agree_on_damaged_batches(
    counts: list[int], changes: Any, sealed: bool, bounds: ScanLimits, cut: int, surplus: int
) -> None:
    data = damaged(counts, changes, sealed=sealed)
    data = data[: max(0, len(data) - cut)] if cut < 100 else data
    first, *others = stories(data, 7, bounds, len(data) + surplus)
    assert all(other == first for other in others)


@given(st.binary(max_size=200), limits, st.integers(0, 300))
def test_scan_twins_agree_on_random_bytes(data: bytes, bounds: ScanLimits, end: int) -> None:
    first, *others = stories(data, 0, bounds, end)
    assert all(other == first for other in others)
