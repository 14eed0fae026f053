"""Waiting for a condition instead of a time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_INTERVAL = 0.02


class HarnessError(AssertionError):
    """A program that a test needs could not be found, started or asked, or did not respond."""


def wait_until(
    condition: Callable[[], T], what: str, timeout: float = 30.0, every: float = _INTERVAL
) -> T:
    """Evaluate `condition` until it is true, and return its value.

    It is evaluated again after `every` seconds.

    Raises:
        HarnessError: `timeout` seconds passed without a true value.
    """
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise HarnessError(f"{what}: not true after {timeout:g} s; last value: {value!r}")
        pause.wait(every)
    return value
