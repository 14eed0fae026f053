"""aiokafka, with its compiled record code."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, values_of


def produce(load: Workload, meter: Meter) -> int:
    return asyncio.run(_produce(load, meter))


async def _produce(load: Workload, meter: Meter) -> int:
    first, *values = values_of(load)
    producer = AIOKafkaProducer(
        bootstrap_servers=load.bootstrap,
        acks=load.acks if load.acks == "all" else int(load.acks),
        linger_ms=load.linger_ms,
        max_batch_size=load.batch_bytes,
        max_request_size=8 << 20,
        enable_idempotence=True,
    )
    await producer.start()
    futures = [await producer.send(load.topic, first)]
    await futures[0]
    send, keep, topic = producer.send, futures.append, load.topic
    meter.start(skipped=1)
    for value in values:
        keep(await send(topic, value))
    await producer.flush()
    delivered = sum(1 for future in futures if future.done() and future.exception() is None)
    meter.stop()
    await producer.stop()
    return delivered


def consume(load: Workload, meter: Meter) -> Consumed:
    return asyncio.run(_consume(load, meter))


async def _consume(load: Workload, meter: Meter) -> Consumed:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=load.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        check_crcs=True,
        max_partition_fetch_bytes=1 << 20,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    consumer.assign([TopicPartition(load.topic, number) for number in range(load.partitions)])
    records = value_bytes = offset_sum = 0
    while records < load.records:
        batches = (await consumer.getmany(timeout_ms=1000, max_records=5000)).values()
        if not records:
            meter.start(skipped=sum(map(len, batches)))
        for batch in batches:
            for record in batch:
                value_bytes += len(record.value)
                offset_sum += record.offset
            records += len(batch)
    meter.stop()
    await consumer.stop()
    return Consumed(records, value_bytes, offset_sum)
