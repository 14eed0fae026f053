import math

from kclient.common.metrics import Metrics, percentile
from kclient.common.system_tasks import SystemTasks


class StillClock:
    def __init__(self) -> None:
        self.now_ms = 1_000.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def monotonic_ns(self) -> int:
        return round(self.now_ms * 1e6)

    def wall_ms(self) -> int:
        return int(self.now_ms)

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000


def metrics(clock: StillClock) -> Metrics:
    return Metrics(clock, SystemTasks(), num_samples=2, sample_window_ms=1_000.0)


def test_recorded_value_updates_every_statistic() -> None:
    clock = StillClock()
    registry = metrics(clock)
    sensor = registry.sensor(average="avg", maximum="max", rate="rate", total="total", value="last")
    for value in (1.0, 2.0, 6.0):
        sensor.record(value)
    assert registry.snapshot() == {"avg": 3.0, "last": 6.0, "max": 6.0, "rate": 9.0, "total": 9.0}


def test_old_values_leave_window_but_not_total() -> None:
    clock = StillClock()
    registry = metrics(clock)
    sensor = registry.sensor(average="avg", maximum="max", rate="rate", total="total")
    sensor.record(10.0)
    clock.now_ms += 1_000
    sensor.record(2.0)
    assert registry.snapshot()["avg"] == 6.0
    clock.now_ms += 1_500
    assert registry.snapshot() == {"avg": 2.0, "max": 2.0, "rate": 2.0 * 1000 / 1500, "total": 12.0}
    clock.now_ms += 60_000
    after = registry.snapshot()
    assert math.isnan(after["avg"])
    assert math.isnan(after["max"])
    assert (after["rate"], after["total"]) == (0.0, 12.0)


def test_first_value_does_not_result_in_high_rate() -> None:
    clock = StillClock()
    registry = metrics(clock)
    sensor = registry.sensor(rate="rate")
    sensor.record(5.0)
    clock.now_ms += 1
    assert registry.snapshot()["rate"] == 5.0


def test_values_recorded_together_equal_single_records() -> None:
    clock = StillClock()
    registry = metrics(clock)
    names = ("average", "maximum", "rate", "total")
    single = registry.sensor(**{name: f"single-{name}" for name in names})
    together = registry.sensor(**{name: f"together-{name}" for name in names})
    for values in ((3.0, 1.0), (-2.0,), (7.0, 7.0, 0.5)):
        for value in values:
            single.record(value)
        together.record_many(len(values), sum(values), max(values), clock.now_ms)
        found = registry.snapshot()
        assert [found[f"together-{name}"] for name in names] == [
            found[f"single-{name}"] for name in names
        ]
        clock.now_ms += 700


def test_gauges_are_read_on_snapshot() -> None:
    registry = metrics(StillClock())
    level = [1]
    registry.gauge("level", lambda: level[0])
    level[0] = 7
    assert registry.snapshot() == {"level": 7.0}


def test_percentile_is_interpolated_between_neighbours() -> None:
    values = [10.0, 20.0, 30.0, 40.0]
    assert percentile(values, 0.5) == 25.0
    assert percentile(values, 0.0) == 10.0
    assert percentile(values, 0.99) == 40.0
    assert percentile([7.0], 0.5) == 7.0
