"""Brokers stop, crash and restart under load, without lost, duplicated or reordered records."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from integration.conftest import StartCluster
from integration.harness.discovery import chosen_versions
from kclient import Consumer, ConsumerRecord, TopicPartition
from tests.support.checks.waiting import wait_until
from tests.support.clients.background_thread import BackgroundThread
from tests.support.clients.clients import Clients, read
from tests.support.clients.foreign import FOREIGN_CLIENTS
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.load import Load, check_intact
from tests.support.processes.broker_process import BrokerProcess

PARTITIONS = 3
CRASHES = 5
BETWEEN = 2_000  # records acknowledged between two crashes
GROUP = "readers"

Bounce = Callable[[], None]
"""Stops a broker and starts it again; returns when it responds."""


class Reader(BackgroundThread):
    """A member of a group: reads, stores and commits while the broker restarts."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        super().__init__("reader", "poll() or commit()")
        self.records: list[ConsumerRecord] = []
        self._consumer = consumer
        self._topic = topic

    def await_records(self, count: int) -> None:
        """Return when it has read this many records in all."""

        def enough() -> bool:
            self.check()
            return len(self.records) >= count

        wait_until(enough, f"{count} records are read", 60)

    def found(self) -> list[ForeignRecord]:
        """Return everything it read, in the order of reading, with that order for an offset."""
        return [
            ForeignRecord(one.value, one.key, partition=one.partition, offset=number)
            for number, one in enumerate(self.records)
        ]

    def run(self) -> None:
        self._consumer.subscribe(self._topic)
        while not self.stopping.is_set():
            records = list(self._consumer.poll(0.2))
            self.records += records
            if records:
                self._consumer.commit()


def live_through(
    clients: Clients, topic: str, bounces: Sequence[Bounce], *, in_flight: int = 5
) -> None:
    """Produce and consume while a broker goes away and comes back, and check all that was done."""
    producer = clients.producer(
        acks="all",
        linger_ms=1,
        batch_size=1_000,
        max_in_flight_requests_per_connection=in_flight,
    )
    consumer = clients.consumer(GROUP)
    with Reader(consumer, topic) as reader:
        with Load(producer, topic) as load:
            for bounce in bounces:
                load.await_more(BETWEEN)
                reader.await_records(1)
                bounce()
                reader.await_records(len(reader.records) + BETWEEN // 2)
            load.await_more(BETWEEN)
            sent = load.finish()
        reader.await_records(len(sent))
    check_intact(sent, reader.found())
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    ends = clients.consumer().end_offsets(places)
    assert sum(ends.values()) == len(sent)
    committed = clients.admin().list_consumer_group_offsets(GROUP)
    assert {one: at.offset for one, at in committed.items()} == ends
    # Other clients read the records at the reported offsets.
    stored = FOREIGN_CLIENTS["confluent-kafka"](clients.bootstrap).read_all(topic)
    check_intact(sent, stored)
    reported = sorted(load.placed)
    assert reported == sorted((one.partition, one.offset, one.value) for one in stored)
    check_next_member(clients, topic, consumer)


def check_next_member(clients: Clients, topic: str, before: Consumer) -> None:
    """Check that the next member starts behind all records that were read."""
    before.close()
    after = clients.consumer(GROUP)
    after.subscribe(topic)
    clients.producer().send(topic, b"next", partition=0).result(20)
    assert [one.value for one in read(after, 1)] == [b"next"]


@pytest.mark.fault("W3")
@pytest.mark.parametrize("version", chosen_versions())
def test_records_survive_crashes_of_kafka(start_cluster: StartCluster, version: str) -> None:
    cluster = start_cluster(version=version)
    node = cluster.nodes[0]

    def crash() -> None:
        node.kill()
        node.start()

    with Clients(cluster.bootstrap()) as clients:
        live_through(clients, clients.topic(partitions=PARTITIONS), [crash])


@pytest.mark.campaign
@pytest.mark.fault("W3")
@pytest.mark.parametrize("version", chosen_versions())
def test_records_survive_restarts_of_kafka(start_cluster: StartCluster, version: str) -> None:
    """With one request in flight, because Kafka stores one batch per producer at shutdown."""
    cluster = start_cluster(version=version)
    with Clients(cluster.bootstrap()) as clients:
        topic = clients.topic(partitions=PARTITIONS)
        live_through(clients, topic, [cluster.nodes[0].restart], in_flight=1)


@pytest.mark.campaign
@pytest.mark.fault("W3", "R13")
def test_records_survive_crashes_of_the_companion_broker(tmp_path: Path) -> None:
    brokers = [BrokerProcess(tmp_path)]
    address = brokers[0].bootstrap

    def crash() -> None:
        brokers[-1].kill()
        brokers.append(BrokerProcess(tmp_path, listen=address))

    try:
        with Clients(address) as clients:
            topic = clients.topic(partitions=PARTITIONS)
            live_through(clients, topic, [crash] * CRASHES)
        assert brokers[-1].stop() == 0
    finally:
        for broker in brokers:
            broker.__exit__(None, None, None)
