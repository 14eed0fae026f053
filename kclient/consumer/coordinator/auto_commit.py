"""Automatic commits (Kafka: ConsumerCoordinator.maybeAutoCommitOffsetsAsync)."""

import logging

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.consumer.coordinator.offset_committer import OffsetCommitter
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState

# Lower bound of the wait: an interval of 0 commits at every poll.
_SHORTEST_WAIT_MS = 100.0


class AutoCommit:
    """Commits the positions of earlier polls periodically.

    Runs only in calls of the application: a poll marks the records of the previous poll as
    processed.
    """

    def __init__(
        self,
        committer: OffsetCommitter,
        subscriptions: SubscriptionState,
        interval_ms: float,
        backoff: ExponentialBackoff,
        *,
        enabled: bool,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self.enabled = enabled
        self._committer = committer
        self._subscriptions = subscriptions
        self._interval_ms = interval_ms
        self._backoff = backoff
        self._failures = 0
        self._next_ms: float | None = None
        self._in_flight: RequestFuture[None] | None = None

    def restart(self, now_ms: float) -> None:
        """Start a new interval."""
        self._next_ms = now_ms + self._interval_ms

    def step(self, now_ms: float) -> float:
        """Commit if the interval has passed; return the time until the next step."""
        if not self.enabled:
            return float("inf")
        if self._next_ms is None:
            self.restart(now_ms)
        self._check_outcome(now_ms)
        due_ms = self._next_ms if self._next_ms is not None else now_ms
        if self._in_flight is None and now_ms >= due_ms:
            self._in_flight = self.commit_now()
            self.restart(now_ms)
            due_ms = now_ms + self._interval_ms
        return max(_SHORTEST_WAIT_MS, due_ms - now_ms)

    def reset_after_interrupt(self) -> None:
        """Discard the commit in flight."""
        self._in_flight = None

    def commit_now(self) -> RequestFuture[None]:
        """Queue one attempt to commit every position."""
        return self._committer.commit(self._subscriptions.all_consumed())

    def _check_outcome(self, now_ms: float) -> None:
        future = self._in_flight
        if future is None or not future.done:
            return
        self._in_flight = None
        if future.error is None:
            self._failures = 0
            return
        # The broker may have closed an idle connection; only a repeated failure is a warning.
        is_first = future.error.retriable and not self._failures
        level = logging.DEBUG if is_first else logging.WARNING
        self._log.log(level, "Auto-commit failed: %s", future.error)
        if future.error.retriable:
            self._next_ms = now_ms + self._backoff.backoff(self._failures)
            self._failures += 1
