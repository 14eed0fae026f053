"""Accumulator: appends to open batches, and the order of batches that are sent again."""

import gc
from weakref import ref

import pytest

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import BufferExhaustedError, ClosedError, KafkaError, KafkaTimeoutError
from kclient.common.waiting import run_steps
from kclient.producer.append_outcome import AppendOutcome
from kclient.producer.batch_state import BatchEvent
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.rows import SingleRecord
from kclient.record import CompressionType, encode_headers
from tests.support.virtual.producer_world import TOPIC, ProducerWorld, tp, world


def batches(of: ProducerWorld, partition: int = 0) -> list[ProducerBatch]:
    """Return the queued batches of a partition."""
    return list(of.accumulator.topic_info(TOPIC).queues[partition].batches)


def drain(of: ProducerWorld) -> list[ProducerBatch]:
    drainer, now_ms = of.accumulator.drainer, of.clock.now_ms
    drainer.ready(of.cluster(), now_ms, skip_linger=of.accumulator.skips_linger())
    return drainer.drain([0], now_ms).get(0, [])


def returned(batch: ProducerBatch) -> None:
    batch.apply(BatchEvent.SENT)
    batch.request_failed(AppendOutcome.NOT_WRITTEN)


def plain(**options: object) -> ProducerWorld:
    """Return an accumulator whose batches are sent in any order."""
    return world(idempotence=False, max_in_flight=1, **options)


def test_records_share_a_batch_until_it_is_full() -> None:
    producer = plain(batch_size=1_000)
    for _ in range(4):
        producer.send(bytes(400))
    assert [batch.builder.record_count for batch in batches(producer)] == [2, 2]
    assert producer.accumulator.incomplete.record_count() == 4


def test_large_record_has_a_batch_of_its_own_size() -> None:
    producer = plain(batch_size=1_000)
    producer.send(bytes(5_000))
    (batch,) = batches(producer)
    assert batch.buffer is not None
    assert 5_000 < len(batch.buffer) < 5_200


def test_record_larger_than_a_request_is_refused_without_a_trace() -> None:
    producer = plain(max_request_size=2_000)
    before = producer.pool.available()
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size=2000"):
        producer.send(bytes(2_000))
    assert producer.pool.available() == before
    assert batches(producer) == []


def test_memory_that_is_not_freed_in_time_leaves_no_trace() -> None:
    producer = plain(batch_size=1_000, buffer_memory=1_000, partitions=2)
    producer.send(b"x", 0)
    with pytest.raises(BufferExhaustedError):
        producer.send(b"y", 1, max_wait_ms=50)
    assert batches(producer, 1) == []
    assert len(producer.accumulator.incomplete) == 1


def test_closed_accumulator_refuses_records_and_returns_their_memory() -> None:
    producer = plain()
    producer.accumulator.close()
    with pytest.raises(ClosedError):
        producer.send(b"x")
    assert producer.pool.available() == producer.pool.total
    assert batches(producer) == []


def test_retried_batch_is_queued_before_later_ones_after_its_backoff() -> None:
    producer = plain(batch_size=500)
    for _ in range(3):
        producer.send(bytes(400))
    accumulator = producer.accumulator
    first, second = drain(producer)[0], drain(producer)[0]
    third = batches(producer)[0]
    for batch in (second, first):
        returned(batch)
        accumulator.reenqueue(batch, producer.clock.now_ms)
    assert batches(producer) == [first, second, third]
    assert first.attempts == 1
    assert drain(producer) == []
    producer.clock.now_ms = first.retry_at_ms
    assert drain(producer) == [first]


def test_parts_replace_their_batch_and_free_its_memory() -> None:
    producer = plain()
    producer.send(b"a")
    producer.send(b"b")
    (batch,) = drain(producer)
    batch.seal(CompressionType.NONE, None)
    returned(batch)
    parts = batch.split(producer.accumulator.new_result)
    producer.accumulator.requeue_parts(batch, parts)
    assert batches(producer) == parts
    assert producer.accumulator.incomplete.all() == parts
    assert producer.pool.available() == producer.pool.total


def test_muted_partition_is_not_drained() -> None:
    producer = plain(partitions=2)
    for partition in range(2):
        producer.send(b"x", partition)
    producer.accumulator.mute(tp(0), muted=True)
    assert [batch.topic_partition for batch in drain(producer)] == [tp(1)]
    producer.accumulator.mute(tp(0), muted=False)
    assert [batch.topic_partition for batch in drain(producer)] == [tp(0)]


def test_batches_of_few_records_need_little_memory() -> None:
    producer = plain(partitions=10, batch_size=100_000, buffer_memory=200_000, linger_ms=100)
    for partition in range(10):
        producer.send(bytes(100), partition)
    assert producer.pool.available() == 200_000 - 10 * 4_096


def test_memory_of_a_finished_batch_in_flight_is_kept() -> None:
    producer = plain()
    producer.send(b"x")
    (batch,) = drain(producer)
    batch.apply(BatchEvent.SENT)
    batch.fail(KafkaError("expired"))
    producer.accumulator.finish(batch)
    assert producer.pool.available() < producer.pool.total
    assert len(producer.accumulator.incomplete) == 0
    producer.accumulator.deallocate(batch)
    producer.accumulator.deallocate(batch)
    assert producer.pool.available() == producer.pool.total


def test_flush_makes_open_batches_due_while_it_waits() -> None:
    producer = plain(linger_ms=60_000)
    producer.send(b"x")
    accumulator, now_ms = producer.accumulator, producer.clock.now_ms
    assert not accumulator.skips_linger()
    seen: list[bool] = []
    producer.clock.after(10, lambda: seen.append(accumulator.skips_linger()))
    with pytest.raises(KafkaTimeoutError, match="flush: 1 records have no outcome"):
        run_steps(accumulator.flush(now_ms + 100), producer.clock)
    assert seen == [True]
    assert not accumulator.skips_linger()


def test_forced_close_fails_every_batch_with_its_doubt() -> None:
    producer = plain()
    sent = producer.send(b"sent")
    (batch,) = drain(producer)
    batch.apply(BatchEvent.SENT)
    queued = producer.send(b"queued")
    producer.accumulator.close()
    assert producer.accumulator.abort_incomplete(KafkaError("closed")) == 2
    found = [future.exception(0) for future in (sent, queued)]
    assert [error is not None and error.possibly_written for error in found] == [True, False]
    assert batches(producer) == []
    assert len(producer.accumulator.incomplete) == 0
    assert producer.pool.available() == producer.pool.total


def test_records_without_partition_share_the_sticky_batch() -> None:
    producer = plain(partitions=50)
    for _ in range(3):
        producer.send(b"x", None)
    counts = [
        batch.builder.record_count
        for partition in range(50)
        for batch in batches(producer, partition)
    ]
    assert counts == [3]


def test_refused_record_leaves_no_queue_to_drain() -> None:
    producer = plain()
    producer.accumulator.close()
    with pytest.raises(ClosedError):
        producer.send(b"x")
    assert not producer.accumulator.drainer.has_due()


def test_dropped_topic_is_the_same_while_a_call_refers_to_it() -> None:
    producer = plain()
    accumulator, dropped = producer.accumulator, list[str]()
    accumulator._on_idle = dropped.append
    info = accumulator.topic_info(TOPIC)
    accumulator.drop_topics([TOPIC])
    assert (accumulator.topics(), dropped) == ([], [TOPIC])
    assert accumulator.topic_info(TOPIC) is info
    assert accumulator.topics() == [info]
    accumulator.drop_topics([TOPIC])
    reference = ref(info)
    del info
    gc.collect()
    assert reference() is None


def test_topic_with_incomplete_batches_is_kept() -> None:
    producer = plain()
    accumulator = producer.accumulator
    future = producer.send(b"x")
    info = accumulator.topic_info(TOPIC)
    accumulator.drop_topics([TOPIC])
    assert accumulator.topics() == [info]
    producer.settle()
    accumulator.drop_topics([TOPIC])
    assert accumulator.topics() == []
    record = SingleRecord(1, None, b"y", encode_headers(None), None)
    run_steps(accumulator.append(info, info.queues[0], record, 0.0), producer.clock)
    assert accumulator.topics() == [info]  # a call that had it before the drop
    producer.settle()
    assert future.result(0).offset == 0
