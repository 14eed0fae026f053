"""How long no request is sent to a broker after requests to it have failed."""

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.runtime import Clock


class NodeBackoff:
    """Counts the failures in a row of each broker, and delays its next request accordingly."""

    def __init__(self, backoff: ExponentialBackoff, clock: Clock) -> None:
        self._backoff = backoff
        self._clock = clock
        self._failures: dict[int, int] = {}
        self._until_ms: dict[int, float] = {}

    def failed(self, node_id: int) -> None:
        """Delay the next request to a broker, longer with each failure in a row."""
        failures = self._failures.get(node_id, 0)
        self._failures[node_id] = failures + 1
        self._until_ms[node_id] = self._clock.monotonic_ms() + self._backoff.backoff(failures)

    def succeeded(self, node_id: int) -> None:
        """Let the backoff of a broker start over."""
        self._failures.pop(node_id, None)

    def is_waiting(self, node_id: int, now_ms: float) -> bool:
        """Return whether no request may be sent to a broker yet."""
        return now_ms < self._until_ms.get(node_id, 0.0)
