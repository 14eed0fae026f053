"""Limits of connections: in total, for each address, and their creation rate."""

from collections import Counter
from collections.abc import Callable

from kclient.common.runtime import Condition

# A shorter wait is a rounding error: added to the present time it may not change it.
_LEAST_WAIT_MS = 0.01


class CreationRate:
    """Limit of new connections per second, ``max.connection.creation.rate`` (KIP-612).

    A burst may have as many connections as one second allows. For the acceptor's thread only.
    """

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._allowed = float(per_second)
        self._counted_ms = 0.0

    def wait_ms(self, now_ms: float) -> float:
        """Return the wait until the next connection is allowed; 0 if it is allowed now."""
        earned = max(0.0, now_ms - self._counted_ms) * self._per_second / 1000.0
        self._allowed = min(float(self._per_second), self._allowed + earned)
        self._counted_ms = now_ms
        wait_ms = (1.0 - self._allowed) * 1000.0 / self._per_second
        return wait_ms if wait_ms >= _LEAST_WAIT_MS else 0.0

    def record_created(self) -> None:
        """Count a new connection."""
        self._allowed -= 1.0


class ConnectionQuotas:
    """Counts of connections (Kafka: ConnectionQuotas). The lock guards the counts."""

    def __init__(self, max_connections: int, max_per_address: int, lock: Condition) -> None:
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._lock = lock
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._callback: Callable[[], None] | None = None

    def is_below_limit(self) -> bool:
        """Return whether the broker has fewer than ``max.connections``."""
        with self._lock:
            return self._total < self._max_connections

    def try_add(self, address: str) -> bool:
        """Count a new connection; return False if its address has ``max.connections.per.ip``."""
        with self._lock:
            if self._by_address[address] >= self._max_per_address:
                return False
            self._by_address[address] += 1
            self._total += 1
            return True

    def remove(self, address: str) -> None:
        """Remove a connection from the counts."""
        with self._lock:
            was_full = self._total >= self._max_connections
            self._total -= 1
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        if was_full and self._callback is not None:
            self._callback()

    def on_below_limit(self, callback: Callable[[], None]) -> None:
        """Register a callback for when the count falls below ``max.connections`` again."""
        self._callback = callback

    def total(self) -> int:
        """Return the number of connections."""
        with self._lock:
            return self._total
