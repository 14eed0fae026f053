"""Validation of ``timeout`` arguments, and the deadline of a blocking call."""

import math

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.runtime import Clock

LONGEST_S = 600.0
"""Longest timeout in seconds; a larger number is probably milliseconds."""

_YEAR_S = 31_536_000.0  # longer timeouts approach limits of the operating system


def check_seconds(name: str, timeout: object) -> float:
    """Return a timeout in seconds; ``math.inf``, without limit, as a year.

    Args:
        name: Name of the argument.
        timeout: Its value.

    Raises:
        InvalidTypeError: It is not a number.
        InvalidArgumentError: It is negative, NaN, or longer than 600 s, which may be milliseconds
            for another client.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise InvalidTypeError(f"{name}: got {describe(timeout)}, expected seconds >= 0 or None")
    if math.isnan(timeout) or timeout < 0:
        raise InvalidArgumentError(
            f"{name}: got {describe(timeout)}, expected seconds >= 0; 0 does not wait"
        )
    if LONGEST_S < timeout < math.inf:
        raise InvalidArgumentError(
            f"{name}: got {describe(timeout)}, expected seconds, at most {LONGEST_S:g}; if these "
            f"are milliseconds, pass {timeout / 1000:g}; math.inf waits without limit"
        )
    return min(float(timeout), _YEAR_S)


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
