"""confluent-kafka on asyncio: its experimental AIOProducer and AIOConsumer, which use threads."""

import asyncio
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.aio import AIOConsumer, AIOProducer

from integration.benchmarks.drivers.confluent_driver import consumer_settings, producer_settings
from integration.benchmarks.drivers.event_loops import measure_latencies, runner
from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, values_of

_AT_ONCE = 1000
# AIOProducer fails records that do not fit into the queue, and has no way to wait for it.
_QUEUE = {"queue.buffering.max.messages": 10_000_000}


def produce(load: Workload, meter: Meter) -> int:
    """Keep the future of each record and look at it in the end."""
    with runner(load) as loop:
        return loop.run(_produce(load, meter))


async def _produce(load: Workload, meter: Meter) -> int:
    first, *values = values_of(load)
    producer = AIOProducer(producer_settings(load, **_QUEUE))
    futures = [await producer.produce(load.topic, first)]
    await producer.flush()
    await futures[0]
    send, keep, topic = producer.produce, futures.append, load.topic
    meter.start(skipped=1)
    for value in values:
        keep(await send(topic, value))
    await producer.flush()
    await futures[-1]  # delivery reports are passed on by callbacks of the event loop
    delivered = sum(1 for future in futures if future.done() and future.exception() is None)
    meter.stop()
    await producer.close()
    return delivered


def latency(load: Workload, meter: Meter) -> int:
    """Each record when the one before it is acknowledged, without AIOProducer's own batches."""
    with runner(load) as loop:
        return loop.run(_latency(load, meter))


async def _latency(load: Workload, meter: Meter) -> int:
    first, *values = values_of(load)
    producer = AIOProducer(producer_settings(load, **{"linger.ms": 0}), batch_size=1)

    async def send_and_wait(value: bytes) -> object:
        future = await producer.produce(load.topic, value)
        while not future.done():
            await producer.poll(1.0)
            await asyncio.sleep(0)  # the poll's reports are passed on by callbacks
        return await future

    await send_and_wait(first)
    delivered = await measure_latencies(send_and_wait, values, load, meter)
    await producer.close()
    return delivered


def consume(load: Workload, meter: Meter) -> Consumed:
    """Read batches."""
    with runner(load) as loop:
        return loop.run(_consume(load, meter))


async def _consume(load: Workload, meter: Meter) -> Consumed:
    consumer = AIOConsumer(consumer_settings(load))
    await consumer.assign([TopicPartition(load.topic, each, 0) for each in range(load.partitions)])
    records = value_bytes = offset_sum = 0
    while records < load.records:
        messages: list[Any] = await consumer.consume(_AT_ONCE, 1.0)
        if not records:
            meter.start(skipped=len(messages))
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            value_bytes += len(message.value())
            offset_sum += message.offset()
        records += len(messages)
    meter.stop()
    await consumer.close()
    return Consumed(records, value_bytes, offset_sum)
