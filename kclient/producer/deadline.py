"""How long a blocking call may still take."""

import math

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.runtime import Clock


def check_timeout(name: str, timeout: object) -> float | None:
    """Return a timeout in seconds, or None for no limit.

    Raises:
        InvalidTypeError: It is not a number.
        InvalidArgumentError: It is negative or NaN.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise InvalidTypeError(
            f"{name}: got {describe(timeout)}, expected seconds as int or float, or None"
        )
    if math.isnan(timeout) or timeout < 0:
        raise InvalidArgumentError(
            f"{name}: got {describe(timeout)}, expected seconds >= 0, or None to wait without limit"
        )
    # Beyond a year the operating system's own limits come near.
    return min(float(timeout), 31_536_000.0)


class Deadline:
    """A point in time, or none."""

    __slots__ = ("_clock", "_end_ms")

    def __init__(self, clock: Clock, timeout: float | None) -> None:
        self._clock = clock
        self._end_ms = None if timeout is None else clock.monotonic_ms() + timeout * 1000.0

    def remaining(self) -> float | None:
        """Return the seconds left, never negative, or None where there is no limit."""
        if self._end_ms is None:
            return None
        return max(self._end_ms - self._clock.monotonic_ms(), 0.0) / 1000.0

    def passed(self) -> bool:
        """Return whether no time is left."""
        return self._end_ms is not None and self._clock.monotonic_ms() >= self._end_ms
