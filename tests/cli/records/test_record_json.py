"""Records as lines of JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.cli.records.record_json import as_json, parse_json
from kclient.common.errors import InvalidArgumentError
from kclient.record import ConsumerRecord
from kclient.record.batch_header import TimestampType


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            ConsumerRecord(
                topic="orders",
                partition=2,
                offset=77,
                timestamp_ms=1_700_000_000_123,
                timestamp_type=TimestampType.LOG_APPEND_TIME,
                key=b'"k"\n\x01\\',
                value=b"\xff\0",
                headers=[('"a"', "grün\N{LINE SEPARATOR}".encode()), ("b", None), ("b", b"\xfe")],
            ),
            {
                "topic": "orders",
                "partition": 2,
                "offset": 77,
                "timestamp": 1_700_000_000_123,
                "timestamp_type": "LogAppendTime",
                "key": '"k"\n\x01\\',
                "value": {"base64": "/wA="},
                "headers": [
                    ['"a"', "grün\N{LINE SEPARATOR}"],
                    ["b", None],
                    ["b", {"base64": "/g=="}],
                ],
            },
        ),
        (
            ConsumerRecord(topic="t", partition=0, offset=0),
            {
                "topic": "t",
                "partition": 0,
                "offset": 0,
                "timestamp": None,
                "timestamp_type": None,
                "key": None,
                "value": None,
                "headers": [],
            },
        ),
    ],
)
def test_fields_of_a_record(record: ConsumerRecord, expected: dict[str, object]) -> None:
    line = as_json(record)
    assert b"\n" not in line
    assert json.loads(line) == expected
    assert list(json.loads(line)) == list(expected)


_bytes = st.none() | st.binary() | st.text().map(str.encode)
_names = st.text()


@given(_bytes, _bytes, st.lists(st.tuples(_names, _bytes)), st.integers(0, 2**63 - 1))
def test_line_has_all_of_the_record(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamp_ms: int,
) -> None:
    record = ConsumerRecord(
        topic="t",
        partition=0,
        offset=0,
        timestamp_ms=timestamp_ms,
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=headers,
    )
    assert parse_json(as_json(record)) == (key, value, headers, timestamp_ms)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"value":"v"}', (None, b"v", [], None)),
        (b' {"value":null,"key":"k","headers":null,"timestamp":null}\r', (b"k", None, [], None)),
        (b'{"value":{"base64":"AP8="}}', (None, b"\0\xff", [], None)),
        (b"", None),
        (b" \r", None),
    ],
)
def test_optional_fields_and_empty_lines(line: bytes, expected: object) -> None:
    assert parse_json(line) == expected


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"value":', "JSON: got an error at character 10, expected an object"),
        (b"\xff", "JSON: got an invalid text, expected an object"),
        (b"[" * 100_000, "JSON: got an invalid text, expected an object"),
        (b"1" * 100_000, "JSON: got an invalid text, expected an object"),
        (b"[]", "JSON: got a list, expected an object"),
        (b"3", "JSON: got a number, expected an object"),
        (b'{"key":"k"}', "value: got no such field, expected one; null is a tombstone"),
        (b'{"value":"v","vlaue":1}', "field: got 'vlaue', expected key, value, headers, timest"),
        (b'{"value":{"a":1}}', "value: got an object, expected a string, null or "),
        (b'{"value":true}', "value: got a boolean, expected a string"),
        (b'{"value":{"base64":"!"}}', "value: got invalid text, expected a string"),
        (b'{"value":{"base64":3}}', "value: got an object, expected a string"),
        (rb'{"value":"\ud800"}', "value: got invalid text, expected a string"),
        (b'{"value":"v","key":3}', "key: got a number, expected a string"),
        (b'{"value":"v","headers":{"a":"b"}}', "headers: got an object, expected a list of"),
        (b'{"value":"v","headers":[["a"]]}', "headers[0]: got a list, expected [name, value]"),
        (rb'{"value":"v","headers":[["\udc00",""]]}', "headers[0]: got invalid text, expected"),
        (b'{"value":"v","headers":[["a","b"],["a",1]]}', "headers[1]: got a number, expected"),
        (b'{"value":"v","timestamp":-1}', "timestamp: got a number, expected milliseconds"),
        (b'{"value":"v","timestamp":true}', "timestamp: got a boolean, expected milliseconds"),
        (b'{"value":"v","timestamp":9223372036854775808}', "timestamp: got a number, expected"),
    ],
)
def test_invalid_lines_are_refused(line: bytes, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json(line)
    assert str(caught.value).startswith(text)
