"""Commits positions from time to time (Kafka: ConsumerCoordinator's auto-commit)."""

import logging

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.consumer.coordinator.offset_committer import OffsetCommitter
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState

# An interval of 0 commits at every poll, which is no reason to wake up all the time.
_SHORTEST_WAIT_MS = 100.0


class AutoCommit:
    """Commits what earlier polls handed out, every so often.

    Runs only inside the application's own calls: when it polls again, the records of the poll
    before count as processed.
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
        """Let a whole interval pass before the next commit."""
        self._next_ms = now_ms + self._interval_ms

    def step(self, now_ms: float) -> float:
        """Commit if that is due; return how long to wait for the next step."""
        if not self.enabled:
            return float("inf")
        if self._next_ms is None:
            self.restart(now_ms)
        self._look_at_outcome(now_ms)
        due_ms = self._next_ms if self._next_ms is not None else now_ms
        if self._in_flight is None and now_ms >= due_ms:
            self._in_flight = self.commit_now()
            self.restart(now_ms)
            due_ms = now_ms + self._interval_ms
        return max(_SHORTEST_WAIT_MS, due_ms - now_ms)

    def mend(self) -> None:
        """Wait for no outcome any more."""
        self._in_flight = None

    def commit_now(self) -> RequestFuture[None]:
        """Queue one attempt to commit every position."""
        return self._committer.commit(self._subscriptions.all_consumed())

    def _look_at_outcome(self, now_ms: float) -> None:
        future = self._in_flight
        if future is None or not future.done:
            return
        self._in_flight = None
        if future.error is None:
            self._failures = 0
            return
        # The broker may have closed an idle connection just then: the next attempt shows more.
        is_first = future.error.retriable and not self._failures
        level = logging.DEBUG if is_first else logging.WARNING
        self._log.log(level, "Auto-commit failed: %s", future.error)
        if future.error.retriable:
            self._next_ms = now_ms + self._backoff.backoff(self._failures)
            self._failures += 1
