"""Validation of arguments that several clients have: timeouts and callbacks."""

import math
from collections.abc import Callable
from importlib import import_module
from types import FunctionType, MethodType

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError

LONGEST_S = 600.0
"""Longest timeout in seconds; a larger number is probably milliseconds."""

CO_VARARGS = 0x04
CO_COROUTINE = 0x80
"""Flags of code, with the names and values that they have in `inspect`."""

_NUMBERS = frozenset({float, int})
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
    if type(timeout) in _NUMBERS and 0.0 <= timeout <= LONGEST_S:  # type: ignore[operator]
        return float(timeout)  # type: ignore[arg-type]  # first, since each poll has one
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


def check_callback(
    name: str, given: object, expected: str, *, may_be_coroutine: bool = False
) -> None:
    """Raise if an argument is not a callback.

    Args:
        name: Name of the argument.
        given: Its value; None for no callback.
        expected: Description of the expected callback.
        may_be_coroutine: Whether it may be a coroutine function.

    Raises:
        InvalidTypeError: It is not callable, or a coroutine function that would not be awaited.
    """
    if given is None:
        return
    if not callable(given):
        raise InvalidTypeError(f"{name}: got {describe(given)}, expected {expected}")
    if not may_be_coroutine and is_coroutine_function(given):
        raise InvalidTypeError(
            f"{name}: got the coroutine function {given!r:.80}, expected a plain function; its "
            "coroutines would not be awaited"
        )


def is_plain_function(function: object) -> bool:
    """Return whether this is an ordinary Python function or method, no coroutine function."""
    if type(function) is MethodType:
        function = function.__func__
    return (
        type(function) is FunctionType
        and not function.__code__.co_flags & CO_COROUTINE
        and not function.__dict__  # which may mark it as a coroutine function
    )


def is_coroutine_function(function: object) -> bool:
    """Return whether calls of a callable return coroutines."""
    if is_plain_function(function):
        return False
    # Imported for the first callable that needs it, since most programs have none: with `ast`,
    # `dis` and `opcode` it would take a fifteenth of the import of a client.
    found: bool = import_module("inspect").iscoroutinefunction(function)
    return found


def refuse_coroutine_function(function: Callable[..., object]) -> None:
    """Raise if a configured callable is a coroutine function, or an object with such a method.

    Raises:
        TypeError: It is one; the text is the reason for a `ConfigError`.
    """
    if is_coroutine_function(function) or is_coroutine_function(
        getattr(function, "__call__", None)  # noqa: B004 (the method of a callable object)
    ):
        raise TypeError("it is a coroutine function, which would not be awaited")
