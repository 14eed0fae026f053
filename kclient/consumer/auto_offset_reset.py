"""Offset reset policies (Kafka: AutoOffsetResetStrategy, KIP-1106)."""

import re
from datetime import timedelta
from typing import NamedTuple

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1

# Compiled when the first duration is parsed.
_DURATION = (
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?"
)
_PREFIX = "by_duration:"


class AutoOffsetReset(NamedTuple):
    """A reset policy.

    Attributes:
        name: ``earliest``, ``latest``, ``none`` or ``by_duration``.
        duration_ms: Duration of `by_duration`: the reset goes back by that time.
    """

    name: str
    duration_ms: int = 0

    def timestamp(self, wall_ms: int) -> int:
        """Return the timestamp for the ListOffsets request.

        Args:
            wall_ms: The time now, milliseconds since the epoch.
        """
        if self.name == "earliest":
            return EARLIEST_TIMESTAMP
        if self.name == "latest":
            return LATEST_TIMESTAMP
        return max(0, wall_ms - self.duration_ms)


EARLIEST = AutoOffsetReset("earliest")
LATEST = AutoOffsetReset("latest")
NONE = AutoOffsetReset("none")


def parse_auto_offset_reset(raw: object) -> AutoOffsetReset:
    """Return the policy that a configuration value names.

    Args:
        raw: Kafka's name of a policy, or a timedelta in place of Kafka's ``by_duration:...``.

    Raises:
        TypeError: It is neither a str nor a timedelta.
        ValueError: It is not a policy, or a negative duration.
    """
    if isinstance(raw, timedelta):
        if raw < timedelta():
            raise ValueError("expected a duration >= 0, by which the reset goes back")
        return AutoOffsetReset("by_duration", raw // timedelta(milliseconds=1))
    if not isinstance(raw, str):
        raise TypeError
    lowered = raw.strip().lower()
    for policy in (EARLIEST, LATEST, NONE):
        if lowered == policy.name:
            return policy
    if lowered.startswith(_PREFIX):
        return AutoOffsetReset("by_duration", _parse_duration(raw.strip()[len(_PREFIX) :]))
    if lowered in {"smallest", "beginning", "largest", "end"}:
        meant = "earliest" if lowered in {"smallest", "beginning"} else "latest"
        raise ValueError(f"here it is {meant!r}")
    raise ValueError


def _parse_duration(text: str) -> int:
    """Return an ISO 8601 duration of days and smaller in milliseconds."""
    match = re.fullmatch(_DURATION, text.upper())
    if match is None or not any(match.groups()):
        raise ValueError("a duration looks like P3DT12H30M5S")
    days, hours, minutes = (int(match[unit] or 0) for unit in ("days", "hours", "minutes"))
    seconds = float(match["seconds"] or 0)
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + round(seconds * 1000)
