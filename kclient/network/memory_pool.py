"""Memory pools that bound the bytes of received requests."""

from typing import Protocol

from kclient.common.errors import InvalidArgumentError
from kclient.common.runtime import Lock


class MemoryPool(Protocol):
    """Counter of receive memory (Kafka: MemoryPool)."""

    def try_allocate(self, size: int) -> bool:
        """Allocate `size` bytes and return True, or allocate nothing and return False."""
        ...

    def release(self, size: int) -> None:
        """Release `size` allocated bytes."""
        ...

    def available(self) -> int:
        """Return the number of bytes left."""
        ...


class UnlimitedMemoryPool:
    """Pool without a bound, for clients; the size of a single frame is bounded elsewhere."""

    def try_allocate(self, size: int) -> bool:
        """Always succeed."""
        return size >= 0

    def release(self, size: int) -> None:
        """Do nothing: no bytes are counted."""

    def available(self) -> int:
        """Return the largest int64."""
        return 2**63 - 1


class SimpleMemoryPool:
    """Counter that allocates while any memory is left (Kafka: SimpleMemoryPool).

    One request may overdraw the pool by at most one frame. If a frame larger than the rest were
    refused, small frames could starve it.
    Each network thread has a pool of its own; the thread that handled a request releases its
    memory, so that the lock guards the counter.

    Attributes:
        capacity: Bytes of the pool, ``queued.max.request.bytes``.
    """

    def __init__(self, capacity: int, lock: Lock) -> None:
        if capacity <= 0:
            raise InvalidArgumentError(f"capacity: got {capacity}, expected bytes > 0")
        self.capacity = capacity
        self._lock = lock
        self._available = capacity

    def try_allocate(self, size: int) -> bool:
        """Allocate `size` bytes if any byte is left."""
        with self._lock:
            if self._available <= 0:
                return False
            self._available -= size
            return True

    def release(self, size: int) -> None:
        """Release `size` bytes."""
        with self._lock:
            self._available += size

    def available(self) -> int:
        """Return how many bytes are left; negative while one request overdraws the pool."""
        return self._available
