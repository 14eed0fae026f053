"""Transactions of each Python client: what it writes, and what it reads as a committed reader."""

import asyncio
from collections.abc import Callable, Mapping

import aiokafka
import confluent_kafka
import kafka

from kclient import Consumer, Producer, TopicPartition
from tests.support.checks.waiting import wait_until

ROUNDS = 6
"""Every other transaction is committed."""
_READ_S = 60.0
_QUIET_S = 1.0
RECORDS = [b"%d-%d" % (turn, number) for turn in range(ROUNDS) for number in range(5)]
COMMITTED = sorted(value for value in RECORDS if int(value.split(b"-")[0]) % 2 == 0)


def _produce_with_confluent(bootstrap: str, topic: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "confluent"}
    )
    producer.init_transactions(20)
    for turn in range(ROUNDS):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(topic, b"%d-%d" % (turn, number), partition=number % 3)
        producer.flush(20)
        if turn % 2:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)


def _produce_with_kafka_python(bootstrap: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id="kafka-python")
    producer.init_transactions()
    for turn in range(ROUNDS):
        producer.begin_transaction()
        for number in range(5):
            producer.send(topic, b"%d-%d" % (turn, number), partition=number % 3)
        producer.flush(20)
        if turn % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def _produce_with_aiokafka(bootstrap: str, topic: str) -> None:
    async def produce() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id="aiokafka"
        ) as producer:
            for turn in range(ROUNDS):
                await producer.begin_transaction()
                for number in range(5):
                    await producer.send_and_wait(
                        topic, b"%d-%d" % (turn, number), partition=number % 3
                    )
                if turn % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    asyncio.run(produce())


def _produce_with_kclient(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, transactional_id="kclient") as producer:
        producer.init_transactions()
        for turn in range(ROUNDS):
            producer.begin_transaction()
            for number in range(5):
                producer.send(topic, b"%d-%d" % (turn, number), partition=number % 3)
            producer.flush(20)
            if turn % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()


PRODUCERS: Mapping[str, Callable[[str, str], None]] = {
    "aiokafka": _produce_with_aiokafka,
    "confluent-kafka": _produce_with_confluent,
    "kafka-python": _produce_with_kafka_python,
    "kclient": _produce_with_kclient,
}
"""Writes RECORDS to three partitions of a topic, given the bootstrap servers and the topic."""


def _read_with_confluent(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-confluent",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    try:
        return _collect(
            lambda: [each.value() or b"" for each in consumer.consume(1000, _QUIET_S)], count
        )
    finally:
        consumer.close()


def _read_with_kafka_python(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )

    def poll() -> list[bytes]:
        polled = consumer.poll(timeout_ms=int(_QUIET_S * 1000))
        return [each.value for records in polled.values() for each in records]

    try:
        return _collect(poll, count)
    finally:
        consumer.close()


def _read_with_aiokafka(bootstrap: str, topic: str, count: int) -> list[bytes]:
    with asyncio.Runner() as runner:
        consumer = runner.run(_aiokafka_consumer(bootstrap, topic))

        def poll() -> list[bytes]:
            polled = runner.run(consumer.getmany(timeout_ms=int(_QUIET_S * 1000)))
            return [each.value for records in polled.values() for each in records]

        try:
            return _collect(poll, count)
        finally:
            runner.run(consumer.stop())


async def _aiokafka_consumer(bootstrap: str, topic: str) -> aiokafka.AIOKafkaConsumer:
    consumer = aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    return consumer


def _read_with_kclient(bootstrap: str, topic: str, count: int) -> list[bytes]:
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, each) for each in range(3)])
        consumer.seek_to_beginning()
        return _collect(lambda: [each.value or b"" for each in consumer.poll(_QUIET_S)], count)


def _collect(poll: Callable[[], list[bytes]], count: int) -> list[bytes]:
    """Poll until there are so many records, and once more."""
    found: list[bytes] = []

    def is_read() -> bool:
        found.extend(poll())
        return len(found) >= count

    wait_until(is_read, f"{count} records are read", _READ_S)
    return found + poll()


READERS: Mapping[str, Callable[[str, str, int], list[bytes]]] = {
    "aiokafka": _read_with_aiokafka,
    "confluent-kafka": _read_with_confluent,
    "kafka-python": _read_with_kafka_python,
    "kclient": _read_with_kclient,
}
"""Reads a topic with read_committed; waits for a number of records, and returns more if it can."""
