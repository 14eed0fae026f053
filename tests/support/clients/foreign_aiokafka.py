"""aiokafka on the interface of `ForeignClient`; each call runs an event loop of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.support.clients.foreign_record import (
    EARLIEST,
    PLAIN,
    UNCOMMITTED,
    ForeignRecord,
    Patience,
    Sending,
)

_POLL_MS = 200


class AiokafkaClient:
    """The asyncio client."""

    name = "aiokafka"

    def __init__(self, bootstrap: str, native: Mapping[str, Any] | None = None) -> None:
        """Configure a client; `native` holds aiokafka's own settings for both sides."""
        self._native = {"bootstrap_servers": bootstrap, **(native or {})}

    def produce(
        self, topic: str, records: Iterable[ForeignRecord], how: Sending = PLAIN
    ) -> list[ForeignRecord]:
        return asyncio.run(self._produce(topic, list(records), how))

    async def _produce(
        self, topic: str, records: list[ForeignRecord], how: Sending
    ) -> list[ForeignRecord]:
        producer = AIOKafkaProducer(
            **self._native,
            acks="all" if how.acks == "all" else int(how.acks),
            compression_type=None if how.codec == "none" else how.codec,
            enable_idempotence=how.idempotence or how.transactional_id is not None,
            transactional_id=how.transactional_id,
            linger_ms=5,
        )
        async with _running(producer), self._transaction(producer, how):
            futures = [await self._send(producer, topic, record) for record in records]
            await producer.flush()
            placed = [await future for future in futures]
        return [
            # With acks=0 there is no response, and so no offset.
            record.at(place.partition, place.offset) if place else record
            for record, place in zip(records, placed, strict=True)
        ]

    @staticmethod
    @asynccontextmanager
    async def _transaction(producer: AIOKafkaProducer, how: Sending) -> AsyncIterator[None]:
        if how.transactional_id is None:
            yield
            return
        await producer.begin_transaction()
        yield
        if how.commit:
            await producer.commit_transaction()
        else:
            await producer.abort_transaction()

    @staticmethod
    async def _send(producer: AIOKafkaProducer, topic: str, record: ForeignRecord) -> Any:
        return await producer.send(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            partition=None if record.partition < 0 else record.partition,
            timestamp_ms=None if record.timestamp_ms < 0 else record.timestamp_ms,
        )

    def consume(
        self,
        topic: str,
        count: int,
        *,
        group: str | None = None,
        isolation: str = UNCOMMITTED,
        timeout: float = 30,
    ) -> list[ForeignRecord]:
        patience = Patience(timeout, f"{self.name} reads {count} of {topic}")
        return asyncio.run(self._consume(topic, count, self._settings(group, isolation), patience))

    async def _consume(
        self, topic: str, count: int, settings: dict[str, Any], patience: Patience
    ) -> list[ForeignRecord]:
        # Without a group aiokafka assigns all partitions of its topics to itself.
        consumer = AIOKafkaConsumer(topic, **settings)
        async with _running(consumer):
            found: list[ForeignRecord] = []
            while len(found) < count:
                patience.check(len(found))
                found += await _poll(consumer, count - len(found))
            if settings["group_id"] is not None:
                await consumer.commit()
        return found

    def read_all(
        self, topic: str, *, isolation: str = UNCOMMITTED, timeout: float = 30
    ) -> list[ForeignRecord]:
        patience = Patience(timeout, f"{self.name} reads all of {topic}")
        return asyncio.run(self._read_all(topic, self._settings(None, isolation), patience))

    async def _read_all(
        self, topic: str, settings: dict[str, Any], patience: Patience
    ) -> list[ForeignRecord]:
        consumer = AIOKafkaConsumer(topic, **settings)
        async with _running(consumer):
            ends = await consumer.end_offsets(consumer.assignment())
            found: list[ForeignRecord] = []
            while any([await consumer.position(one) < end for one, end in ends.items()]):
                patience.check(len(found))
                found += await _poll(consumer, 500)
        return found

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = {TopicPartition(topic, partition): offset for partition, offset in offsets.items()}
        asyncio.run(self._commit(self._settings(group, UNCOMMITTED), wanted))

    @staticmethod
    async def _commit(settings: dict[str, Any], offsets: dict[TopicPartition, int]) -> None:
        consumer = AIOKafkaConsumer(**settings)
        async with _running(consumer):
            consumer.assign(list(offsets))
            await consumer.commit(offsets)

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int | None]:
        settings = self._settings(group, UNCOMMITTED)
        return asyncio.run(self._committed(settings, topic, list(partitions)))

    @staticmethod
    async def _committed(
        settings: dict[str, Any], topic: str, partitions: list[int]
    ) -> dict[int, int | None]:
        consumer = AIOKafkaConsumer(**settings)
        async with _running(consumer):
            return {
                partition: await consumer.committed(TopicPartition(topic, partition))
                for partition in partitions
            }

    def _settings(self, group: str | None, isolation: str) -> dict[str, Any]:
        return {
            **self._native,
            "group_id": group,
            "auto_offset_reset": EARLIEST,
            "enable_auto_commit": False,
            "isolation_level": isolation,
            "check_crcs": True,
        }


@asynccontextmanager
async def _running(client: Any) -> AsyncIterator[None]:
    try:
        await client.start()
        yield
    finally:
        await client.stop()


async def _poll(consumer: AIOKafkaConsumer, most: int) -> list[ForeignRecord]:
    polled = await consumer.getmany(timeout_ms=_POLL_MS, max_records=most)
    return [
        ForeignRecord(
            value=record.value,
            key=record.key,
            headers=tuple(record.headers),
            timestamp_ms=record.timestamp,
            partition=record.partition,
            offset=record.offset,
        )
        for batch in polled.values()
        for record in batch
    ]
