"""confluent-kafka, and so librdkafka, on the interface of `ForeignClient`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.support.clients.foreign_record import (
    EARLIEST,
    PLAIN,
    UNCOMMITTED,
    ForeignRecord,
    Patience,
    Sending,
)

_POLL = 0.2
_RESPONSE = 10.0


class ConfluentClient:
    """The binding of librdkafka."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str, native: Mapping[str, Any] | None = None) -> None:
        """Configure a client; `native` holds librdkafka's own settings for both sides."""
        self._native = {"bootstrap.servers": bootstrap, **(native or {})}

    def produce(
        self, topic: str, records: Iterable[ForeignRecord], how: Sending = PLAIN
    ) -> list[ForeignRecord]:
        settings = {
            **self._native,
            "acks": how.acks,
            "compression.type": how.codec,
            "enable.idempotence": how.idempotence or how.transactional_id is not None,
            "linger.ms": 5,
        }
        if how.transactional_id is not None:
            settings["transactional.id"] = how.transactional_id
        producer = Producer(settings)
        given = list(records)
        outcomes: dict[int, tuple[KafkaError | None, Message]] = {}
        with self._transaction(producer, how):
            for number, record in enumerate(given):

                def delivered(error: KafkaError | None, message: Message, at: int = number) -> None:
                    outcomes[at] = (error, message)

                self._send(producer, topic, record, delivered)
            left = producer.flush(30)
        if left:
            msg = f"{self.name}: {left} of {len(given)} records were not delivered within 30 s"
            raise TimeoutError(msg)
        return [_placed(record, *outcomes[number]) for number, record in enumerate(given)]

    @staticmethod
    @contextmanager
    def _transaction(producer: Producer, how: Sending) -> Iterator[None]:
        if how.transactional_id is None:
            yield
            return
        producer.init_transactions(30)
        producer.begin_transaction()
        yield
        if how.commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)

    @staticmethod
    def _send(producer: Producer, topic: str, record: ForeignRecord, delivered: Any) -> None:
        optional: dict[str, Any] = {}
        if record.partition >= 0:
            optional["partition"] = record.partition
        if record.timestamp_ms >= 0:
            optional["timestamp"] = record.timestamp_ms
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            on_delivery=delivered,
            **optional,
        )
        producer.poll(0)

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
        with closing(self._consumer(group, isolation)) as consumer:
            if group is None:
                consumer.assign(self._from_beginning(consumer, topic))
            else:
                consumer.subscribe([topic])
            found: list[ForeignRecord] = []
            while len(found) < count:
                patience.check(len(found))
                message = consumer.poll(_POLL)
                if message is not None:
                    found.append(_record(message))
            if group is not None:
                consumer.commit(asynchronous=False)
        return found

    def read_all(
        self, topic: str, *, isolation: str = UNCOMMITTED, timeout: float = 30
    ) -> list[ForeignRecord]:
        patience = Patience(timeout, f"{self.name} reads all of {topic}")
        with closing(self._consumer(None, isolation, **{"enable.partition.eof": True})) as consumer:
            partitions = self._from_beginning(consumer, topic)
            consumer.assign(partitions)
            unfinished = {one.partition for one in partitions}
            found: list[ForeignRecord] = []
            while unfinished:
                patience.check(len(found))
                message = consumer.poll(_POLL)
                if message is None:
                    continue
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(_given(message.partition()))
                else:
                    found.append(_record(message))
        return found

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        with closing(self._consumer(group, UNCOMMITTED)) as consumer:
            wanted = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
            for found in consumer.commit(offsets=wanted, asynchronous=False) or ():
                if found.error is not None:
                    raise KafkaException(found.error)

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int | None]:
        with closing(self._consumer(group, UNCOMMITTED)) as consumer:
            asked = [TopicPartition(topic, number) for number in partitions]
            futures = consumer.committed(asked, timeout=_RESPONSE)
            return {one.partition: one.offset if one.offset >= 0 else None for one in futures}

    def _consumer(self, group: str | None, isolation: str, **more: Any) -> Consumer:
        return Consumer(
            {
                **self._native,
                # librdkafka wants a group even for assigned partitions; it is never joined then.
                "group.id": group or "unused",
                "auto.offset.reset": EARLIEST,
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "check.crcs": True,
                **more,
            }
        )

    @staticmethod
    def _from_beginning(consumer: Consumer, topic: str) -> list[TopicPartition]:
        known = consumer.list_topics(topic, timeout=_RESPONSE).topics[topic]
        if known.error is not None:
            raise KafkaException(known.error)
        return [
            TopicPartition(topic, number, OFFSET_BEGINNING) for number in sorted(known.partitions)
        ]


def _given(value: int | None) -> int:
    return -1 if value is None else value


def _placed(record: ForeignRecord, error: KafkaError | None, message: Message) -> ForeignRecord:
    if error is not None:
        raise KafkaException(error)
    return record.at(_given(message.partition()), _given(message.offset()))


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _record(message: Message) -> ForeignRecord:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return ForeignRecord(
        value=_bytes(message.value()),
        key=_bytes(message.key()),
        headers=tuple((name, _bytes(value)) for name, value in pairs),
        timestamp_ms=message.timestamp()[1],
        partition=_given(message.partition()),
        offset=_given(message.offset()),
    )
