"""Transactions of other clients and of Kafka's tools on the companion broker."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Literal

import aiokafka
import confluent_kafka
import kafka
import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import chosen_versions
from integration.harness.kafka_tools import KafkaTools
from kclient import AdminClient, Consumer
from kclient.common.types import NewTopic
from kclient.testing import EmbeddedCluster

Isolation = Literal["read_committed", "read_uncommitted"]

ROUNDS = 6
"""Every other transaction is committed."""
RECORDS = [b"%d-%d" % (turn, number) for turn in range(ROUNDS) for number in range(5)]
COMMITTED = sorted(value for value in RECORDS if int(value.split(b"-")[0]) % 2 == 0)


@pytest.fixture(params=[1, 3], ids=["one", "three"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(request.param) as running:
        with AdminClient(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 3)])
        yield running


def read(bootstrap: str, isolation: Isolation = "read_committed") -> list[bytes]:
    """Return the values in all partitions up to their ends, sorted."""
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=f"g-{isolation}",
        auto_offset_reset="earliest",
        isolation_level=isolation,
    ) as consumer:
        consumer.subscribe("t")
        values: list[bytes] = []
        while True:
            values += [record.value or b"" for record in consumer.poll(0.2)]
            assigned = consumer.assignment()
            ends = consumer.end_offsets(assigned)
            if assigned and all(consumer.position(each) >= ends[each] for each in assigned):
                return sorted(values)


def with_confluent(bootstrap: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "confluent"}
    )
    producer.init_transactions(20)
    for turn in range(ROUNDS):
        producer.begin_transaction()
        for number in range(5):
            producer.produce("t", b"%d-%d" % (turn, number), partition=number % 3)
        producer.flush(20)
        if turn % 2:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)


def with_kafka_python(bootstrap: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id="kafka-python")
    producer.init_transactions()
    for turn in range(ROUNDS):
        producer.begin_transaction()
        for number in range(5):
            producer.send("t", b"%d-%d" % (turn, number), partition=number % 3)
        producer.flush(20)
        if turn % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def with_aiokafka(bootstrap: str) -> None:
    async def produce() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id="aiokafka"
        ) as producer:
            for turn in range(ROUNDS):
                await producer.begin_transaction()
                for number in range(5):
                    await producer.send_and_wait(
                        "t", b"%d-%d" % (turn, number), partition=number % 3
                    )
                if turn % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    asyncio.run(produce())


CLIENTS = {
    "aiokafka": with_aiokafka,
    "confluent-kafka": with_confluent,
    "kafka-python": with_kafka_python,
}


@pytest.mark.parametrize("produce", CLIENTS.values(), ids=CLIENTS)
def test_committed_readers_see_the_committed_transactions_alone(
    cluster: EmbeddedCluster, produce: Callable[[str], None]
) -> None:
    produce(cluster.bootstrap_servers)
    assert read(cluster.bootstrap_servers) == COMMITTED
    assert read(cluster.bootstrap_servers, "read_uncommitted") == sorted(RECORDS)


def test_second_producer_aborts_and_fences_the_first(cluster: EmbeddedCluster) -> None:
    bootstrap = cluster.bootstrap_servers
    settings = {"bootstrap.servers": bootstrap, "transactional.id": "x"}
    first = confluent_kafka.Producer(settings)
    first.init_transactions(20)
    first.begin_transaction()
    first.produce("t", b"open")
    first.flush(20)
    second = confluent_kafka.Producer(settings)
    second.init_transactions(20)
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        first.commit_transaction(20)
    assert caught.value.args[0].fatal()
    second.begin_transaction()
    second.produce("t", b"next")
    second.commit_transaction(20)
    assert read(bootstrap) == [b"next"]


@pytest.fixture(params=chosen_versions())
def java(
    request: pytest.FixtureRequest, cluster: EmbeddedCluster, tools_for: ToolsFor
) -> KafkaTools:
    return tools_for(cluster.bootstrap_servers, None, request.param)


def test_java_producer_commits_transactions(cluster: EmbeddedCluster, java: KafkaTools) -> None:
    java.run(
        "org.apache.kafka.tools.ProducerPerformance",
        [
            *("--topic", "t", "--num-records", "2000", "--record-size", "20"),
            *("--throughput", "4000", "--transactional-id", "java"),
            *("--transaction-duration-ms", "50"),
            *("--producer-props", f"bootstrap.servers={cluster.bootstrap_servers}"),
        ],
    )
    assert len(read(cluster.bootstrap_servers)) == 2000


def test_kafka_transactions_shows_an_open_transaction(
    cluster: EmbeddedCluster, java: KafkaTools
) -> None:
    bootstrap = cluster.bootstrap_servers
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("t", b"open", partition=1)
    producer.flush(20)

    def shown(*arguments: str) -> list[list[str]]:
        tool = "org.apache.kafka.tools.TransactionsCommand"
        output = java.run(tool, ["--bootstrap-server", bootstrap, *arguments]).stdout.decode()
        return [line.split() for line in output.splitlines()]

    header, row = shown("list")
    listed = dict(zip(header, row, strict=True))
    assert (listed["TransactionalId"], listed["TransactionState"]) == ("x", "Ongoing")
    header, row = shown("describe", "--transactional-id", "x")
    described = dict(zip(header, row, strict=True))
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", "t-1")
    assert described["ProducerId"] == listed["ProducerId"]
    producer.abort_transaction(20)
    _header, row = shown("list")
    assert row[-1] == "CompleteAbort"
