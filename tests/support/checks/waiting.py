"""Waiting for a condition instead of a time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_INTERVAL = 0.02


def wait_until(
    condition: Callable[[], T], what: str, timeout: float = 30.0, every: float = _INTERVAL
) -> T:
    """Evaluate `condition` until it is true, and return its value.

    It is evaluated again after `every` seconds; after `timeout` seconds the test fails.
    """
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}; last: {value!r}"
        pause.wait(every)
    return value
