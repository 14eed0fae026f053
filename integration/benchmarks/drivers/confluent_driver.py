"""confluent-kafka, with a callback per record, and without, where lost records are not reported."""

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import (
    Consumed,
    Workload,
    at_fixed_times,
    chunks_of,
    keys_of,
    values_of,
)

_PATIENCE = 120
_AT_ONCE = 1000
_BATCH = 10_000


def _needed(load: Workload) -> dict[str, Any]:
    """Return the settings that a client cannot do without."""
    needed: dict[str, Any] = {"bootstrap.servers": load.servers}
    if load.tls_bootstrap:
        needed |= {"security.protocol": "SSL", "ssl.ca.location": load.truststore}
    return needed


def producer_settings(load: Workload, **more: str | int) -> dict[str, Any]:
    """Return the settings of a producer."""
    if load.defaults:
        return _needed(load)
    return {
        **_needed(load),
        "acks": load.acks,
        "linger.ms": load.linger_ms,
        "batch.size": load.batch_bytes,
        "batch.num.messages": 100_000,
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 1_000_000,
        "enable.idempotence": True,
        "compression.type": load.codec,
        **more,
    }


def _producer(load: Workload, **more: str | int) -> Producer:
    return Producer(producer_settings(load, **more))


def produce(load: Workload, meter: Meter) -> int:
    """With a callback per record, as kclient's future per record."""
    delivered = 0

    def count(error: KafkaError | None, _: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1

    _produce(load, meter, {"on_delivery": count})
    return delivered


def produce_without_outcome(load: Workload, meter: Meter) -> int:
    """Fire and flush."""
    return load.records - _produce(load, meter, {})


def _produce(load: Workload, meter: Meter, how: dict[str, Any]) -> int:
    first, *values = values_of(load)
    producer = _producer(load)
    producer.produce(load.topic, first, **how)
    producer.flush(_PATIENCE)
    send, poll, topic = producer.produce, producer.poll, load.topic
    meter.start(skipped=1)
    for number, value in enumerate(values):
        while True:
            try:
                send(topic, value, **how)
                break
            except BufferError:
                poll(0.005)
        if not number % 500:
            poll(0)
    left = producer.flush(_PATIENCE)
    meter.stop()
    return left


def produce_in_transactions(load: Workload, meter: Meter) -> int:
    """Commits at intervals; the commit fails if a record has."""
    first, *values = values_of(load)
    chunks, interval_s, clock = chunks_of(values), load.transaction_ms / 1000, time.monotonic
    producer = _producer(load, **{"transactional.id": load.topic})
    producer.init_transactions(_PATIENCE)
    producer.begin_transaction()
    producer.produce(load.topic, first)
    producer.commit_transaction(_PATIENCE)
    send, poll, topic = producer.produce, producer.poll, load.topic
    meter.start(skipped=1)
    producer.begin_transaction()
    due = clock() + interval_s
    for chunk in chunks:
        for value in chunk:
            while True:
                try:
                    send(topic, value)
                    break
                except BufferError:
                    poll(0.005)
        poll(0)
        if clock() >= due:
            producer.commit_transaction(_PATIENCE)
            producer.begin_transaction()
            due = clock() + interval_s
    producer.commit_transaction(_PATIENCE)
    meter.stop()
    return load.records


def produce_in_turn(load: Workload, meter: Meter) -> int:
    """One record to each partition in turn, fire and flush."""
    values, turns = values_of(load), range(load.partitions)
    producer = _producer(load)
    for partition in turns:  # the first record of a partition is the warm-up
        producer.produce(load.topic, values.pop(), partition=partition)
    producer.flush(_PATIENCE)
    records = list(zip(values, itertools.cycle(turns), strict=False))
    send, poll, topic = producer.produce, producer.poll, load.topic
    meter.start(skipped=load.partitions)
    for number, (value, partition) in enumerate(records):
        while True:
            try:
                send(topic, value, partition=partition)
                break
            except BufferError:
                poll(0.005)
        if not number % 500:
            poll(0)
    left = producer.flush(_PATIENCE)
    meter.stop()
    return load.records - left


def latency(load: Workload, meter: Meter) -> int:
    """Each record when the one before it is acknowledged."""
    return _latency(load, meter, lambda values: values)


def paced_latency(load: Workload, meter: Meter) -> int:
    """A record at fixed times."""
    return _latency(load, meter, at_fixed_times)


def _latency(load: Workload, meter: Meter, paced: Callable[[list[bytes]], Iterable[bytes]]) -> int:
    first, *values = values_of(load)
    producer = _producer(load, **{"linger.ms": 0})
    producer.produce(load.topic, first)
    producer.flush(_PATIENCE)
    outcomes: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    send, poll, topic = producer.produce, producer.poll, load.topic
    took: list[float] = []
    meter.start(skipped=1)
    for number, value in enumerate(paced(values), 1):
        began = time.perf_counter()
        send(topic, value, on_delivery=note)
        while len(outcomes) < number:
            poll(1.0)
        took.append(time.perf_counter() - began)
    meter.stop()
    meter.note_latencies(took)
    return 1 + outcomes.count(None)


def buffer(load: Workload, meter: Meter) -> int:
    """Records that wait for a stopped broker, with a callback each."""
    first, *values = values_of(load)
    producer = _producer(load, **{"queue.buffering.max.messages": 10_000_000})
    producer.produce(load.topic, first)
    producer.flush(_PATIENCE)
    outcomes: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    meter.start(skipped=1)
    with meter.buffering(load.broker_pid, len(values), load.size):
        for value in values:
            producer.produce(load.topic, value, on_delivery=note)
    producer.flush(_PATIENCE)
    meter.stop()
    return 1 + outcomes.count(None)


def produce_batches(load: Workload, meter: Meter) -> int:
    """Lists of messages, fire and flush."""
    return _produce_batches(load, meter, keyed=False)


def produce_batches_keyed(load: Workload, meter: Meter) -> int:
    """Lists of messages with keys."""
    return _produce_batches(load, meter, keyed=True)


def _produce_batches(load: Workload, meter: Meter, *, keyed: bool) -> int:
    """Creates the dicts in the timed part, because an application does not have them."""
    first, *values = values_of(load)
    chunks = [values[at : at + _BATCH] for at in range(0, len(values), _BATCH)]
    keys = [keys_of(len(chunk)) for chunk in chunks] if keyed else []
    producer = _producer(load)
    producer.produce(load.topic, first)
    producer.flush(_PATIENCE)
    meter.start(skipped=1)
    for number, chunk in enumerate(chunks):
        if keyed:
            pairs = zip(keys[number], chunk, strict=True)
            messages = [{"key": key, "value": value} for key, value in pairs]
        else:
            messages = [{"value": value} for value in chunk]
        while messages:
            producer.produce_batch(load.topic, messages)
            # Messages that did not fit into the queue have an error, and are passed again.
            messages = [message for message in messages if "_error" in message]
            for message in messages:
                del message["_error"]
            producer.poll(0.005 if messages else 0)
    left = producer.flush(_PATIENCE)
    meter.stop()
    return load.records - left


def consumer_settings(load: Workload) -> dict[str, Any]:
    """Return the settings of a consumer."""
    needed = {**_needed(load), "group.id": "unused"}
    if load.defaults:
        return needed
    return {
        **needed,
        "enable.auto.commit": False,
        "check.crcs": True,
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 262_144,
        "fetch.message.max.bytes": 1 << 20,
        "fetch.max.bytes": 50 << 20,
    }


def consume(load: Workload, meter: Meter) -> Consumed:
    consumer = Consumer(consumer_settings(load))
    consumer.assign([TopicPartition(load.topic, number, 0) for number in range(load.partitions)])
    records = value_bytes = offset_sum = 0
    while records < load.records:
        messages = consumer.consume(_AT_ONCE, 1.0)
        if not records:
            meter.start(skipped=len(messages))
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            value_bytes += len(message.value())  # type: ignore[arg-type]  # never null here
            offset_sum += message.offset()  # type: ignore[operator]  # consumed messages have one
        records += len(messages)
    meter.stop()
    consumer.close()
    return Consumed(records, value_bytes, offset_sum)
