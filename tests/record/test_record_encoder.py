"""Encoding of single records, and the checks of their parts."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.record import RecordBatch, RecordBatchBuilder
from kclient.record.record import Header
from kclient.record.record_encoder import (
    as_bytes,
    check_rows,
    check_timestamp,
    encode_headers,
    encode_record,
)

FIELDS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=20), FIELDS), max_size=4)


@given(st.integers(-(2**40), 2**40), FIELDS, FIELDS, HEADERS)
def test_encoded_record_is_that_of_a_batch(
    delta: int, key: bytes | None, value: bytes | None, headers: list[Header]
) -> None:
    builder = RecordBatchBuilder(bytearray(10_000))
    builder.append(2**41, None, None)
    before = builder.size_in_bytes
    builder.append(2**41 + delta, key, value, headers)
    batch = bytes(builder.seal())
    assert encode_record(delta, 1, key, value, headers) == batch[before:]
    assert RecordBatch(batch).records()[1][2:] == (key, value, headers)


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_bytes_like_data_becomes_bytes(data: object) -> None:
    found = as_bytes(data, "key")
    assert found == b"abc"
    assert type(found) is bytes


@pytest.mark.parametrize("data", ["abc", 3, [1], object()])
def test_other_data_is_refused_with_its_name(data: object) -> None:
    with pytest.raises(InvalidTypeError, match=f"^key: got {type(data).__name__}, expected bytes"):
        as_bytes(data, "key")


@pytest.mark.parametrize("timestamp", [-1, 0, 2**63 - 1])
def test_valid_timestamps(timestamp: int) -> None:
    assert check_timestamp(timestamp) == timestamp


@pytest.mark.parametrize("timestamp", [-2, 2**63])
def test_timestamp_out_of_range_is_refused(timestamp: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"timestamp_ms: got {timestamp}, expected"):
        check_timestamp(timestamp)


@pytest.mark.parametrize("timestamp", [1.5, "1", None])
def test_timestamp_of_another_type_is_refused(timestamp: object) -> None:
    with pytest.raises(InvalidTypeError, match=r"timestamp_ms: got .*, expected milliseconds"):
        check_timestamp(timestamp)


def test_rows_of_one_length_are_accepted() -> None:
    check_rows([1, 2], [None, b"k"], (b"a", b"b"), 2)
    check_rows(1, None, [], 0)


@pytest.mark.parametrize(
    ("timestamps", "keys", "values", "start", "text"),
    [
        (1, [b"k"], [b"a", b"b"], 0, "keys: got 1 items, expected 2"),
        ([1], None, [b"a", b"b"], 0, "timestamps_ms: got 1 items, expected 2"),
        (1, None, [b"a"], 2, "start: got 2, expected 0 to 1"),
        (1, None, [b"a"], -1, "start: got -1, expected 0 to 1"),
    ],
)
def test_rows_of_other_lengths_are_refused(
    timestamps: int | list[int],
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    start: int,
    text: str,
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        check_rows(timestamps, keys, values, start)


@pytest.mark.parametrize("name", ["values", "keys", "timestamps_ms"])
def test_rows_of_another_type_are_refused(name: str) -> None:
    rows: dict[str, object] = {"timestamps_ms": [1], "keys": [b"k"], "values": [b"v"]}
    rows[name] = iter([b"x"])
    with pytest.raises(InvalidTypeError, match=f"^{name}: got list_iterator, expected a list"):
        check_rows(rows["timestamps_ms"], rows["keys"], rows["values"], 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "kind", "text"),
    [
        ({"h": b"1"}, InvalidTypeError, "headers: got dict, expected a list"),
        ([["h", b"1"]], InvalidTypeError, r"headers\[0\]: got \['h', b'1'\], expected a tuple"),
        ([("a", b""), ("h",)], InvalidTypeError, r"headers\[1\]: got \('h',\), expected a tuple"),
        ([(b"h", b"1")], InvalidTypeError, r"headers\[0\]: got .*, expected a tuple \(str"),
        ([("h", "1")], InvalidTypeError, r"headers\[0\]: value: got str, expected bytes-like"),
        ([("\ud800", b"")], InvalidArgumentError, r"headers\[0\]: got .*UTF-8"),
    ],
)
def test_malformed_headers_are_refused(headers: object, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        encode_headers(headers)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [None, b"", b"k" * 200])
@pytest.mark.parametrize("value", [None, b"", b"v" * 70_000])
@pytest.mark.parametrize("headers", [None, [("name", b"x" * 100), ("né", None)]])
def test_record_size_upper_bound_is_never_exceeded(
    twin: ModuleType, key: bytes | None, value: bytes | None, headers: Any
) -> None:
    bound = twin.record_size_upper_bound(key, value, headers)
    builder = twin.RecordBatchBuilder(bytearray(61 + bound))
    builder.append_with_offset(2**31 - 2, 0, b"", b"")
    empty = builder.size_in_bytes
    builder = twin.RecordBatchBuilder(bytearray(200_000))
    builder.append(2**62, None, None)
    before = builder.size_in_bytes
    builder.append_with_offset(2**31 - 1, 0, key, value, headers)
    assert builder.size_in_bytes - before <= bound
    assert empty <= bound + 61
