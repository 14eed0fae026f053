"""aiokafka, with its compiled record code."""

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from integration.benchmarks.drivers.event_loops import measure_latencies, runner
from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, values_of


def produce(load: Workload, meter: Meter) -> int:
    with runner(load) as loop:
        return loop.run(_produce(load, meter))


def _producer(load: Workload, linger_ms: int) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=load.bootstrap,
        acks=load.acks if load.acks == "all" else int(load.acks),
        linger_ms=linger_ms,
        max_batch_size=load.batch_bytes,
        max_request_size=8 << 20,
        enable_idempotence=True,
    )


async def _produce(load: Workload, meter: Meter) -> int:
    first, *values = values_of(load)
    producer = _producer(load, load.linger_ms)
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


def latency(load: Workload, meter: Meter) -> int:
    """Each record when the one before it is acknowledged."""
    with runner(load) as loop:
        return loop.run(_latency(load, meter))


async def _latency(load: Workload, meter: Meter) -> int:
    first, *values = values_of(load)
    producer = _producer(load, 0)
    await producer.start()
    send_and_wait, topic = producer.send_and_wait, load.topic
    await send_and_wait(topic, first)
    delivered = await measure_latencies(
        lambda value: send_and_wait(topic, value), values, load, meter
    )
    await producer.stop()
    return delivered


def _consumer(load: Workload) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=load.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        check_crcs=True,
        max_partition_fetch_bytes=1 << 20,
        auto_offset_reset="earliest",
    )


def consume(load: Workload, meter: Meter) -> Consumed:
    with runner(load) as loop:
        return loop.run(_consume(load, meter))


async def _consume(load: Workload, meter: Meter) -> Consumed:
    consumer = _consumer(load)
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


def consume_each(load: Workload, meter: Meter) -> Consumed:
    """Iterate over the records."""
    with runner(load) as loop:
        return loop.run(_consume_each(load, meter))


async def _consume_each(load: Workload, meter: Meter) -> Consumed:
    consumer = _consumer(load)
    await consumer.start()
    consumer.assign([TopicPartition(load.topic, number) for number in range(load.partitions)])
    records = value_bytes = offset_sum = 0
    async for record in consumer:
        records += 1
        if records == 1:
            meter.start(skipped=1)
        value_bytes += len(record.value)
        offset_sum += record.offset
        if records == load.records:
            break
    meter.stop()
    await consumer.stop()
    return Consumed(records, value_bytes, offset_sum)
