"""When metadata must be asked for again, and how soon it may be."""

import math

from kclient.client.exponential_backoff import ExponentialBackoff


class MetadataRefreshTiming:
    """Wishes for metadata, answers, failures, and the waits between them.

    Not guarded: `Metadata` calls it under its own lock.

    Attributes:
        update_version: Number of the last answer.
        request_version: Number of the last wish for new topics.
        full_update_needed: Whether all topics are to be asked for.
        partial_update_needed: Whether new topics are to be asked for.
    """

    def __init__(self, backoff: ExponentialBackoff, max_age_ms: float) -> None:
        self.update_version = 0
        self.request_version = 0
        self.full_update_needed = False
        self.partial_update_needed = False
        self._backoff = backoff
        self._max_age_ms = max_age_ms
        self._not_before_ms = -math.inf
        self._last_success_ms = -math.inf
        self._failures = 0
        self._same_answers = 0  # in a row; asking again and again changes nothing

    def wish_full(self, *, answers_differ: bool = False) -> int:
        """Wish for all topics; return the number of the last answer."""
        self.full_update_needed = True
        if answers_differ and self._same_answers:
            self._same_answers = 0
            self._not_before_ms = -math.inf
        return self.update_version

    def wish_partial(self) -> int:
        """Wish for new topics, at once; return the number of the last answer."""
        self.partial_update_needed = True
        self.request_version += 1
        self._not_before_ms = -math.inf
        self._same_answers = 0
        return self.update_version

    def is_fresh(self, now_ms: float) -> bool:
        """Return whether the last full answer is young enough."""
        return self._last_success_ms + self._max_age_ms > now_ms

    def age_ms(self, now_ms: float) -> float:
        """Return how long ago the last full answer came; infinity before the first."""
        return now_ms - self._last_success_ms

    def time_to_next_ms(self, now_ms: float) -> float:
        """Return how long to wait before asking."""
        if self.full_update_needed or self.partial_update_needed:
            due_ms = 0.0
        else:
            due_ms = max(0.0, self._last_success_ms + self._max_age_ms - now_ms)
        return max(due_ms, self._not_before_ms - now_ms)

    def answered(self, request_version: int, now_ms: float, *, partial: bool, same: bool) -> None:
        """Note an answer, and whether it said what was known before."""
        self.update_version += 1
        self.partial_update_needed = request_version < self.request_version
        self._failures = 0
        self._same_answers = self._same_answers + 1 if same else 0
        # An answer that brought news may be followed by the next question at once.
        wait_ms = self._backoff.backoff(self._same_answers - 1) if self._same_answers else 0.0
        self._not_before_ms = now_ms + wait_ms
        if not partial:
            self.full_update_needed = False
            self._last_success_ms = now_ms

    def failed(self, now_ms: float) -> None:
        """Note that no answer came."""
        self._not_before_ms = now_ms + self._backoff.backoff(self._failures)
        self._failures += 1

    def started_over(self) -> None:
        """Note that everything known was dropped."""
        self.full_update_needed = True
        self.update_version += 1
