"""Offsets in the form that Spark stores, and offset ranges."""

import json

import pytest

from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import LATEST, Span, from_offset, parse_offsets, to_offset
from kclient.spark.source.read_task import OffsetRange
from tests.support.checks.travelled import travelled

OFFSETS = {
    TopicPartition("b", 10): 3,
    TopicPartition("b", 2): 4,
    TopicPartition("a", 0): 2**62,
}


def test_offsets_are_sorted() -> None:
    text = '{"a": {"0": 4611686018427387904}, "b": {"2": 4, "10": 3}}'
    assert json.dumps(to_offset(OFFSETS)) == text
    assert json.dumps(to_offset(dict(reversed(OFFSETS.items())))) == text


def test_stored_offsets_are_restored() -> None:
    assert from_offset(json.loads(json.dumps(to_offset(OFFSETS)))) == OFFSETS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"t":5}',
        '{"t":{"x":5}}',
        '{"t":{"0":"5"}}',
        '{"t":{"0":-2}}',
        '{"/":{"0":1}}',
    ],
)
def test_malformed_offsets_fail(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^opt: got .* expected JSON"):
        parse_offsets("opt", text, lowest=LATEST)


def test_offset_range_pickles() -> None:
    span = Span(TopicPartition("t", 3), 5, 9)
    sent = travelled(OffsetRange(span))
    assert sent.span == span
    assert (sent.span.size, repr(sent)) == (4, "OffsetRange(t-3[5:9])")
