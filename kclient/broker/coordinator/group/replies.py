"""Answers decided under the coordinator's lock and given after it was released."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Replies:
    """Collects answers; whoever holds the lock takes them out and gives them once it let go."""

    def __init__(self) -> None:
        self._pending: list[tuple[Callable[[Any], None], object]] = []

    def add(self, reply: Callable[[T], None], response: T) -> None:
        """Note that `reply` is to be called with `response`."""
        self._pending.append((reply, response))

    def take(self) -> list[tuple[Callable[[Any], None], object]]:
        """Return what was collected and start afresh."""
        taken, self._pending = self._pending, []
        return taken
