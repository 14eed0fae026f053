"""Fetch metrics (Kafka: FetchMetricsManager)."""

from kclient.common.metrics import Metrics


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

    def record_fetch(self, size: int, latency_ms: float, throttle_ms: float) -> None:
        """Count a fetch response: bytes of records, time since the request, throttle time."""
        self._fetches.record()
        self._bytes.record(size)
        self._latency.record(latency_ms)
        self._throttle.record(max(0.0, throttle_ms))

    def record_skipped(self, count: int) -> None:
        """Count offsets skipped by a reset."""
        self._skipped.record(count)
