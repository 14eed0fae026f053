"""Pool of idle codecs."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Codec = TypeVar("Codec")

_MOST = 4


class IdleCodecs(Generic[Codec]):
    """Pool of a few codecs of one kind: creating one costs as much as a small batch.

    A codec is used by one caller at a time; the deque makes this thread-safe.

    Args:
        make: Creates a codec when none is idle.
    """

    def __init__(self, make: Callable[[], Codec]) -> None:
        self._make = make
        self._idle: deque[Codec] = deque(maxlen=_MOST)

    @contextmanager
    def borrow(self) -> Iterator[Codec]:
        """Provide a codec; it is discarded after an error, since its state is unknown."""
        try:
            codec = self._idle.pop()
        except IndexError:
            codec = self._make()
        yield codec
        self._idle.append(codec)
