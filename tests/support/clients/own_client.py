"""kclient on the interface of `ForeignClient`, to be compared with the others."""

from collections.abc import Iterable, Mapping
from typing import Any

from kclient import Consumer, OffsetAndMetadata, Producer, TopicPartition
from tests.support.clients.foreign_record import (
    PLAIN,
    UNCOMMITTED,
    ForeignRecord,
    Patience,
    Sending,
)

_POLL = 0.2
_RESPONSE = 30.0


class OwnClient:
    """kclient by its public names."""

    name = "kclient"

    def __init__(self, bootstrap: str, native: Mapping[str, Any] | None = None) -> None:
        """Configure a client; `native` holds settings for both sides."""
        self._native = {"bootstrap_servers": bootstrap, **(native or {})}

    def produce(
        self, topic: str, records: Iterable[ForeignRecord], how: Sending = PLAIN
    ) -> list[ForeignRecord]:
        settings = {
            **self._native,
            "acks": how.acks,
            "compression_type": how.codec,
            "enable_idempotence": how.idempotence,
        }
        given = list(records)
        with Producer(**settings) as producer:
            futures = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=None if record.partition < 0 else record.partition,
                    timestamp_ms=None if record.timestamp_ms < 0 else record.timestamp_ms,
                )
                for record in given
            ]
            producer.flush(_RESPONSE)
            placed = [future.result(_RESPONSE) for future in futures]
        return [
            record.at(place.partition, place.offset)
            for record, place in zip(given, placed, strict=True)
        ]

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
        with self._consumer(group, isolation) as consumer:
            if group is None:
                consumer.assign(self._partitions(topic))
            else:
                consumer.subscribe([topic])
            found: list[ForeignRecord] = []
            while len(found) < count:
                patience.check(len(found))
                found += _poll(consumer, count - len(found))
            if group is not None:
                consumer.commit()
        return found

    def read_all(
        self, topic: str, *, isolation: str = UNCOMMITTED, timeout: float = 30
    ) -> list[ForeignRecord]:
        patience = Patience(timeout, f"{self.name} reads all of {topic}")
        partitions = self._partitions(topic)
        with self._consumer(None, isolation) as consumer:
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            found: list[ForeignRecord] = []
            while any(consumer.position(one) < end for one, end in ends.items()):
                patience.check(len(found))
                found += _poll(consumer, 500)
        return found

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        with self._consumer(group, UNCOMMITTED) as consumer:
            wanted = {
                TopicPartition(topic, partition): OffsetAndMetadata(offset)
                for partition, offset in offsets.items()
            }
            consumer.assign(list(wanted))
            consumer.commit(wanted)

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int | None]:
        with self._consumer(group, UNCOMMITTED) as consumer:
            asked = [TopicPartition(topic, partition) for partition in partitions]
            responses = consumer.committed(asked)
        found = {one.partition: responses.get(one) for one in asked}
        return {number: at.offset if at is not None else None for number, at in found.items()}

    def _consumer(self, group: str | None, isolation: Any) -> Consumer:
        return Consumer(
            **self._native,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation,
        )

    def _partitions(self, topic: str) -> list[TopicPartition]:
        with Producer(**self._native) as producer:
            found = producer.partitions_for(topic)
        return [TopicPartition(topic, number) for number in sorted(one.partition for one in found)]


def _poll(consumer: Consumer, most: int) -> list[ForeignRecord]:
    return [
        ForeignRecord(
            value=record.value,
            key=record.key,
            headers=tuple(record.headers),
            timestamp_ms=record.timestamp_ms,
            partition=record.partition,
            offset=record.offset,
        )
        for record in consumer.poll(_POLL, most)
    ]
