"""Timers of a membership (Kafka: Heartbeat)."""

from kclient.client.exponential_backoff import ExponentialBackoff


class Heartbeat:
    """Timers of heartbeats, of the session and of polls.

    Args:
        interval_ms: Time between heartbeats.
        session_timeout_ms: Time without a heartbeat response after which the session expires.
        max_poll_interval_ms: Time without a `poll` after which the member leaves.
        backoff: Time before a failed heartbeat is sent again.
    """

    def __init__(
        self,
        interval_ms: float,
        session_timeout_ms: float,
        max_poll_interval_ms: float,
        backoff: ExponentialBackoff,
    ) -> None:
        self.interval_ms = interval_ms
        self.session_timeout_ms = session_timeout_ms
        self.max_poll_interval_ms = max_poll_interval_ms
        self._backoff = backoff
        self._failures = 0
        self._next_ms = 0.0
        self._session_ends_ms = 0.0
        self._poll_ends_ms = 0.0
        self.in_flight = False

    def start(self, now_ms: float) -> None:
        """Start the timers after a JoinGroup response."""
        self.in_flight = False
        self._next_ms = now_ms + self.interval_ms
        self._session_ends_ms = now_ms + self.session_timeout_ms
        self.polled(now_ms)

    def polled(self, now_ms: float) -> None:
        """Reset the poll timer."""
        self._poll_ends_ms = now_ms + self.max_poll_interval_ms

    def sent(self, now_ms: float) -> None:
        """Record that a heartbeat was sent."""
        self.in_flight = True
        self._next_ms = now_ms + self.interval_ms

    def acknowledged(self, now_ms: float) -> None:
        """Record a heartbeat response."""
        self.in_flight = False
        self._failures = 0
        self._session_ends_ms = now_ms + self.session_timeout_ms

    def failed(self, now_ms: float) -> None:
        """Record a failed heartbeat."""
        self.in_flight = False
        self._next_ms = now_ms + self._backoff.backoff(self._failures)
        self._failures += 1

    def reset_after_interrupt(self) -> None:
        """Discard the heartbeat in flight after an interrupted call."""
        self.in_flight = False

    def is_due(self, now_ms: float) -> bool:
        """Return whether a heartbeat should be sent."""
        return not self.in_flight and now_ms >= self._next_ms

    def session_expired(self, now_ms: float) -> bool:
        """Return whether there was no heartbeat response within the session timeout."""
        return now_ms >= self._session_ends_ms

    def poll_expired(self, now_ms: float) -> bool:
        """Return whether there was no poll within ``max.poll.interval.ms``."""
        return now_ms >= self._poll_ends_ms

    def wait_ms(self, now_ms: float) -> float:
        """Return the time until the next timer expires."""
        due_ms = min(self._session_ends_ms, self._poll_ends_ms)
        if not self.in_flight:
            due_ms = min(due_ms, self._next_ms)
        return max(0.0, due_ms - now_ms)
