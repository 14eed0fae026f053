"""Registry of connections by time of last use."""


class IdleExpiryManager:
    """Connections in the order of their last use (Kafka: Selector.IdleExpiryManager).

    Attributes:
        max_idle_ms: Longest idle time of a connection; negative for no limit.
    """

    def __init__(self, max_idle_ms: float) -> None:
        self.max_idle_ms = max_idle_ms
        self._last_used: dict[str, float] = {}  # the least recently used first

    def touch(self, channel_id: str, now_ms: float) -> None:
        """Record that a connection is in use."""
        self._last_used.pop(channel_id, None)
        self._last_used[channel_id] = now_ms

    def remove(self, channel_id: str) -> None:
        """Remove a connection that ended."""
        self._last_used.pop(channel_id, None)

    def overdue(self, now_ms: float) -> list[str]:
        """Return the connections that were idle for too long."""
        found: list[str] = []
        if self.max_idle_ms >= 0:
            for channel_id, used_ms in self._last_used.items():
                if now_ms - used_ms <= self.max_idle_ms:
                    break
                found.append(channel_id)
        return found
