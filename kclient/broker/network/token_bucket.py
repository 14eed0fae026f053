"""Tokens of a quota whose use may exceed it once, and the time until the next use."""

import math

from kclient.broker.network.quota_rate import QuotaWindow


class TokenBucket:
    """Tokens added at the rate of a quota, up to those of a whole window (Kafka: TokenBucket).

    A use is allowed while the number of tokens is not negative, and may take more than there are.
    Not thread-safe.
    """

    __slots__ = ("_now_ms", "_taken", "_tokens", "_window")

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._tokens = math.inf  # the first use finds a full bucket
        self._taken = 0.0
        self._now_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """Take tokens, at the time of the next `throttle_ms`."""
        self._taken += value

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Add the tokens of a limit per second; return the time until there are some again."""
        samples, sample_ms = self._window
        full = limit * samples * sample_ms / 1000
        added = limit * (now_ms - self._now_ms) / 1000
        self._tokens = min(full, self._tokens + added) - self._taken
        self._taken, self._now_ms = 0.0, now_ms
        return math.floor(max(0.0, -self._tokens) / limit * 1000 + 0.5)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether the bucket is full, as a new one is."""
        samples, sample_ms = self._window
        return self._tokens >= 0 and now_ms - self._now_ms >= samples * sample_ms
