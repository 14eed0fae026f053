"""Waiting for a condition instead of for a time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from integration.harness.errors import HarnessError

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str, timeout: float, interval: float = 0.05) -> T:
    """Asks `condition` again and again until its answer is true, and returns that answer.

    Raises:
        HarnessError: when `timeout` seconds passed without a true answer.
    """
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            msg = f"{what}: not so after {timeout:g} s; last answer was {answer!r}"
            raise HarnessError(msg)
        pause.wait(interval)
