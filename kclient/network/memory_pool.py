"""A bound on the bytes held by requests that were received and not answered yet."""

from typing import Protocol

from kclient.common.errors import InvalidArgumentError
from kclient.common.runtime import Lock


class MemoryPool(Protocol):
    """Keeps account of receive memory (Kafka: MemoryPool)."""

    def try_allocate(self, size: int) -> bool:
        """Take `size` bytes and return True, or take nothing and return False."""
        ...

    def release(self, size: int) -> None:
        """Give back `size` bytes that were taken before."""
        ...

    def available(self) -> int:
        """Return how many bytes may still be taken."""
        ...


class UnlimitedMemoryPool:
    """No bound beyond the size of a single frame, which is what clients use."""

    def try_allocate(self, size: int) -> bool:
        """Always succeed."""
        return size >= 0

    def release(self, size: int) -> None:
        """Nothing is counted, so nothing is given back."""

    def available(self) -> int:
        """Return the largest number a Kafka size can be."""
        return 2**63 - 1


class SimpleMemoryPool:
    """A counter that hands out memory while any is left (Kafka: SimpleMemoryPool).

    One request may overdraw it: were a frame refused because it is larger than what is left, a
    large frame could starve behind small ones. Hence at most one frame more than `capacity`.
    Each network thread takes memory from a pool of its own; whichever thread has handled a request
    releases its memory, so that the lock guards the counter.

    Attributes:
        capacity: Bytes to hand out, as ``queued.max.request.bytes``.
    """

    def __init__(self, capacity: int, lock: Lock) -> None:
        if capacity <= 0:
            raise InvalidArgumentError(f"capacity: got {capacity}, expected bytes > 0")
        self.capacity = capacity
        self._lock = lock
        self._available = capacity

    def try_allocate(self, size: int) -> bool:
        """Take `size` bytes if any byte is left."""
        with self._lock:
            if self._available <= 0:
                return False
            self._available -= size
            return True

    def release(self, size: int) -> None:
        """Give back `size` bytes."""
        with self._lock:
            self._available += size

    def available(self) -> int:
        """Return how many bytes are left; negative while one request overdraws the pool."""
        return self._available
