"""Times on the command line: ISO 8601, milliseconds since the epoch, or a duration before now."""

import argparse
import re
import time
from datetime import UTC, datetime, timedelta

_MILLISECONDS = re.compile(r"\d+")
_DIGITS = 18
_DURATION = re.compile(r"-(?:\d{1,9}[smhdw])+")
_PART = re.compile(r"(\d+)([smhdw])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TIME_FORMS = (
    "an ISO 8601 time such as 2026-01-31T12:00:00+01:00 (local time without a zone), milliseconds "
    "since the epoch, or a duration before now such as -2h or -1d12h"
)
"""Forms that `milliseconds` accepts, for help texts."""


def milliseconds(text: str) -> int:
    """Return a time in milliseconds since the epoch.

    Raises:
        argparse.ArgumentTypeError: The text is no time.
    """
    if _MILLISECONDS.fullmatch(text) and len(text) <= _DIGITS:
        return int(text)
    if _DURATION.fullmatch(text):
        back_ms = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(text))
        return max(0, time.time_ns() // 1_000_000 - back_ms)
    try:
        if text.isdecimal():  # also a date in ISO 8601's basic form
            raise ValueError
        moment = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"got {text!r:.80}, expected {TIME_FORMS}") from None
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))


def accept_leading_minus(parser: argparse.ArgumentParser) -> None:
    """Let the values of options begin with a minus and a digit: ``--from-time -2h``.

    By default argparse takes only numbers, such as -2, for a value.
    """
    parser._negative_number_matcher = re.compile(r"-\d")  # noqa: SLF001 (no public setting)
