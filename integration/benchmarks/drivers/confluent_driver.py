"""confluent-kafka, with a callback per record, and without, where lost records are not reported."""

from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, keys_of, values_of

_PATIENCE = 120
_AT_ONCE = 1000
_BATCH = 10_000


def _producer(load: Workload) -> Producer:
    if load.defaults:
        return Producer({"bootstrap.servers": load.bootstrap})
    return Producer(
        {
            "bootstrap.servers": load.bootstrap,
            "acks": load.acks,
            "linger.ms": load.linger_ms,
            "batch.size": load.batch_bytes,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "enable.idempotence": True,
        }
    )


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


def _consumer(load: Workload) -> Consumer:
    needed = {"bootstrap.servers": load.bootstrap, "group.id": "unused"}
    if load.defaults:
        return Consumer(needed)
    return Consumer(
        {
            **needed,
            "enable.auto.commit": False,
            "check.crcs": True,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 262_144,
            "fetch.message.max.bytes": 1 << 20,
            "fetch.max.bytes": 50 << 20,
        }
    )


def consume(load: Workload, meter: Meter) -> Consumed:
    consumer = _consumer(load)
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
