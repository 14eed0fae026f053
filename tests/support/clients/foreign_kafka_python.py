"""kafka-python on the interface of `ForeignClient`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from socket import socket
from typing import Any
from weakref import WeakKeyDictionary

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector
from kafka.structs import OffsetAndMetadata

from tests.support.clients.foreign_record import (
    EARLIEST,
    PLAIN,
    UNCOMMITTED,
    ForeignRecord,
    Patience,
    Sending,
)

_POLL_MS = 200
_sock_connect = KafkaNetSocket.sock_connect
_close_network = NetworkSelector.close
_sockets: WeakKeyDictionary[NetworkSelector, list[socket]] = WeakKeyDictionary()


async def _connect_registered(
    self: KafkaNetSocket,
    net: NetworkSelector,
    sock: socket,
    address: Any,
    timeout_at: float | None = None,
) -> Any:
    """Note the socket, so that closing the network closes it in any case."""
    held = [known for known in _sockets.get(net, ()) if known.fileno() >= 0]
    _sockets[net] = [*held, sock]
    return await _sock_connect(self, net, sock, address, timeout_at=timeout_at)


def _close_with_sockets(self: NetworkSelector) -> None:
    """Close also the sockets that kafka-python 3.0.12 leaves to the garbage collector.

    It leaves a socket whose attempt to connect has failed or is under way, and the socket of a
    transport that is closed while a request waits to be written. If the garbage collector finds
    such a socket during a test, that test fails with a ResourceWarning.
    """
    try:
        _close_network(self)
    finally:
        for sock in _sockets.pop(self, ()):
            sock.close()


KafkaNetSocket.sock_connect = _connect_registered
NetworkSelector.close = _close_with_sockets


class KafkaPythonClient:
    """The pure Python client."""

    name = "kafka-python"

    def __init__(self, bootstrap: str, native: Mapping[str, Any] | None = None) -> None:
        """Configure a client; `native` holds kafka-python's own settings for both sides."""
        self._native = {"bootstrap_servers": bootstrap.split(","), **(native or {})}

    def produce(
        self, topic: str, records: Iterable[ForeignRecord], how: Sending = PLAIN
    ) -> list[ForeignRecord]:
        producer = KafkaProducer(
            **self._native,
            acks="all" if how.acks == "all" else int(how.acks),
            compression_type=None if how.codec == "none" else how.codec,
            enable_idempotence=how.idempotence or how.transactional_id is not None,
            transactional_id=how.transactional_id,
            linger_ms=5,
        )
        with closing(producer), self._transaction(producer, how):
            given = list(records)
            futures = [self._send(producer, topic, record) for record in given]
            producer.flush(30)
            placed = [future.get(30) for future in futures]
        return [
            record.at(place.partition, place.offset)
            for record, place in zip(given, placed, strict=True)
        ]

    @staticmethod
    @contextmanager
    def _transaction(producer: KafkaProducer, how: Sending) -> Iterator[None]:
        if how.transactional_id is None:
            yield
            return
        producer.init_transactions()
        producer.begin_transaction()
        yield
        if how.commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()

    @staticmethod
    def _send(producer: KafkaProducer, topic: str, record: ForeignRecord) -> Any:
        return producer.send(
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
        with closing(self._consumer(group, isolation)) as consumer:
            if group is None:
                consumer.assign(self._partitions(consumer, topic))
            else:
                consumer.subscribe([topic])
            found: list[ForeignRecord] = []
            while len(found) < count:
                patience.check(len(found))
                found += self._poll(consumer, count - len(found), patience.remaining_ms())
            if group is not None:
                consumer.commit()
        return found

    def read_all(
        self, topic: str, *, isolation: str = UNCOMMITTED, timeout: float = 30
    ) -> list[ForeignRecord]:
        patience = Patience(timeout, f"{self.name} reads all of {topic}")
        with closing(self._consumer(None, isolation)) as consumer:
            partitions = self._partitions(consumer, topic)
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            found: list[ForeignRecord] = []
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                patience.check(len(found))
                found += self._poll(consumer, 500)
        return found

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        with closing(self._consumer(group, UNCOMMITTED)) as consumer:
            wanted = {
                TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
                for partition, offset in offsets.items()
            }
            consumer.assign(list(wanted))
            consumer.commit(wanted)

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int | None]:
        with closing(self._consumer(group, UNCOMMITTED)) as consumer:
            return {
                partition: consumer.committed(TopicPartition(topic, partition))
                for partition in partitions
            }

    def _consumer(self, group: str | None, isolation: str) -> KafkaConsumer:
        return KafkaConsumer(
            **self._native,
            group_id=group,
            auto_offset_reset=EARLIEST,
            enable_auto_commit=False,
            isolation_level=isolation,
            check_crcs=True,
        )

    @staticmethod
    def _partitions(consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))
        ]

    @staticmethod
    def _poll(
        consumer: KafkaConsumer, most: int, timeout_ms: float = _POLL_MS
    ) -> list[ForeignRecord]:
        """Polls once.

        A member of a group has to poll with a timeout that is longer than a rebalance: where the
        timeout expires between the responses to JoinGroup and SyncGroup of a rebalance that new
        metadata caused, kafka-python 3.0 never applies the assignment. Such a rebalance is usual:
        the first metadata request for a topic waits for retry_backoff_ms, the join does not.
        """
        polled = consumer.poll(timeout_ms=timeout_ms, max_records=most)
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
