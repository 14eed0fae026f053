"""Metrics of a client with Kafka's names: totals, rates, averages and maxima over a window.

The code records values into a `Sensor`, which updates its statistics (Kafka: Metrics, Sensor,
SampledStat). The window consists of ``metrics.num.samples`` samples of ``metrics.sample.window.ms``
each; the oldest sample is discarded as a whole.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from kclient.common.runtime import Clock, Tasks

Gauge = Callable[[], float]


class Stat(Protocol):
    """Statistic of a sensor."""

    name: str

    def record(self, value: float, now_ms: float) -> None:
        """Record a value."""
        ...

    def measure(self, now_ms: float) -> float:
        """Return the statistic."""
        ...


class Total:
    """Sum of all values (Kafka: CumulativeSum)."""

    __slots__ = ("_sum", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._sum = 0.0

    def record(self, value: float, now_ms: float) -> None:
        """Add a value."""
        self._sum += value

    def measure(self, now_ms: float) -> float:
        """Return the sum."""
        return self._sum


class Value:
    """Last value (Kafka: Value)."""

    __slots__ = ("_last", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._last = 0.0

    def record(self, value: float, now_ms: float) -> None:
        """Replace the value."""
        self._last = value

    def measure(self, now_ms: float) -> float:
        """Return the value."""
        return self._last


class _Sample:
    """Sums over one interval of the window."""

    __slots__ = ("count", "largest", "start_ms", "total")

    def __init__(self, start_ms: float) -> None:
        self.start_ms = start_ms
        self.count = 0
        self.total = 0.0
        self.largest = float("-inf")


class _Window:
    """Most recent samples."""

    __slots__ = ("_samples", "count", "length_ms")

    def __init__(self, count: int, length_ms: float) -> None:
        self.count = count
        self.length_ms = length_ms
        self._samples: list[_Sample] = []

    def record(self, value: float, now_ms: float) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self.length_ms:
            samples.append(_Sample(now_ms))
            del samples[: -self.count]
        sample = samples[-1]
        sample.count += 1
        sample.total += value
        sample.largest = max(sample.largest, value)

    def live(self, now_ms: float) -> list[_Sample]:
        oldest = now_ms - self.count * self.length_ms
        return [sample for sample in self._samples if sample.start_ms >= oldest]


class Average:
    """Mean of the values in the window; NaN if there are none (Kafka: Avg)."""

    __slots__ = ("_window", "name")

    def __init__(self, name: str, samples: int, sample_ms: float) -> None:
        self.name = name
        self._window = _Window(samples, sample_ms)

    def record(self, value: float, now_ms: float) -> None:
        """Record a value."""
        self._window.record(value, now_ms)

    def measure(self, now_ms: float) -> float:
        """Return the mean."""
        live = self._window.live(now_ms)
        count = sum(sample.count for sample in live)
        return sum(sample.total for sample in live) / count if count else float("nan")


class Maximum:
    """Largest value in the window; NaN if there is none (Kafka: Max)."""

    __slots__ = ("_window", "name")

    def __init__(self, name: str, samples: int, sample_ms: float) -> None:
        self.name = name
        self._window = _Window(samples, sample_ms)

    def record(self, value: float, now_ms: float) -> None:
        """Record a value."""
        self._window.record(value, now_ms)

    def measure(self, now_ms: float) -> float:
        """Return the largest value."""
        return max((sample.largest for sample in self._window.live(now_ms)), default=float("nan"))


class Rate:
    """Sum of the values in the window, per second (Kafka: Rate)."""

    __slots__ = ("_window", "name")

    def __init__(self, name: str, samples: int, sample_ms: float) -> None:
        self.name = name
        self._window = _Window(samples, sample_ms)

    def record(self, value: float, now_ms: float) -> None:
        """Record a value."""
        self._window.record(value, now_ms)

    def measure(self, now_ms: float) -> float:
        """Return the rate.

        A window that has just started counts as long as all samples but one, so that the first
        value does not result in a very high rate.
        """
        window = self._window
        live = window.live(now_ms)
        if not live:
            return 0.0
        least_ms = max(window.count - 1, 1) * window.length_ms
        elapsed_ms = max(now_ms - live[0].start_ms, least_ms)
        return sum(sample.total for sample in live) * 1000.0 / elapsed_ms


class Sensor:
    """Recorder of a value into several statistics (Kafka: Sensor)."""

    __slots__ = ("_clock", "_lock", "_stats")

    def __init__(self, stats: Iterable[Stat], clock: Clock, tasks: Tasks) -> None:
        self._clock = clock
        self._stats = tuple(stats)
        self._lock = tasks.lock()  # guards: the statistics

    def record(self, value: float = 1.0, now_ms: float | None = None) -> None:
        """Record a value, at `now_ms` or at the present time."""
        now = self._clock.monotonic_ms() if now_ms is None else now_ms
        with self._lock:
            for stat in self._stats:
                stat.record(value, now)

    def measure(self, now_ms: float) -> dict[str, float]:
        """Return every statistic by name."""
        with self._lock:
            return {stat.name: stat.measure(now_ms) for stat in self._stats}


class Metrics:
    """Sensors and gauges of one client (Kafka: Metrics)."""

    def __init__(
        self,
        clock: Clock,
        tasks: Tasks,
        *,
        num_samples: int = 2,
        sample_window_ms: float = 30_000.0,
    ) -> None:
        self._clock = clock
        self._tasks = tasks
        self._num_samples = num_samples
        self._sample_window_ms = sample_window_ms
        self._lock = tasks.lock()  # guards: the two collections below
        self._sensors: list[Sensor] = []
        self._gauges: dict[str, Gauge] = {}

    def sensor(
        self,
        *,
        average: str | None = None,
        maximum: str | None = None,
        rate: str | None = None,
        total: str | None = None,
        value: str | None = None,
    ) -> Sensor:
        """Return a new sensor with those statistics that have a name."""
        window = (self._num_samples, self._sample_window_ms)
        stats: list[Stat] = []
        if average is not None:
            stats.append(Average(average, *window))
        if maximum is not None:
            stats.append(Maximum(maximum, *window))
        if rate is not None:
            stats.append(Rate(rate, *window))
        if total is not None:
            stats.append(Total(total))
        if value is not None:
            stats.append(Value(value))
        sensor = Sensor(stats, self._clock, self._tasks)
        with self._lock:
            self._sensors.append(sensor)
        return sensor

    def gauge(self, name: str, read: Gauge) -> None:
        """Add a metric whose value is the present result of `read`."""
        with self._lock:
            self._gauges[name] = read

    def snapshot(self) -> dict[str, float]:
        """Return every statistic and gauge by name."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            sensors = list(self._sensors)
            gauges = dict(self._gauges)
        values: dict[str, float] = {}
        for sensor in sensors:
            values |= sensor.measure(now_ms)
        for name, read in gauges.items():
            values[name] = float(read())
        return dict(sorted(values.items()))
