"""Metrics of the producer, under Kafka's names."""

from collections.abc import Sequence
from operator import truediv

from kclient.common.metrics import Metrics, Sensor
from kclient.producer.producer_batch import ProducerBatch


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

    Attributes:
        registry: Registry of the sensors.
    """

    def __init__(self, registry: Metrics) -> None:
        self.registry = registry
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

    def request_sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        """Record a Produce request and its batches."""
        # One call per sensor and request: a call per batch takes longer than sealing the batch.
        counts = [batch.record_count for batch in batches]
        sizes = [batch.size_in_bytes for batch in batches]
        raw_sizes = [batch.uncompressed_size for batch in batches]
        _record_all(self._batch_size, sizes, now_ms)
        _record_all(self._record_size, list(map(truediv, raw_sizes, counts)), now_ms)
        _record_all(self._compression, list(map(truediv, sizes, raw_sizes)), now_ms)
        waits_ms = [batch.drained_ms - batch.created_ms for batch in batches]
        _record_all(self._queue_time, waits_ms, now_ms)
        largest = max([batch.builder.largest_record for batch in batches])
        self._largest_record.record_many(1, largest, largest, now_ms)
        records = sum(counts)
        self._records.record_many(1, records, records, now_ms)
        self._records_per_request.record_many(1, records, records, now_ms)

    def request_completed(self, latency_ms: float, throttle_ms: float, now_ms: float) -> None:
        """Record the latency and throttle time of a request."""
        self._latency.record_many(1, latency_ms, latency_ms, now_ms)
        self._throttle.record_many(1, throttle_ms, throttle_ms, now_ms)

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
