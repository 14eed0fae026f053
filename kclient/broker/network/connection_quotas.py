"""How many connections there may be, together and from one address."""

from collections import Counter
from collections.abc import Callable

from kclient.common.runtime import Condition

# Less is what rounding left: added to the present it may be the present, over and over.
_LEAST_WAIT_MS = 0.01


class CreationRate:
    """How many connections a second may be new (KIP-612, Kafka: max.connection.creation.rate).

    As many as come in one second may come at once; after that they come at the rate. For one
    thread, the acceptor's.
    """

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._allowed = float(per_second)
        self._counted_ms = 0.0

    def wait_ms(self, now_ms: float) -> float:
        """Return how long to wait until one more may come; 0 if it may now."""
        earned = max(0.0, now_ms - self._counted_ms) * self._per_second / 1000.0
        self._allowed = min(float(self._per_second), self._allowed + earned)
        self._counted_ms = now_ms
        wait_ms = (1.0 - self._allowed) * 1000.0 / self._per_second
        return wait_ms if wait_ms >= _LEAST_WAIT_MS else 0.0

    def note_created(self) -> None:
        """Count a new connection."""
        self._allowed -= 1.0


class ConnectionQuotas:
    """Counts connections (Kafka: ConnectionQuotas). The lock guards the counts."""

    def __init__(self, max_connections: int, max_per_address: int, lock: Condition) -> None:
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._lock = lock
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._on_room: Callable[[], None] | None = None

    def has_room(self) -> bool:
        """Return whether another connection, of whatever address, may be accepted."""
        with self._lock:
            return self._total < self._max_connections

    def try_add(self, address: str) -> bool:
        """Count a new connection; return False if its address has too many."""
        with self._lock:
            if self._by_address[address] >= self._max_per_address:
                return False
            self._by_address[address] += 1
            self._total += 1
            return True

    def remove(self, address: str) -> None:
        """Forget a connection that was counted."""
        with self._lock:
            was_full = self._total >= self._max_connections
            self._total -= 1
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        if was_full and self._on_room is not None:
            self._on_room()

    def notify_room(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever there is room again after there was none."""
        self._on_room = callback

    def total(self) -> int:
        """Return the number of connections."""
        with self._lock:
            return self._total
