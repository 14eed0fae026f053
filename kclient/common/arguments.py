"""Validation of arguments that several clients have: timeouts and callbacks."""

import inspect
import math

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError

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
    if type(timeout) is float and 0.0 <= timeout <= LONGEST_S:
        return timeout  # first, since each poll has one
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


def check_timeout(timeout: object, *, default_ms: float) -> float:
    """Return a timeout given in seconds as milliseconds; `default_ms` for None.

    Raises what `check_seconds` raises.
    """
    return default_ms if timeout is None else check_seconds("timeout", timeout) * 1000.0


def check_callback(name: str, given: object, expected: str) -> None:
    """Raise if an argument is not a callback.

    Args:
        name: Name of the argument.
        given: Its value; None for no callback.
        expected: Description of the expected callback.

    Raises:
        InvalidTypeError: It is not callable, or a coroutine function.
    """
    if given is None:
        return
    if not callable(given):
        raise InvalidTypeError(f"{name}: got {describe(given)}, expected {expected}")
    if inspect.iscoroutinefunction(given):
        raise InvalidTypeError(
            f"{name}: got the coroutine function {given!r:.80}, expected a plain function; its "
            "coroutines would not be awaited"
        )
