"""kafka-python."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from integration.benchmarks.meter import Meter
from integration.benchmarks.workload import Consumed, Workload, values_of

_PATIENCE = 120


def produce(load: Workload, meter: Meter) -> int:
    first, *values = values_of(load)
    producer = KafkaProducer(
        bootstrap_servers=load.bootstrap,
        acks=load.acks if load.acks == "all" else int(load.acks),
        linger_ms=load.linger_ms,
        batch_size=load.batch_bytes,
        max_request_size=8 << 20,
        enable_idempotence=True,
    )
    futures = [producer.send(load.topic, first)]
    futures[0].get(_PATIENCE)
    send, keep, topic = producer.send, futures.append, load.topic
    meter.start(skipped=1)
    for value in values:
        keep(send(topic, value))
    producer.flush(_PATIENCE)
    delivered = sum(1 for future in futures if future.succeeded())
    meter.stop()
    producer.close()
    return delivered


def consume(load: Workload, meter: Meter) -> Consumed:
    consumer = KafkaConsumer(
        bootstrap_servers=load.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        check_crcs=True,
        max_poll_records=5000,
        max_partition_fetch_bytes=1 << 20,
        auto_offset_reset="earliest",
    )
    consumer.assign([TopicPartition(load.topic, number) for number in range(load.partitions)])
    records = value_bytes = offset_sum = 0
    while records < load.records:
        polled = consumer.poll(1000)
        batches = polled.values()
        if not records:
            meter.start(skipped=sum(map(len, batches)))
        for batch in batches:
            for record in batch:
                value_bytes += len(record.value)
                offset_sum += record.offset
            records += len(batch)
    meter.stop()
    consumer.close()
    return Consumed(records, value_bytes, offset_sum)
