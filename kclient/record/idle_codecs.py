"""Codecs that wait for their next use."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Codec = TypeVar("Codec")

_MOST = 4


class IdleCodecs(Generic[Codec]):
    """Keeps a few codecs of one kind, since making one costs as much as a small batch.

    A codec serves one caller at a time; a deque hands each out once, whichever thread asks.

    Args:
        make: Makes a codec when none is idle.
    """

    def __init__(self, make: Callable[[], Codec]) -> None:
        self._make = make
        self._idle: deque[Codec] = deque(maxlen=_MOST)

    @contextmanager
    def borrow(self) -> Iterator[Codec]:
        """Lend a codec; after an error it is not taken back, since its state is unknown."""
        try:
            codec = self._idle.pop()
        except IndexError:
            codec = self._make()
        yield codec
        self._idle.append(codec)
