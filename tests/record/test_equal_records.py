"""Decoding of many records of equal layout: the results and errors are those of single records."""

from collections.abc import Iterator, Sequence
from itertools import islice
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.broker_errors import CorruptRecordError
from kclient.record import Record, TimestampType, crc32c, encode_varint
from kclient.record.payload_window import PayloadWindow
from kclient.record.reference import RecordBatch, RecordBatchBuilder, record_batch
from kclient.record.reference.equal_records import ParsedRecord, equal_records
from kclient.record.reference.record_batch import parsed_records
from tests.support.checks.batch_stories import read_all

NOW_MS = 1_700_000_000_000
Row = tuple[int, int, bytes | None, bytes | None, Any]
"""Offset, timestamp, key, value, headers."""


def sealed(
    rows: Sequence[Row], timestamp_type: TimestampType = TimestampType.CREATE_TIME
) -> bytearray:
    builder = RecordBatchBuilder(bytearray(1 << 20))
    for offset, timestamp, key, value, headers in rows:
        builder.append_with_offset(offset, timestamp, key, value, headers)
    return bytearray(builder.seal(timestamp_type=timestamp_type))


def equal_rows(count: int, first: int = 0, key: bytes | None = None, size: int = 10) -> list[Row]:
    return [(first + number, NOW_MS, key, b"v" * size, None) for number in range(count)]


def window_of(batch: RecordBatch) -> PayloadWindow:
    window = batch.window()
    window.data = bytes(window.data)
    return window


def found(batch: RecordBatch, most: int = 10_000) -> list[ParsedRecord]:
    """Return the equal records at the start of a batch."""
    equal = equal_records(batch, bytes(batch.window().data), 0, 0, -1, most)
    if equal is None:
        return []
    count, end, records = equal
    listed = list(records)
    assert len(listed) == count
    assert listed[-1][1] == end
    return listed


def story(records: Iterator[ParsedRecord]) -> list[Any]:
    """Return the records before an error, and its text."""
    seen: list[Any] = []
    try:
        for *place, headers in records:
            seen.append((*place, list(headers)))
    except CorruptRecordError as error:
        seen.append(str(error))
    return seen


def singly(batch: RecordBatch) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_batch, "equal_records", lambda *_: None)
        return story(parsed_records(batch, window_of(batch)))


# ---- what is recognized


@pytest.mark.parametrize("key", [None, b"", b"key", b"k" * 100])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 100, 8191, 8192])
def test_records_of_equal_size_are_recognized_but_for_the_last(
    key: bytes | None, size: int
) -> None:
    batch = RecordBatch(sealed(equal_rows(20, key=key, size=size)))
    assert [tuple(each[3:6]) for each in found(batch)] == [
        (number, key, b"v" * size) for number in range(19)
    ]


def test_null_values_are_recognized() -> None:
    rows = [(number, NOW_MS, b"k%02d" % number, None, None) for number in range(20)]
    assert [each[4:6] for each in found(RecordBatch(sealed(rows)))] == [
        (b"k%02d" % number, None) for number in range(19)
    ]


@pytest.mark.parametrize("change", ["key", "value", "header", "gap", "timestamp", "delta width"])
def test_a_record_of_another_layout_ends_them(change: str) -> None:
    rows = equal_rows(100 if change == "delta width" else 30)
    offset, timestamp, key, value, headers = rows[20]
    if change == "gap":
        rows[20:] = [(row[0] + 1, *row[1:]) for row in rows[20:]]
    elif change != "delta width":
        changed: dict[str, Row] = {
            "key": (offset, timestamp, b"", value, headers),
            "value": (offset, timestamp, key, b"longer than before", headers),
            "header": (offset, timestamp, key, value, [("", b"")]),
            "timestamp": (offset, timestamp + 64, key, value, headers),
        }
        rows[20] = changed[change]
    batch = RecordBatch(sealed(rows))
    assert len(found(batch)) == (64 if change == "delta width" else 20)
    assert len(batch.records()) == len(rows)


def test_few_equal_records_are_decoded_singly() -> None:
    assert found(RecordBatch(sealed(equal_rows(8)))) == []
    assert len(found(RecordBatch(sealed(equal_rows(9))))) == 8
    assert found(RecordBatch(sealed(equal_rows(20))), 7) == []


def test_no_more_than_asked_for_are_decoded() -> None:
    assert len(found(RecordBatch(sealed(equal_rows(40))), 12)) == 12


@pytest.mark.parametrize(
    "timestamp_type", [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]
)
def test_timestamps_of_all_widths(timestamp_type: TimestampType) -> None:
    for bits in range(33):
        for sign in (1, -1):
            delta = sign * (1 << bits)
            rows = [(n, NOW_MS + delta * bool(n) + n % 2, None, b"", None) for n in range(30)]
            batch = RecordBatch(sealed(rows, timestamp_type))
            assert story(parsed_records(batch, window_of(batch))) == singly(batch)


def test_batch_with_offset_deltas_of_all_widths() -> None:
    batch = RecordBatch(sealed(equal_rows(8300, size=1)))
    assert [record.offset for record in batch.records()] == list(range(8300))
    assert story(parsed_records(batch, window_of(batch))) == singly(batch)


# ---- comparison with single records

sizes = st.sampled_from([None, 0, 1, 5, 63, 64, 100])
groups = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 40),
            "gap": st.sampled_from([0, 0, 0, 1, 30, 8000]),
            "key": sizes,
            "value": sizes,
            "headers": st.sampled_from([None, None, None, [("h", b"x")]]),
            "later": st.sampled_from([0, 0, 1, 3, 70, 9000, -5, 1 << 40]),
        }
    ),
    min_size=1,
    max_size=5,
)
kinds = st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])
places = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))


def rows_of(parts: list[dict[str, Any]]) -> list[Row]:
    """Return the records of groups with equal sizes, in which the timestamps change slowly."""
    rows: list[Row] = []
    offset, timestamp = 0, NOW_MS
    for part in parts:
        offset += part["gap"]
        for number in range(part["count"]):
            key, value = (
                None if part[name] is None else bytes([65 + number]) * part[name]
                for name in ("key", "value")
            )
            rows.append((offset, timestamp, key, value, part["headers"]))
            timestamp += part["later"] if number % 3 == 0 else 0
            offset += 1
    return rows


@given(groups, kinds, st.integers(1, 60))
def test_records_are_those_of_single_decoding(parts: Any, kind: TimestampType, ahead: int) -> None:
    rows = rows_of(parts)
    batch = RecordBatch(sealed(rows, kind))
    assert story(parsed_records(batch, window_of(batch))) == singly(batch)
    assert story(parsed_records(batch, window_of(batch), ahead=ahead)) == singly(batch)
    stamp = batch.max_timestamp if kind is TimestampType.LOG_APPEND_TIME else None
    assert batch.records() == [
        Record(offset, timestamp if stamp is None else stamp, key, value, headers or [])
        for offset, timestamp, key, value, headers in rows
    ]


@settings(max_examples=300)
@given(
    groups,
    kinds,
    st.lists(places, max_size=3),
    st.integers(0, 200),
    st.integers(-3, 3),
    st.booleans(),
)
def test_errors_are_those_of_single_decoding(
    parts: Any, kind: TimestampType, changes: Any, cut: int, more: int, focus: bool
) -> None:
    """Changed and missing bytes, and wrong numbers of records."""
    data = sealed(rows_of(parts), kind)
    low = 61 if focus else 23  # the records, or the header from the last offset delta on
    for place, value in changes:
        data[low + int(place * (len(data) - low))] = value
    if cut < 100:
        del data[max(61, len(data) - cut) :]
        data[8:12] = (len(data) - 12).to_bytes(4)
    count = max(0, int.from_bytes(data[57:61]) + more) & 0x7FFFFFFF
    data[57:61] = count.to_bytes(4)
    data[17:21] = crc32c(data[21:]).to_bytes(4)
    try:
        batch = RecordBatch(data)
        batch.window()
    except CorruptRecordError:
        return
    assert story(parsed_records(batch, window_of(batch))) == singly(batch)


@given(groups, st.integers(1, 50))
def test_slices_are_those_of_single_decoding(parts: Any, step: int) -> None:
    rows = rows_of(parts)
    batch = RecordBatch(sealed(rows))
    window = window_of(batch)
    whole = singly(batch)
    position, index, previous = 0, 0, -1
    seen: list[Any] = []
    while index < batch.count:
        following = parsed_records(batch, window, position, index, previous, ahead=step)
        seen += story(islice(following, step))
        index, position, _, previous, *_ = seen[-1]
        index += 1
    assert seen == whole


@given(groups, kinds, st.integers(0, 100), st.integers(1, 50))
def test_twins_read_alike(
    twins: list[ModuleType], parts: Any, kind: TimestampType, start: int, step: int
) -> None:
    data = bytes(sealed(rows_of(parts), kind))
    stories = [read_all(module, data, start, step) for module in twins]
    assert all(each == stories[0] for each in stories)


# ---- every byte of a record


def batch_of(payload: bytes, count: int, base_timestamp: int = NOW_MS) -> RecordBatch:
    """Return a batch of any payload, whose last offset delta is not exceeded."""
    data = sealed(equal_rows(1))[:61] + payload
    data[8:12] = (len(data) - 12).to_bytes(4)
    data[23:27] = (1 << 20).to_bytes(4)
    data[27:35] = base_timestamp.to_bytes(8, signed=True)
    data[57:61] = count.to_bytes(4)
    return RecordBatch(data)


COUNT = 20
SHAPES = {
    "null key": b"\0\0 \x01\x06abc\0",
    "two lengths of two bytes": b"\0\0 " + (b"\x80\x01" + b"x" * 64) * 2 + b"\0",
    "null value": b"\0\0 \x04ab\x01\0",
    "timestamp of two bytes": b"\0\x80\x01 \x01\x06abc\0",
    "timestamp of four bytes": b"\0\x80\x80\x80\x01 \x01\x06abc\0",
    "timestamp of ten bytes": b"\0" + b"\xfe" + b"\xff" * 8 + b"\x01 \x01\x06abc\0",
    "integers of more bytes than necessary": b"\0\x80\0 \x81\0\x86\x80\0abc\x80\0",
}
"""Records without their length, with a space for the offset delta."""


def record_of(shape: bytes, delta: int, width: int) -> bytes:
    encoded = encode_varint(delta)
    if len(encoded) < width:  # longer than necessary
        encoded = bytes([encoded[0] | 0x80]) + bytes([0x80] * (width - 2)) + b"\0"
    content = shape.replace(b" ", encoded)
    return encode_varint(len(content)) + content


def values_for(byte: int) -> set[int]:
    return {0, 1, 2, 3, 4, 127, 128, 255, byte ^ 1, byte ^ 2, byte ^ 128} - {byte}


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("changed", [slice(12, 13), slice(None), slice(12, None)])
def test_any_byte_changed(shape: bytes, width: int, changed: slice) -> None:
    """In one record, in all records, or in all from one on."""
    records = [record_of(shape, delta, width) for delta in range(COUNT)]
    size = len(records[0])
    for at in range(size):
        for value in values_for(records[12][at]):
            damaged = [bytearray(record) for record in records]
            for record in damaged[changed]:
                record[at] = value
            batch = batch_of(b"".join(damaged), COUNT)
            assert story(parsed_records(batch, window_of(batch))) == singly(batch)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("base", [-(2**63), -(2**62) - 1, -(2**62), 2**62, 2**62 + 1, 2**63 - 1])
def test_timestamps_at_the_limits_of_64_bits(shape: bytes, base: int) -> None:
    batch = batch_of(b"".join(record_of(shape, delta, 1) for delta in range(COUNT)), COUNT, base)
    assert story(parsed_records(batch, window_of(batch))) == singly(batch)


def test_offset_deltas_beyond_the_last_one_are_refused() -> None:
    first, second = equal_rows(2)
    payload = sealed([first, *equal_rows(COUNT, second[0] + 5)])
    batch = RecordBatch(payload)
    batch.last_offset_delta -= 3
    size = len(batch.window().data) // batch.count
    following = parsed_records(batch, window_of(batch), size, 1, 5)
    seen = story(following)
    assert len(seen) == COUNT - 3 + 1
    assert "its offset delta" in seen[-1]


@pytest.mark.parametrize("surplus", [b"\0", b"x" * 200])
def test_data_after_the_last_record_is_refused(surplus: bytes) -> None:
    payload = b"".join(record_of(SHAPES["null key"], delta, 1) for delta in range(COUNT))
    batch = batch_of(payload + surplus, COUNT)
    seen = story(parsed_records(batch, window_of(batch)))
    assert len(seen) == COUNT
    assert "data follows the last of its 20 records" in seen[-1]


def test_truncated_payloads() -> None:
    payload = b"".join(record_of(SHAPES["null key"], delta, 1) for delta in range(COUNT))
    for end in range(140, len(payload)):
        batch = batch_of(payload[:end], COUNT)
        assert story(parsed_records(batch, window_of(batch))) == singly(batch)
