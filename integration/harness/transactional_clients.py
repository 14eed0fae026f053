"""Transactions of each Python client: what it writes, and what it reads as a committed reader."""

import asyncio
from collections.abc import Callable, Mapping

import aiokafka
import confluent_kafka
import kafka

from kclient import Consumer, Producer

ROUNDS = 6
"""Every other transaction is committed."""
_READ_S = 3.0
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
        found = consumer.consume(count + 1, _READ_S)
        return [each.value() or b"" for each in found]
    finally:
        consumer.close()


def _read_with_kafka_python(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=int(_READ_S * 1000),
    )
    try:
        return [each.value for each in consumer]
    finally:
        consumer.close()


def _read_with_aiokafka(bootstrap: str, topic: str, count: int) -> list[bytes]:
    async def read() -> list[bytes]:
        async with aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            found: list[bytes] = []
            while batches := await consumer.getmany(timeout_ms=int(_READ_S * 1000)):
                found += [each.value for records in batches.values() for each in records]
            return found

    return asyncio.run(read())


def _read_with_kclient(bootstrap: str, topic: str, count: int) -> list[bytes]:
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-kclient",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe(topic)
        found: list[bytes] = []
        while True:
            records = consumer.poll(_READ_S)
            found += [each.value or b"" for each in records]
            if consumer.assignment() and not records:
                return found


READERS: Mapping[str, Callable[[str, str, int], list[bytes]]] = {
    "aiokafka": _read_with_aiokafka,
    "confluent-kafka": _read_with_confluent,
    "kafka-python": _read_with_kafka_python,
    "kclient": _read_with_kclient,
}
"""Reads a topic with read_committed until nothing comes for a while; an expected count is given."""
