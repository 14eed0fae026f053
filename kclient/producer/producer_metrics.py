"""Metrics of the producer, under Kafka's names."""

from collections.abc import Sequence
from operator import truediv

from kclient.common.metrics import Metrics, Sensor
from kclient.common.runtime import Lock
from kclient.producer.producer_batch import ProducerBatch

_FLUSH_MS = 100.0
_MOST_BATCHES = 256  # whose values wait


class WaitSensor:
    """Sensor of waits, as total nanoseconds and as a ratio of the elapsed time."""

    def __init__(self, nanoseconds: Sensor, seconds: Sensor) -> None:
        self._nanoseconds = nanoseconds
        self._seconds = seconds

    def record(self, nanoseconds: float) -> None:
        """Record a wait."""
        self._nanoseconds.record(nanoseconds)
        self._seconds.record(nanoseconds / 1e9)


class ProducerMetrics:
    """The sensors of one producer (Kafka: SenderMetricsRegistry, KafkaProducerMetrics).

    The values of requests reach their sensors every 100 ms, and before `snapshot` reads them.

    Attributes:
        registry: Registry of the sensors.
    """

    def __init__(self, registry: Metrics, lock: Lock) -> None:
        """Create the sensors.

        Args:
            registry: Registry of the sensors.
            lock: Lock of the values that no sensor has yet.
        """
        self.registry = registry
        # Nine sensors for each request would take longer than sealing its batch: their values wait
        # for those of other requests.
        self._lock = lock  # guards: all below up to _last_ms
        self._requests = 0
        # Records, size, uncompressed size, time in the queue and largest record of each batch.
        self._batches: list[tuple[int, int, int, float, int]] = []
        self._completed: list[tuple[float, float]] = []  # latency and throttle time
        self._flush_at_ms = 0.0
        self._last_ms = 0.0
        self.buffer_wait = WaitSensor(
            registry.sensor(total="bufferpool-wait-time-ns-total"),
            registry.sensor(rate="bufferpool-wait-ratio"),
        )
        self.buffer_exhausted = registry.sensor(
            rate="buffer-exhausted-rate", total="buffer-exhausted-total"
        )
        self.metadata_wait_ns = registry.sensor(total="metadata-wait-time-ns-total")
        self.flush_ns = registry.sensor(total="flush-time-ns-total")
        self.callback_errors = registry.sensor(total="callback-error-total")
        self._records = registry.sensor(rate="record-send-rate", total="record-send-total")
        self._records_per_request = registry.sensor(average="records-per-request-avg")
        self._batch_size = registry.sensor(average="batch-size-avg", maximum="batch-size-max")
        self._record_size = registry.sensor(average="record-size-avg")
        self._largest_record = registry.sensor(maximum="record-size-max")
        self._compression = registry.sensor(average="compression-rate-avg")
        self._queue_time = registry.sensor(
            average="record-queue-time-avg", maximum="record-queue-time-max"
        )
        self._latency = registry.sensor(
            average="request-latency-avg", maximum="request-latency-max"
        )
        self._throttle = registry.sensor(
            average="produce-throttle-time-avg", maximum="produce-throttle-time-max"
        )
        self._retries = registry.sensor(rate="record-retry-rate", total="record-retry-total")
        self._errors = registry.sensor(rate="record-error-rate", total="record-error-total")
        self._splits = registry.sensor(rate="batch-split-rate", total="batch-split-total")

    def snapshot(self) -> dict[str, float]:
        """Return the metrics by Kafka's names."""
        with self._lock:
            self._flush()
        return self.registry.snapshot()

    def request_sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        """Record a Produce request and its batches."""
        with self._lock:
            self._begin(now_ms)
            self._requests += 1
            self._batches += [
                (
                    batch.record_count,
                    batch.size_in_bytes,
                    batch.uncompressed_size,
                    batch.drained_ms - batch.created_ms,
                    batch.builder.largest_record,
                )
                for batch in batches
            ]

    def request_completed(self, latency_ms: float, throttle_ms: float, now_ms: float) -> None:
        """Record the latency and throttle time of a request."""
        with self._lock:
            self._begin(now_ms)
            self._completed.append((latency_ms, throttle_ms))

    def _begin(self, now_ms: float) -> None:
        """Start to record values, after those that must not wait for them."""
        if now_ms >= self._flush_at_ms or len(self._batches) >= _MOST_BATCHES:
            self._flush()
            self._flush_at_ms = now_ms + _FLUSH_MS
        self._last_ms = now_ms

    def _flush(self) -> None:
        """Give the recorded values to their sensors."""
        now_ms = self._last_ms
        if self._batches:
            counts, sizes, raw_sizes, waits_ms, largest = zip(*self._batches, strict=True)
            _record_all(self._batch_size, sizes, now_ms)
            _record_all(self._record_size, list(map(truediv, raw_sizes, counts)), now_ms)
            _record_all(self._compression, list(map(truediv, sizes, raw_sizes)), now_ms)
            _record_all(self._queue_time, waits_ms, now_ms)
            _record_all(self._largest_record, largest, now_ms)
            _record_all(self._records, counts, now_ms)
            most, records = max(counts), sum(counts)
            self._records_per_request.record_many(self._requests, records, most, now_ms)
            self._batches.clear()
            self._requests = 0
        if self._completed:
            latencies_ms, throttles_ms = zip(*self._completed, strict=True)
            _record_all(self._latency, latencies_ms, now_ms)
            _record_all(self._throttle, throttles_ms, now_ms)
            self._completed.clear()

    def retried(self, batch: ProducerBatch, now_ms: float) -> None:
        """Record a retry of a batch."""
        self._retries.record(batch.record_count, now_ms)

    def records_failed(self, count: int, now_ms: float) -> None:
        """Record failed records."""
        self._errors.record(count, now_ms)

    def split(self, now_ms: float) -> None:
        """Record a batch that was split because it was too large."""
        self._splits.record(1.0, now_ms)


def _record_all(sensor: Sensor, values: Sequence[float], now_ms: float) -> None:
    sensor.record_many(len(values), sum(values), max(values), now_ms)
