"""Rate over sliding samples, and the throttle time of a rate above its quota."""

import math
from typing import NamedTuple


class QuotaWindow(NamedTuple):
    """Samples that a rate is computed over (Kafka: ClientQuotaManagerConfig).

    Attributes:
        samples: ``quota.window.num``.
        sample_ms: Length of a sample, ``quota.window.size.seconds``, in milliseconds.
    """

    samples: int = 11
    sample_ms: int = 1000


DEFAULT_WINDOW = QuotaWindow()


class _Sample:
    """Sum of the values of one sample."""

    __slots__ = ("last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        """Remove the values; the sample starts now."""
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0


class QuotaRate:
    """Values per second over the samples of a window (Kafka: Rate, SampledStat).

    Until the window is full, the missing samples but the present one count as complete, so that the
    first values do not result in a very high rate. Not thread-safe. Times are whole milliseconds of
    one clock, as the throttle times are.
    """

    __slots__ = ("_current", "_samples", "_window")

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value; a negative one removes it again."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window.sample_ms:
            sample = self._advance(now_ms)
        sample.total += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One more sample than the window has: the oldest may overlap its start.
        self._current = (self._current + 1) % (self._window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def elapsed_ms(self, now_ms: int) -> int:
        """Return the time that the rate is computed over, in milliseconds, at least 1."""
        samples, sample_ms = self._window
        for each in self._samples:
            if now_ms - each.last_ms >= samples * sample_ms:
                each.reset(now_ms)
        oldest_ms = min((each.start_ms for each in self._samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = samples - 1 - elapsed_ms // sample_ms
        return max(elapsed_ms + max(missing, 0) * sample_ms, 1)

    def per_second(self, now_ms: int) -> float:
        """Return the rate."""
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(each.total for each in self._samples) * 1000.0 / elapsed_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the time after which the rate is that of the limit, in milliseconds.

        It is 0 for a rate that does not exceed the limit (Kafka: QuotaUtils.throttleTime).
        """
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        return math.floor((rate - limit) / limit * self.elapsed_ms(now_ms) + 0.5)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether all values have left the window: the rate is as a new one."""
        samples, sample_ms = self._window
        return all(now_ms - each.last_ms >= samples * sample_ms for each in self._samples)
