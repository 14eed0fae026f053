"""The clocks of a membership (Kafka: Heartbeat)."""

from kclient.client.exponential_backoff import ExponentialBackoff


class Heartbeat:
    """When to send the next sign of life, and when to give up on the broker or the application.

    Args:
        interval_ms: Time between heartbeats.
        session_timeout_ms: Time without an answer after which the broker is taken to be lost.
        max_poll_interval_ms: Time without a `poll` after which the application is.
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
        """Begin a session: the broker has just spoken."""
        self.in_flight = False
        self._next_ms = now_ms + self.interval_ms
        self._session_ends_ms = now_ms + self.session_timeout_ms
        self.polled(now_ms)

    def polled(self, now_ms: float) -> None:
        """Note that the application is alive."""
        self._poll_ends_ms = now_ms + self.max_poll_interval_ms

    def sent(self, now_ms: float) -> None:
        """Note that a heartbeat went out."""
        self.in_flight = True
        self._next_ms = now_ms + self.interval_ms

    def answered(self, now_ms: float) -> None:
        """Note that the broker is alive."""
        self.in_flight = False
        self._failures = 0
        self._session_ends_ms = now_ms + self.session_timeout_ms

    def failed(self, now_ms: float) -> None:
        """Note that a heartbeat must be sent again."""
        self.in_flight = False
        self._next_ms = now_ms + self._backoff.backoff(self._failures)
        self._failures += 1

    def mend(self) -> None:
        """Wait for no answer any more: it went down with its connection."""
        self.in_flight = False

    def is_due(self, now_ms: float) -> bool:
        """Return whether a heartbeat should go out."""
        return not self.in_flight and now_ms >= self._next_ms

    def session_expired(self, now_ms: float) -> bool:
        """Return whether the broker has been silent for too long."""
        return now_ms >= self._session_ends_ms

    def poll_expired(self, now_ms: float) -> bool:
        """Return whether the application has not polled for too long."""
        return now_ms >= self._poll_ends_ms

    def wait_ms(self, now_ms: float) -> float:
        """Return the time until something is due."""
        due_ms = min(self._session_ends_ms, self._poll_ends_ms)
        if not self.in_flight:
            due_ms = min(due_ms, self._next_ms)
        return max(0.0, due_ms - now_ms)
