"""The asyncio clients against Apache Kafka."""

import asyncio
import uuid

from integration.harness.running_kafka import RunningKafka
from kclient import TopicPartition
from kclient.aio import Consumer, Producer


def test_records_are_produced_in_an_event_loop(kafka: RunningKafka) -> None:
    topic = f"aio-{uuid.uuid4().hex[:8]}"

    async def test() -> None:
        async with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            futures = [await producer.send(topic, b"%d" % number) for number in range(500)]
            assert [(await each).offset for each in futures] == list(range(500))
            assert await (await producer.send_many(topic, [b"many"] * 500)) == 500
            assert (await producer.send_and_wait(topic, b"last")).offset == 1_000

    asyncio.run(test())


def test_group_commits_in_an_event_loop(kafka: RunningKafka) -> None:
    topic = f"aio-{uuid.uuid4().hex[:8]}"

    async def test() -> None:
        async with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            await (await producer.send_many(topic, [b"v"] * 100))
        for expected in (100, 0):
            async with Consumer(
                bootstrap_servers=kafka.bootstrap,
                group_id=topic,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer:
                consumer.subscribe(topic)
                found = 0
                while found < expected or not consumer.assignment():
                    found += len(await consumer.poll())
                await consumer.commit()
                assert await consumer.lag(TopicPartition(topic, 0)) == 0
                assert found == expected

    asyncio.run(test())
