"""Responses collected under the coordinator's lock and sent after its release."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Replies:
    """Collected responses; the holder of the lock takes them and sends them after its release."""

    def __init__(self) -> None:
        self._pending: list[tuple[Callable[[Any], None], object]] = []

    def add(self, reply: Callable[[T], None], response: T) -> None:
        """Add a response to send."""
        self._pending.append((reply, response))

    def take(self) -> list[tuple[Callable[[Any], None], object]]:
        """Return and clear the collected responses."""
        taken, self._pending = self._pending, []
        return taken
