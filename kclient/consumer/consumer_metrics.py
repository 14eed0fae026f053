"""Metrics of fetches and of group requests."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from kclient.client.client_request import ClientResponse
from kclient.common.metrics import Metrics, Sensor
from kclient.common.waiting import Steps
from kclient.protocol.api_keys import ApiKey

R = TypeVar("R")

_NS_PER_MS = 1e6
_FLUSH_NS = 100_000_000
_MOST_POLLS = 1_000


class ConsumerFetchMetrics:
    """Records fetched bytes, fetch latency and consumed records."""

    def __init__(self, metrics: Metrics) -> None:
        self._consumed = metrics.sensor(
            rate="records-consumed-rate", total="records-consumed-total"
        )
        self._bytes = metrics.sensor(
            rate="bytes-consumed-rate",
            total="bytes-consumed-total",
            average="fetch-size-avg",
            maximum="fetch-size-max",
        )
        self._latency = metrics.sensor(average="fetch-latency-avg", maximum="fetch-latency-max")
        self._fetches = metrics.sensor(rate="fetch-rate", total="fetch-total")
        self._throttle = metrics.sensor(
            average="fetch-throttle-time-avg", maximum="fetch-throttle-time-max"
        )
        self._skipped = metrics.sensor(total="records-skipped-by-reset-total")

    def record_consumed(self, count: int) -> None:
        """Count records returned to the application."""
        self._consumed.record(count)

    def record_throttle(self, throttle_ms: float) -> None:
        """Record the throttle time of a fetch response, also of one without a session."""
        self._throttle.record(max(0.0, throttle_ms))

    def record_fetch(self, size: int, latency_ms: float) -> None:
        """Count a fetch response: bytes of records, time since the request."""
        self._fetches.record()
        self._bytes.record(size)
        self._latency.record(latency_ms)

    def record_skipped(self, count: int) -> None:
        """Count offsets skipped by a reset."""
        self._skipped.record(count)


class ConsumerPollMetrics:
    """Records the time between polls, and the part of it that polls wait (KafkaConsumerMetrics).

    Polls are collected, and passed to the sensors after `_FLUSH_NS` at the earliest, or before the
    metrics are read: a poll that returns buffered records takes only some microseconds.
    """

    def __init__(self, metrics: Metrics, now_ns: Callable[[], int]) -> None:
        self._between = metrics.sensor(
            average="time-between-poll-avg", maximum="time-between-poll-max"
        )
        self._idle = metrics.sensor(average="poll-idle-ratio-avg")
        self._now_ns = now_ns
        self._started_ns = 0
        self._since_last_ns = 0
        # Time since the last poll and duration of each poll. The thread that polls appends, and any
        # thread that reads the metrics removes: each operation of a deque is atomic.
        self._polls: deque[tuple[int, int]] = deque()
        self._flush_at_ns = 0

    def started(self) -> None:
        """Start a poll."""
        now_ns = self._now_ns()
        self._since_last_ns = now_ns - self._started_ns if self._started_ns else 0
        self._started_ns = now_ns

    def ended(self) -> None:
        """End a poll; the first one has no time since the last."""
        since_ns = self._since_last_ns
        if not since_ns:
            return
        now_ns = self._now_ns()
        self._polls.append((since_ns, now_ns - self._started_ns))
        if now_ns >= self._flush_at_ns or len(self._polls) >= _MOST_POLLS:
            self.flush()
            self._flush_at_ns = now_ns + _FLUSH_NS

    def flush(self) -> None:
        """Give the collected polls to the sensors; may be called from any thread."""
        polls = list(self._take())
        if not polls:
            return
        now_ms = self._now_ns() / _NS_PER_MS
        since_ns = [since for since, _ in polls]
        ratios = [took / (took + since) for since, took in polls]
        total_ms, largest_ms = sum(since_ns) / _NS_PER_MS, max(since_ns) / _NS_PER_MS
        self._between.record_many(len(polls), total_ms, largest_ms, now_ms)
        self._idle.record_many(len(polls), sum(ratios), max(ratios), now_ms)

    def _take(self) -> Iterator[tuple[int, int]]:
        for _ in range(len(self._polls)):
            try:
                yield self._polls.popleft()
            except IndexError:  # another thread has taken the rest
                return


class ConsumerCommitMetrics:
    """Adds up the time in `commit` and `committed` (KafkaConsumerMetrics)."""

    def __init__(self, metrics: Metrics, now_ns: Callable[[], int]) -> None:
        self._commit = metrics.sensor(total="commit-sync-time-ns-total")
        self._committed = metrics.sensor(total="committed-time-ns-total")
        self._now_ns = now_ns

    def commit(self, steps: Steps[R]) -> Steps[R]:
        """Perform the steps of a commit."""
        return self._timed(self._commit, steps)

    def committed(self, steps: Steps[R]) -> Steps[R]:
        """Perform the steps of a lookup of committed offsets."""
        return self._timed(self._committed, steps)

    def _timed(self, sensor: Sensor, steps: Steps[R]) -> Steps[R]:
        started_ns = self._now_ns()
        try:
            return (yield from steps)
        finally:
            sensor.record(self._now_ns() - started_ns)


_NAMES = {
    ApiKey.OFFSET_COMMIT: "commit",
    ApiKey.JOIN_GROUP: "join",
    ApiKey.SYNC_GROUP: "sync",
    ApiKey.HEARTBEAT: "heartbeat",
}
_TIMES = {
    "commit": ("commit-latency-avg", "commit-latency-max"),
    "join": ("join-time-avg", "join-time-max"),
    "sync": ("sync-time-avg", "sync-time-max"),
    "heartbeat": (None, "heartbeat-response-time-max"),
}


class ConsumerRequestMetrics:
    """Records rate, total and latency of the responses to group requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._sensors: dict[ApiKey, tuple[Sensor, Sensor]] = {}
        self._last_heartbeat_ms = math.nan
        for api, name in _NAMES.items():
            average, maximum = _TIMES[name]
            self._sensors[api] = (
                metrics.sensor(rate=f"{name}-rate", total=f"{name}-total"),
                metrics.sensor(average=average, maximum=maximum),
            )

    def record(self, response: ClientResponse) -> None:
        """Record a response, successful or not."""
        sensors = self._sensors.get(response.api_key)
        if sensors is not None:
            count, time_ms = sensors
            count.record()
            time_ms.record(response.latency_ms)
            if response.api_key is ApiKey.HEARTBEAT:
                self._last_heartbeat_ms = response.received_ms

    def last_heartbeat_ms(self) -> float:
        """Return the time of the last heartbeat response, NaN if there was none."""
        return self._last_heartbeat_ms


def seconds_since(read_ms: Callable[[], float], now_ms: Callable[[], float]) -> Callable[[], float]:
    """Return a gauge of the seconds since a time, NaN if there is none."""
    return lambda: (now_ms() - read_ms()) / 1000.0
