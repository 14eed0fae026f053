"""Metrics of a client with Kafka's names: totals, rates, averages and maxima over a window.

The code records values into a `Sensor`, which updates its statistics (Kafka: Metrics, Sensor,
SampledStat). The window consists of ``metrics.num.samples`` samples of ``metrics.sample.window.ms``
each; the oldest sample is discarded as a whole.
"""

from collections.abc import Callable, Mapping, Sequence

from kclient.common.runtime import Clock, Tasks

Gauge = Callable[[], float]


class _Sample:
    """Sums over one interval of the window."""

    __slots__ = ("count", "largest", "start_ms", "total")

    def __init__(self, start_ms: float) -> None:
        self.start_ms = start_ms
        self.count = 0
        self.total = 0.0
        self.largest = float("-inf")


Stat = Callable[["Sensor", float], float]
"""Computes a statistic of a sensor at a time."""


def _average(sensor: "Sensor", now_ms: float) -> float:
    """Return the mean of the values in the window; NaN if there are none (Kafka: Avg)."""
    live = sensor.live(now_ms)
    count = sum(sample.count for sample in live)
    return sum(sample.total for sample in live) / count if count else float("nan")


def _maximum(sensor: "Sensor", now_ms: float) -> float:
    """Return the largest value in the window; NaN if there is none (Kafka: Max)."""
    return max((sample.largest for sample in sensor.live(now_ms)), default=float("nan"))


def _rate(sensor: "Sensor", now_ms: float) -> float:
    """Return the sum of the values in the window, per second (Kafka: Rate).

    A window that has just started counts as long as all samples but one, so that the first value
    does not result in a very high rate.
    """
    live = sensor.live(now_ms)
    if not live:
        return 0.0
    elapsed_ms = max(now_ms - live[0].start_ms, sensor.least_ms())
    return sum(sample.total for sample in live) * 1000.0 / elapsed_ms


def _total(sensor: "Sensor", now_ms: float) -> float:
    """Return the sum of all values (Kafka: CumulativeSum)."""
    return sensor.total


def _value(sensor: "Sensor", now_ms: float) -> float:
    """Return the last value (Kafka: Value)."""
    return sensor.last


class Sensor:
    """Recorder of values for several statistics (Kafka: Sensor).

    Attributes:
        total: Sum of all values.
        last: Last value.
    """

    __slots__ = ("_clock", "_count", "_length_ms", "_lock", "_samples", "_stats", "last", "total")

    def __init__(
        self, stats: Mapping[str, Stat], count: int, length_ms: float, clock: Clock, tasks: Tasks
    ) -> None:
        self._clock = clock
        self._stats = stats
        self._count = count
        self._length_ms = length_ms
        self._lock = tasks.lock()  # guards: the recorded values
        self._samples: list[_Sample] = []
        self.total = 0.0
        self.last = 0.0

    def record(self, value: float = 1.0, now_ms: float | None = None) -> None:
        """Record a value, at `now_ms` or at the present time."""
        now = self._clock.monotonic_ms() if now_ms is None else now_ms
        self.record_many(1, value, value, now)

    def record_many(self, count: int, total: float, largest: float, now_ms: float) -> None:
        """Record `count` values at once, at least one, given by their sum and the largest."""
        with self._lock:
            samples = self._samples
            if not samples or now_ms - samples[-1].start_ms >= self._length_ms:
                samples.append(_Sample(now_ms))
                del samples[: -self._count]
            sample = samples[-1]
            sample.count += count
            sample.total += total
            sample.largest = max(sample.largest, largest)
            self.total += total
            self.last = largest

    def live(self, now_ms: float) -> list[_Sample]:
        """Return the samples that are in the window; `measure` holds the lock."""
        oldest = now_ms - self._count * self._length_ms
        return [sample for sample in self._samples if sample.start_ms >= oldest]

    def least_ms(self) -> float:
        """Return the least time that a rate is computed over: all samples but one."""
        return max(self._count - 1, 1) * self._length_ms

    def measure(self, now_ms: float) -> dict[str, float]:
        """Return every statistic by name."""
        with self._lock:
            return {name: stat(self, now_ms) for name, stat in self._stats.items()}


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
        named = {average: _average, maximum: _maximum, rate: _rate, total: _total, value: _value}
        stats = {name: stat for name, stat in named.items() if name is not None}
        sensor = Sensor(stats, self._num_samples, self._sample_window_ms, self._clock, self._tasks)
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


def percentile(ascending: Sequence[float], fraction: float) -> float:
    """Return a percentile of sorted values, interpolated between neighbours (Yammer: Snapshot).

    Args:
        ascending: The values, at least one, in ascending order.
        fraction: From 0 to 1; 0.5 is the median.
    """
    position = fraction * (len(ascending) + 1)
    index = int(position)
    if index < 1:
        return ascending[0]
    if index >= len(ascending):
        return ascending[-1]
    lower = ascending[index - 1]
    return lower + (position - index) * (ascending[index] - lower)
