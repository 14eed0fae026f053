"""Timing of metadata requests: due updates and back-offs."""

import math

from kclient.client.exponential_backoff import ExponentialBackoff


class MetadataRefreshTiming:
    """Requested updates, responses, failures, and the back-offs between them.

    Two metadata requests are at least ``retry.backoff.ms`` apart, growing to
    ``retry.backoff.max.ms`` while responses are equal or fail. The only exception is a topic that
    was never requested before, if the last request succeeded: the first `send` to a topic should
    not wait.

    Not thread-safe: `Metadata` calls it under its own lock.

    Attributes:
        update_version: Number of the last response.
        request_version: Number of the last request for new topics.
        full_update_needed: Whether all topics must be requested.
        partial_update_needed: Whether new topics must be requested.
        next_update_ms: Earliest time of the next request; a thread may read it without the lock.
    """

    def __init__(self, backoff: ExponentialBackoff, max_age_ms: float) -> None:
        self.update_version = 0
        self.request_version = 0
        self.full_update_needed = False
        self.partial_update_needed = False
        self._backoff = backoff
        self._max_age_ms = max_age_ms
        self._not_before_ms = -math.inf
        self._earliest_ms = -math.inf  # lower bound when `_not_before_ms` is reset
        self._last_success_ms = -math.inf
        self._failures = 0
        self._same_responses = 0  # in a row
        self._at_once_version = 0  # the last request for topics that were never requested before
        self.next_update_ms = -math.inf

    def request_full(self, *, cluster_changed: bool = False) -> int:
        """Request all topics; return the number of the last response.

        Args:
            cluster_changed: Whether the cluster is known to have changed; resets the back-off
                that grows while responses are equal.
        """
        self.full_update_needed = True
        if cluster_changed and self._same_responses:
            self._same_responses = 0
            self._not_before_ms = self._earliest_ms
        self._schedule()
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
        self._schedule()
        return self.update_version

    def is_fresh(self, now_ms: float) -> bool:
        """Return whether the last full response is younger than ``metadata.max.age.ms``."""
        return self._last_success_ms + self._max_age_ms > now_ms

    def age_ms(self, now_ms: float) -> float:
        """Return the age of the last full response; infinity before the first."""
        return now_ms - self._last_success_ms

    def updated(self, request_version: int, now_ms: float, *, partial: bool, same: bool) -> None:
        """Record a response; `same` if it equals the last one."""
        self.update_version += 1
        self.partial_update_needed = request_version < self.request_version
        self._failures = 0
        self._same_responses = self._same_responses + 1 if same else 0
        self._earliest_ms = now_ms + self._backoff.backoff(0)
        self._not_before_ms = max(
            self._earliest_ms, now_ms + self._backoff.backoff(max(0, self._same_responses - 1))
        )
        if request_version < self._at_once_version:
            self._not_before_ms = -math.inf  # the newest topics were not in the request
        if not partial:
            self.full_update_needed = False
            self._last_success_ms = now_ms
        self._schedule()

    def failed(self, now_ms: float) -> None:
        """Record a failed request."""
        self._not_before_ms = now_ms + self._backoff.backoff(self._failures)
        self._earliest_ms = self._not_before_ms
        self._failures += 1
        self._schedule()

    def bootstrapped(self) -> None:
        """Record that the client starts from its bootstrap servers."""
        self.full_update_needed = True
        self.update_version += 1
        self._schedule()

    def _schedule(self) -> None:
        is_needed = self.full_update_needed or self.partial_update_needed
        outdated_ms = -math.inf if is_needed else self._last_success_ms + self._max_age_ms
        self.next_update_ms = max(outdated_ms, self._not_before_ms)
