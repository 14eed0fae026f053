"""kclient, by its public names alone."""

from typing import Any

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, keys_of, values_of
from kclient import Consumer, Producer, TopicPartition

_PATIENCE = 120.0
_AT_ONCE = 1000
_ARROW_ROWS = 10_000


def _producer(load: Workload) -> Producer:
    acks: Any = load.acks
    return Producer(
        bootstrap_servers=load.bootstrap,
        acks=acks,
        linger_ms=load.linger_ms,
        batch_size=load.batch_bytes,
        enable_idempotence=False,
    )


def produce(load: Workload, meter: Meter) -> int:
    """Keeps the future of each record and looks at it in the end."""
    first, *values = values_of(load)
    with _producer(load) as producer:
        futures = [producer.send(load.topic, first)]
        futures[0].result(_PATIENCE)
        send, keep, topic = producer.send, futures.append, load.topic
        meter.start(skipped=1)
        for value in values:
            keep(send(topic, value))
        producer.flush(_PATIENCE)
        delivered = sum(1 for future in futures if future.done() and future.exception() is None)
        meter.stop()
    return delivered


def produce_without_outcome(load: Workload, meter: Meter) -> int:
    """Fire and flush."""
    first, *values = values_of(load)
    with _producer(load) as producer:
        producer.send(load.topic, first).result(_PATIENCE)
        send, topic = producer.send, load.topic
        meter.start(skipped=1)
        for value in values:
            send(topic, value)
        producer.flush(_PATIENCE)
        meter.stop()
    return load.records


def produce_many(load: Workload, meter: Meter) -> int:
    """Lists of records, each with one outcome."""
    return _produce_many(load, meter, keyed=False)


def produce_many_keyed(load: Workload, meter: Meter) -> int:
    """Lists of records and their keys."""
    return _produce_many(load, meter, keyed=True)


def _produce_many(load: Workload, meter: Meter, *, keyed: bool) -> int:
    first, *values = values_of(load)
    chunks = [values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE)]
    keys = [keys_of(len(chunk)) if keyed else None for chunk in chunks]
    with _producer(load) as producer:
        producer.send(load.topic, first).result(_PATIENCE)
        send_many, topic = producer.send_many, load.topic
        meter.start(skipped=1)
        outcomes = [send_many(topic, *each) for each in zip(chunks, keys, strict=True)]
        producer.flush(_PATIENCE)
        delivered = 1 + sum(outcome.result(_PATIENCE) for outcome in outcomes)
        meter.stop()
    return delivered


def produce_arrow(load: Workload, meter: Meter) -> int:
    """Arrow batches of as many records as Spark's have, each with one outcome."""
    return _produce_arrow(load, meter, keyed=False)


def produce_arrow_keyed(load: Workload, meter: Meter) -> int:
    """Arrow batches with a column of keys."""
    return _produce_arrow(load, meter, keyed=True)


def _produce_arrow(load: Workload, meter: Meter, *, keyed: bool) -> int:
    import pyarrow as pa  # noqa: PLC0415 - the other kclient cells do not pay for it

    first, *values = values_of(load)
    batches = []
    for at in range(0, len(values), _ARROW_ROWS):
        columns = {"value": pa.array(values[at : at + _ARROW_ROWS], pa.binary())}
        if keyed:
            columns["key"] = pa.array(keys_of(len(columns["value"])), pa.binary())
        batches.append(pa.record_batch(columns))
    with _producer(load) as producer:
        producer.send_arrow(load.topic, pa.table({"value": [first]})).result(_PATIENCE)
        send_arrow, topic = producer.send_arrow, load.topic
        meter.start(skipped=1)
        outcomes = [send_arrow(topic, batch) for batch in batches]
        producer.flush(_PATIENCE)
        delivered = 1 + sum(outcome.result(_PATIENCE) for outcome in outcomes)
        meter.stop()
    return delivered


def _consumer(load: Workload) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=load.bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1 << 20,
        max_poll_records=5000,
    )
    consumer.assign([TopicPartition(load.topic, number) for number in range(load.partitions)])
    return consumer


def consume(load: Workload, meter: Meter) -> Consumed:
    records = value_bytes = offset_sum = 0
    with _consumer(load) as consumer:
        while records < load.records:
            polled = consumer.poll(1.0)
            if not records:
                meter.start(skipped=len(polled))
            for record in polled:
                value_bytes += len(record.value)
                offset_sum += record.offset
            records += len(polled)
        meter.stop()
    return Consumed(records, value_bytes, offset_sum)


def consume_columns(load: Workload, meter: Meter) -> Consumed:
    """Arrow columns instead of objects; the sums are Arrow's too."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the other kclient cells do not pay for it

    records = value_bytes = offset_sum = 0
    with _consumer(load) as consumer:
        while records < load.records:
            columns = consumer.poll_columns(1.0)
            if not records:
                meter.start(skipped=columns.num_rows)
            if columns.num_rows:
                values: Any = columns["value"]
                value_bytes += int(pc.sum(pc.binary_length(values)).as_py() or 0)
                offset_sum += int(pc.sum(columns["offset"]).as_py() or 0)
            records += columns.num_rows
        meter.stop()
    return Consumed(records, value_bytes, offset_sum)
