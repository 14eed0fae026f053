"""Records as lines of JSON."""

import json

import pytest

from kclient.cli.record_json import as_json
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
