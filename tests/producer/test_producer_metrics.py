"""Metrics of the producer under Kafka's names."""

import pytest

from kclient.producer.producer_batch import ProducerBatch
from kclient.record import CompressionType
from tests.support.virtual.producer_parts import ProducerParts


def drained(parts: ProducerParts, *values: bytes, waited_ms: float) -> ProducerBatch:
    batch = parts.batch(*values, size=10_000)
    batch.close()
    batch.seal(CompressionType.GZIP, None)
    batch.drained_ms = batch.created_ms + waited_ms
    return batch


def test_request_is_measured_by_its_batches() -> None:
    parts = ProducerParts()
    batches = [drained(parts, bytes(4_000), waited_ms=10), drained(parts, b"a", b"b", waited_ms=30)]
    parts.metrics.request_sent(batches, parts.clock.now_ms)
    found = parts.metrics.snapshot()
    assert found["record-send-total"] == 3
    assert found["records-per-request-avg"] == 3
    sizes = [batch.uncompressed_size / batch.record_count for batch in batches]
    assert found["record-size-avg"] == pytest.approx(sum(sizes) / 2)
    assert found["batch-size-max"] == max(batch.size_in_bytes for batch in batches)
    assert found["record-queue-time-avg"] == 20
    assert found["record-queue-time-max"] == 30
    assert found["record-size-max"] == batches[0].builder.largest_record > 4_000
    ratios = [batch.size_in_bytes / batch.uncompressed_size for batch in batches]
    assert found["compression-rate-avg"] == pytest.approx(sum(ratios) / 2)


def test_values_are_recorded_at_the_time_of_their_request() -> None:
    """They wait for those of other requests, but not beyond the window."""
    parts = ProducerParts()
    parts.metrics.request_sent([drained(parts, b"a", waited_ms=10)], parts.clock.now_ms)
    parts.metrics.request_completed(10.0, 0.0, parts.clock.now_ms)
    parts.clock.now_ms += 45_000
    parts.metrics.request_completed(30.0, 0.0, parts.clock.now_ms)
    found = parts.metrics.snapshot()
    assert found["request-latency-avg"] == 20
    parts.clock.now_ms += 45_000
    parts.metrics.request_completed(70.0, 0.0, parts.clock.now_ms)
    found = parts.metrics.snapshot()
    assert found["request-latency-avg"] == 50
    assert found["record-send-total"] == 1


def test_many_values_do_not_wait_for_a_snapshot() -> None:
    parts = ProducerParts()
    batches = [drained(parts, b"a", b"b", waited_ms=10) for _ in range(40)]
    for _ in range(20):
        parts.metrics.request_sent(batches, parts.clock.now_ms)
    assert parts.metrics.registry.snapshot()["record-send-total"] >= 1000
    assert parts.metrics.snapshot()["record-send-total"] == 1600
    assert parts.metrics.snapshot()["records-per-request-avg"] == 80


def test_latency_and_throttle_time_of_requests() -> None:
    parts = ProducerParts()
    for latency_ms, throttle_ms in ((10.0, 0.0), (30.0, 500.0)):
        parts.metrics.request_completed(latency_ms, throttle_ms, parts.clock.now_ms)
    found = parts.metrics.snapshot()
    assert (found["request-latency-avg"], found["request-latency-max"]) == (20, 30)
    assert (found["produce-throttle-time-avg"], found["produce-throttle-time-max"]) == (250, 500)


def test_records_that_were_retried_failed_or_split() -> None:
    parts = ProducerParts()
    now_ms = parts.clock.now_ms
    parts.metrics.retried(drained(parts, b"a", b"b", waited_ms=0), now_ms)
    parts.metrics.records_failed(5, now_ms)
    parts.metrics.split(now_ms)
    found = parts.metrics.snapshot()
    assert found["record-retry-total"] == 2
    assert found["record-error-total"] == 5
    assert found["batch-split-total"] == 1


def test_wait_for_memory_is_a_total_and_a_ratio() -> None:
    parts = ProducerParts()
    parts.metrics.buffer_wait.record(3e9)
    parts.clock.now_ms += 30_000
    found = parts.metrics.snapshot()
    assert found["bufferpool-wait-time-ns-total"] == 3e9
    assert found["bufferpool-wait-ratio"] == pytest.approx(0.1)
