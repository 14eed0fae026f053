"""Times on the command line."""

import argparse
import time
from collections.abc import Iterator

import pytest

from kclient.cli.time_option import accept_leading_minus, milliseconds

_HOUR_MS = 3_600_000


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A local time five hours behind UTC."""
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:00.001+01:00", 1),
        ("1970-01-01T00:00:00", 5 * _HOUR_MS),
        ("1970-01-02", 29 * _HOUR_MS),
        ("1960-01-01T00:00:00Z", 0),
    ],
)
def test_points_in_time(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize(
    ("text", "back_ms"),
    [
        ("-2h", 2 * _HOUR_MS),
        ("-1d12h", 36 * _HOUR_MS),
        ("-90s", 90_000),
        ("-1w5m", 168 * _HOUR_MS + 300_000),
    ],
)
def test_durations_before_now(monkeypatch: pytest.MonkeyPatch, text: str, back_ms: int) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    assert milliseconds(text) == 1_700_000_000_123 - back_ms


@pytest.mark.parametrize(
    "text", ["", "-", "-h", "2h", "-2", "-2x", "noon", "2026-13-01", "1" * 19, "0001-01-01x"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"got .*, expected an ISO 8601 time"):
        milliseconds(text)


def test_value_of_an_option_can_start_with_a_minus() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--from-time")
    parser.add_argument("topic", nargs="+")
    accept_leading_minus(parser)
    parsed = parser.parse_args(["orders", "--from-time", "-2h"])
    assert (parsed.topic, parsed.from_time) == (["orders"], "-2h")
