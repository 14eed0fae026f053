"""Transactions of other clients and of Kafka's tools on the companion broker."""

from collections.abc import Callable, Iterator
from typing import Literal

import confluent_kafka
import kafka
import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import chosen_versions
from integration.harness.kafka_tools import KafkaTools
from integration.harness.transactional_clients import COMMITTED, PRODUCERS, RECORDS
from kclient import AdminClient, Consumer
from kclient.admin.new_topic import NewTopic
from kclient.broker.coordinator.runtime.partition_log import partition_for
from kclient.common.types import TopicPartition
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until

Isolation = Literal["read_committed", "read_uncommitted"]


@pytest.fixture(params=[1, 3], ids=["one", "three"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(request.param) as running:
        with AdminClient(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 3)]).raise_for_errors()
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


@pytest.mark.parametrize("produce", PRODUCERS.values(), ids=PRODUCERS)
def test_committed_readers_see_the_committed_transactions_alone(
    cluster: EmbeddedCluster, produce: Callable[[str, str], None]
) -> None:
    produce(cluster.bootstrap_servers, "t")
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


def opened(bootstrap: str, **settings: object) -> confluent_kafka.Producer:
    """Return the producer of an open transaction, with a record in each partition."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "x", **settings}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    for number in range(3):
        producer.produce("t", b"%d" % number, partition=number)
    producer.flush(20)
    return producer


def test_transaction_is_committed_at_the_next_coordinator() -> None:
    with EmbeddedCluster(3) as cluster:
        bootstrap = cluster.bootstrap_servers
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic("t", 3)]).raise_for_errors()
        producer = opened(bootstrap)
        partition = partition_for("x", 4)
        coordinator = cluster.leader_of("__transaction_state", partition)
        assert coordinator is not None
        cluster.kill(coordinator)
        producer.commit_transaction(30)
        assert cluster.leader_of("__transaction_state", partition) != coordinator
        assert read(bootstrap) == [b"0", b"1", b"2"]


def test_transaction_that_lasts_too_long_does_not_block_readers() -> None:
    settings = {
        "num.partitions": 3,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    }
    with EmbeddedCluster(config=settings) as cluster:
        bootstrap = cluster.bootstrap_servers
        producer = opened(bootstrap, **{"transaction.timeout.ms": 1000})
        other = kafka.KafkaProducer(bootstrap_servers=bootstrap)
        other.send("t", b"plain", partition=1).get(10)
        assert read(bootstrap) == []
        with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
            partition = TopicPartition("t", 1)
            wait_until(lambda: consumer.end_offsets([partition])[partition] == 3, "the abort")
        assert read(bootstrap) == [b"plain"]
        with pytest.raises(confluent_kafka.KafkaException) as caught:
            producer.commit_transaction(20)
        assert caught.value.args[0].fatal()


def test_copied_records_are_in_the_output_once(cluster: EmbeddedCluster) -> None:
    """Every third transaction is aborted, and its records are read again."""
    bootstrap = cluster.bootstrap_servers
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("input", 2)]).raise_for_errors()
    source = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(200):
        source.send("input", b"%d" % number, partition=number % 2)
    source.flush(20)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "copier",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["input"])
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "c"})
    producer.init_transactions(20)
    turn = copied = 0
    while copied < 200:
        records = consumer.consume(20, 1.0)
        if not records:
            continue
        turn += 1
        producer.begin_transaction()
        for record in records:
            producer.produce("t", record.value())
        positions = consumer.position(consumer.assignment())
        read_positions = [each for each in positions if each.offset >= 0]
        producer.send_offsets_to_transaction(read_positions, consumer.consumer_group_metadata(), 20)
        if turn % 3:
            producer.commit_transaction(20)
            copied += len(records)
        else:
            producer.abort_transaction(20)
            for each in consumer.committed(consumer.assignment(), 20):
                consumer.seek(
                    confluent_kafka.TopicPartition(each.topic, each.partition, max(0, each.offset))
                )
    consumer.close()
    assert read(bootstrap) == sorted(b"%d" % number for number in range(200))


@pytest.fixture(params=chosen_versions())
def java(
    request: pytest.FixtureRequest, cluster: EmbeddedCluster, tools_for: ToolsFor
) -> KafkaTools:
    return tools_for(cluster.bootstrap_servers, None, request.param)


def test_java_producer_commits_transactions(
    cluster: EmbeddedCluster, java: KafkaTools, request: pytest.FixtureRequest
) -> None:
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
    coordinator = cluster.leader_of("__transaction_state", partition_for("java", 4))
    assert coordinator is not None
    found = cluster.brokers[coordinator].services.transactions.describe("java")
    # From Kafka 4.0 on the producer follows transaction.version 2: each end raises the epoch.
    is_second_version = str(request.node.callspec.params["java"]).startswith("4.")
    assert (found.client_version, found.producer_epoch > 1) == (
        (2, True) if is_second_version else (0, False)
    )


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
