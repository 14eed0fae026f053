"""Validation of callbacks."""

import inspect

from kclient.common.config_def import describe
from kclient.common.errors import InvalidTypeError


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
