"""Checks of functions that the application hands in to be called later."""

import inspect

from kclient.common.config_def import describe
from kclient.common.errors import InvalidTypeError


def check_callback(name: str, given: object, expected: str) -> None:
    """Refuse what cannot be called back.

    Args:
        name: Name of the argument.
        given: What was given for it; None stands for no callback.
        expected: What the callback takes, in words.

    Raises:
        InvalidTypeError: It is not callable, or a coroutine function.
    """
    if given is None:
        return
    if not callable(given):
        raise InvalidTypeError(f"{name}: got {describe(given)}, expected {expected}")
    if inspect.iscoroutinefunction(given):
        raise InvalidTypeError(
            f"{name}: got the coroutine function {given!r:.80}, expected a plain function; nobody "
            "would await it"
        )
