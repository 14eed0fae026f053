"""Mapping of an image that its successor shares until it changes."""

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SharedMapping(Generic[K, V]):
    """Mapping of an image, copied at the first change.

    Attributes:
        current: The mapping with all changes so far; it must not be modified.
    """

    __slots__ = ("_own", "current")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.current = base
        self._own: dict[K, V] | None = None

    def __contains__(self, key: K) -> bool:
        return key in self.current

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self.current.get(key)

    def set(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._changing()[key] = value

    def remove(self, key: K) -> V | None:
        """Remove a key, and return its value, or None if there was none."""
        if key not in self.current:
            return None
        return self._changing().pop(key)

    def freeze(self) -> Mapping[K, V]:
        """Return the mapping for an image: it is copied again before the next change."""
        self._own = None
        return self.current

    def _changing(self) -> dict[K, V]:
        if self._own is None:
            self.current = self._own = dict(self.current)
        return self._own
