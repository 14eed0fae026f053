"""Backoff of fetches per broker."""

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.runtime import Clock


class NodeBackoff:
    """Delays the next fetch to a broker after consecutive failures."""

    def __init__(self, backoff: ExponentialBackoff, clock: Clock) -> None:
        self._backoff = backoff
        self._clock = clock
        self._failures: dict[int, int] = {}
        self._until_ms: dict[int, float] = {}

    def failed(self, node_id: int) -> None:
        """Delay the next request to a broker, longer with each consecutive failure."""
        failures = self._failures.get(node_id, 0)
        self._failures[node_id] = failures + 1
        self._until_ms[node_id] = self._clock.monotonic_ms() + self._backoff.backoff(failures)

    def succeeded(self, node_id: int) -> None:
        """Reset the backoff of a broker."""
        self._failures.pop(node_id, None)

    def is_waiting(self, node_id: int, now_ms: float) -> bool:
        """Return whether a broker is in backoff."""
        return now_ms < self._until_ms.get(node_id, 0.0)
