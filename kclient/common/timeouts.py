"""The check of every ``timeout`` argument."""

import math

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError

LONGEST_S = 600.0
"""Longest timeout that is taken for one in seconds."""

_YEAR_S = 31_536_000.0  # beyond it the operating system's own limits come near


def check_seconds(name: str, timeout: object) -> float:
    """Return a timeout in seconds; one without limit, ``math.inf``, as a year.

    Args:
        name: Name of the argument.
        timeout: What was given for it.

    Raises:
        InvalidTypeError: It is not a number.
        InvalidArgumentError: It is negative or NaN; or longer than 600 s, which other clients
            would take for milliseconds.
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
