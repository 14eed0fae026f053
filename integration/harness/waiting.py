"""Waits for conditions."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from integration.harness.errors import HarnessError

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str, timeout: float, interval: float = 0.05) -> T:
    """Calls `condition` until its result is true, and returns the result.

    Raises:
        HarnessError: when `timeout` seconds passed without a true result.
    """
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= deadline:
            msg = f"{what}: not true after {timeout:g} s; last result: {result!r}"
            raise HarnessError(msg)
        pause.wait(interval)
