"""When metadata must be requested again, and how soon it may be."""

import math

from kclient.client.exponential_backoff import ExponentialBackoff


class MetadataRefreshTiming:
    """Requests for updates, responses, failures, and the waits between them.

    However often updates are requested, and whatever responses hold, two metadata requests are at
    least ``retry.backoff.ms`` apart, growing to ``retry.backoff.max.ms`` while responses stay the
    same or fail. A topic that was never requested before is the only exception, and only where
    brokers respond: the first `send` to each topic should not wait.

    Not thread-safe: `Metadata` calls it under its own lock.

    Attributes:
        update_version: Number of the last response.
        request_version: Number of the last request for new topics.
        full_update_needed: Whether all topics are to be requested.
        partial_update_needed: Whether new topics are to be requested.
    """

    def __init__(self, backoff: ExponentialBackoff, max_age_ms: float) -> None:
        self.update_version = 0
        self.request_version = 0
        self.full_update_needed = False
        self.partial_update_needed = False
        self._backoff = backoff
        self._max_age_ms = max_age_ms
        self._not_before_ms = -math.inf
        self._soonest_ms = -math.inf  # the least `_not_before_ms` may be set back to
        self._last_success_ms = -math.inf
        self._failures = 0
        self._same_responses = 0  # in a row
        self._at_once_version = 0  # the last request for topics that were never requested before

    def request_full(self, *, responses_differ: bool = False) -> int:
        """Request all topics; return the number of the last response.

        Args:
            responses_differ: Whether the cluster is known to have changed, so that the wait that
                grew while responses stayed the same starts over.
        """
        self.full_update_needed = True
        if responses_differ and self._same_responses:
            self._same_responses = 0
            self._not_before_ms = self._soonest_ms
        return self.update_version

    def request_partial(self, *, at_once: bool) -> int:
        """Request new topics; return the number of the last response.

        Args:
            at_once: Whether one of them was never requested before.
        """
        self.partial_update_needed = True
        self.request_version += 1
        if at_once:
            self._at_once_version = self.request_version
            self._same_responses = 0
            if not self._failures:
                self._not_before_ms = -math.inf
        return self.update_version

    def is_fresh(self, now_ms: float) -> bool:
        """Return whether the last full response is young enough."""
        return self._last_success_ms + self._max_age_ms > now_ms

    def age_ms(self, now_ms: float) -> float:
        """Return how long ago the last full response came; infinity before the first."""
        return now_ms - self._last_success_ms

    def time_to_next_ms(self, now_ms: float) -> float:
        """Return how long to wait before the next request."""
        if self.full_update_needed or self.partial_update_needed:
            due_ms = 0.0
        else:
            due_ms = max(0.0, self._last_success_ms + self._max_age_ms - now_ms)
        return max(due_ms, self._not_before_ms - now_ms)

    def updated(self, request_version: int, now_ms: float, *, partial: bool, same: bool) -> None:
        """Record a response; `same` is set where it changed nothing."""
        self.update_version += 1
        self.partial_update_needed = request_version < self.request_version
        self._failures = 0
        self._same_responses = self._same_responses + 1 if same else 0
        self._soonest_ms = now_ms + self._backoff.backoff(0)
        self._not_before_ms = max(
            self._soonest_ms, now_ms + self._backoff.backoff(max(0, self._same_responses - 1))
        )
        if request_version < self._at_once_version:
            self._not_before_ms = -math.inf  # the newest topics were not in the request
        if not partial:
            self.full_update_needed = False
            self._last_success_ms = now_ms

    def failed(self, now_ms: float) -> None:
        """Note that no response came."""
        self._not_before_ms = now_ms + self._backoff.backoff(self._failures)
        self._soonest_ms = self._not_before_ms
        self._failures += 1

    def started_over(self) -> None:
        """Note that the client starts over from its bootstrap servers."""
        self.full_update_needed = True
        self.update_version += 1
