"""Consumer metrics."""

import math
from threading import Thread

import pytest

from kclient.common.metrics import Metrics, Sensor
from kclient.common.system_tasks import SystemTasks
from kclient.consumer.consumer_metrics import ConsumerPollMetrics
from kclient.protocol.api_keys import ApiKey
from kclient.testing.virtual.virtual_clock import VirtualClock
from tests.consumer.conftest import ORDERS_0, ConsumerWorld

ILLEGAL_GENERATION = 22


def test_group_requests_are_counted_and_timed(world: ConsumerWorld) -> None:
    world.fill(5)
    consumer = world.subscribed(enable_auto_commit=False, heartbeat_interval_ms=1000)
    world.read(consumer, 5)
    for _ in range(3):
        consumer.commit()
    world.background(5_000)
    metrics = consumer.metrics()
    heartbeats = world.broker.group.heartbeats
    assert 4 <= heartbeats <= 6
    assert metrics["commit-total"] == 3
    assert metrics["heartbeat-total"] == heartbeats
    assert metrics["join-total"] == 2  # the first returns the member id
    assert metrics["sync-total"] == 1
    for name in ("commit-latency-avg", "commit-latency-max", "heartbeat-response-time-max"):
        assert 0 < metrics[name] < 100, name
    for name in ("join-time-avg", "join-time-max", "sync-time-avg", "sync-time-max"):
        assert 0 < metrics[name] < 100, name
    assert metrics["commit-rate"] > 0
    commits_ms = metrics["commit-sync-time-ns-total"] / 1e6
    assert commits_ms == pytest.approx(3 * metrics["commit-latency-avg"], rel=0.2)
    assert metrics["heartbeat-rate"] > 0
    assert metrics["last-heartbeat-seconds-ago"] <= 1.1
    assert metrics["last-poll-seconds-ago"] == pytest.approx(5.5, abs=0.7)


def test_rebalances_are_counted(world: ConsumerWorld) -> None:
    world.broker.fail(ApiKey.SYNC_GROUP, ILLEGAL_GENERATION)
    consumer = world.subscribed(heartbeat_interval_ms=100)
    metrics = consumer.metrics()
    assert metrics["rebalance-total"] == 1
    assert metrics["failed-rebalance-total"] == 1
    assert 0 < metrics["rebalance-latency-total"] < 2_000
    world.broker.group.rebalancing = True
    world.poll_until(consumer, lambda: world.broker.group.generation == 3)
    world.poll_until(consumer, lambda: bool(consumer.assignment()))
    metrics = consumer.metrics()
    assert metrics["rebalance-total"] == 2
    assert metrics["last-rebalance-seconds-ago"] < 0.5
    assert metrics["assigned-partitions"] == 2


def test_metrics_without_events_are_nan_or_zero(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    metrics = consumer.metrics()
    for name in ("last-poll-seconds-ago", "last-heartbeat-seconds-ago", "records-lag-max"):
        assert math.isnan(metrics[name]), name
    assert not any(name.startswith("heartbeat") for name in world.assigned().metrics())


def test_records_lag_max_is_the_largest_lag(world: ConsumerWorld) -> None:
    world.fill(10)
    world.fill(4, number=1)
    consumer = world.assigned(0, 1, max_poll_records=3)
    world.read(consumer, 3)
    assert consumer.metrics()["records-lag-max"] in {4, 7, 10}
    world.read(consumer, 11)
    assert consumer.metrics()["records-lag-max"] == 0


class Polls:
    """Polls that start and end at given times."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics(self.clock, SystemTasks())
        self._polls = ConsumerPollMetrics(self.metrics, self.clock.monotonic_ns)
        self._zero_ms = self.clock.now_ms

    def poll(self, start_ms: float, end_ms: float) -> None:
        self.clock.now_ms = self._zero_ms + start_ms
        self._polls.started()
        self.clock.now_ms = self._zero_ms + end_ms
        self._polls.ended()

    def found(self) -> dict[str, float]:
        self._polls.flush()
        return self.metrics.snapshot()


def test_time_between_polls_and_idle_ratio() -> None:
    polls = Polls()
    polls.poll(0, 0)
    assert math.isnan(polls.metrics.snapshot()["time-between-poll-avg"])
    polls.poll(100, 150)
    polls.poll(300, 300)
    found = polls.found()
    assert found["time-between-poll-avg"] == pytest.approx(150.0)
    assert found["time-between-poll-max"] == pytest.approx(200.0)
    assert found["poll-idle-ratio-avg"] == pytest.approx((50 / 150 + 0) / 2)


def test_fast_polls_are_recorded_together() -> None:
    polls = Polls()
    for start_ms in range(0, 1000, 10):
        polls.poll(start_ms, start_ms + 5)
    found = polls.found()
    assert found["time-between-poll-avg"] == found["time-between-poll-max"] == pytest.approx(10.0)
    assert found["poll-idle-ratio-avg"] == pytest.approx(5 / 15)


def test_polls_reach_the_sensors_without_a_reader() -> None:
    polls = Polls()
    for number in range(3_000):
        polls.poll(number / 100, number / 100)
    collected = polls.metrics.snapshot()["time-between-poll-max"]
    assert collected == pytest.approx(0.01)


def test_flushes_in_two_threads_count_each_poll_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(Sensor, "record_many", lambda _, count, *rest: counts.append(count))
    polls = Polls()
    readers = [Thread(target=lambda: [polls.found() for _ in range(200)]) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(2_000):
        polls.poll(number, number)
    for reader in readers:
        reader.join()
    polls.found()
    assert sum(counts) == 2 * 1_999  # of two sensors


def test_metrics_have_the_last_poll(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.poll(0)
    for pause_ms in (20, 30, 40):
        world.background(pause_ms)
        consumer.poll(0)
        assert consumer.metrics()["time-between-poll-max"] == pytest.approx(pause_ms)


def test_consumer_measures_its_polls(world: ConsumerWorld) -> None:
    world.fill(5)
    consumer = world.subscribed()
    world.read(consumer, 5)
    for _ in range(3):
        consumer.poll(0.5)
    metrics = consumer.metrics()
    assert 0 < metrics["time-between-poll-avg"] <= metrics["time-between-poll-max"]
    assert 0 < metrics["poll-idle-ratio-avg"] < 1


def test_lookups_of_committed_offsets_are_timed(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    assert consumer.metrics()["committed-time-ns-total"] == 0
    consumer.committed([ORDERS_0])
    first = consumer.metrics()["committed-time-ns-total"]
    assert first > 0
    consumer.committed([ORDERS_0])
    assert consumer.metrics()["committed-time-ns-total"] > first
    assert consumer.metrics()["commit-sync-time-ns-total"] == 0
