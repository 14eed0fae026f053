"""Deadline of a blocking call."""

from kclient.common.runtime import Clock
from kclient.common.timeouts import check_seconds


def check_timeout(name: str, timeout: object) -> float | None:
    """Return a timeout in seconds, or None for no limit.

    Raises what `check_seconds` raises.
    """
    if timeout is None:
        return None
    return check_seconds(name, timeout)


class Deadline:
    """End of a blocking call, or no limit."""

    __slots__ = ("_clock", "_end_ms")

    def __init__(self, clock: Clock, timeout: float | None) -> None:
        self._clock = clock
        self._end_ms = None if timeout is None else clock.monotonic_ms() + timeout * 1000.0

    def remaining(self) -> float | None:
        """Return the seconds left, never negative, or None for no limit."""
        if self._end_ms is None:
            return None
        return max(self._end_ms - self._clock.monotonic_ms(), 0.0) / 1000.0

    def passed(self) -> bool:
        """Return whether no time is left."""
        return self._end_ms is not None and self._clock.monotonic_ms() >= self._end_ms
