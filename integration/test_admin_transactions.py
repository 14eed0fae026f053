"""AdminClient's methods for transactions, against Apache Kafka and its tool."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition, aio
from kclient.admin import TransactionState
from kclient.admin.transaction_types import HangingTransaction, TransactionListing
from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidRegularExpressionError,
    TransactionalIdNotFoundError,
)
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.support.checks.document_blocks import all_blocks
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire
from tests.support.disks.log_bench import make_batch
from tests.support.processes.child_process import ROOT, script

WAIT = 30
HOUR_MS = 3_600_000
_numbers = count(1)


@pytest.fixture(scope="module")
def cluster(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    # Otherwise the leader refuses a batch of a transaction that no coordinator has.
    options = ClusterOptions(properties={"transaction.partition.verification.enable": "false"})
    directory = tmp_path_factory.mktemp("transactions-")
    with KafkaCluster(runtimes(NEWEST), directory, options) as running:
        yield running


@pytest.fixture
def admin(cluster: KafkaCluster) -> Iterator[AdminClient]:
    with AdminClient(bootstrap_servers=cluster.bootstrap()) as client:
        yield client


@pytest.fixture
def java(cluster: KafkaCluster, tools_for: ToolsFor) -> KafkaTools:
    return tools_for(cluster.bootstrap())


@pytest.fixture
def topic(admin: AdminClient) -> str:
    name = f"transactions-{next(_numbers)}"
    admin.create_topics(NewTopic(name, 2, 1))
    return name


def open_transaction(cluster: KafkaCluster, name: str, topic: str, partitions: int) -> Any:
    """Return a producer with an open transaction in these partitions of a topic."""
    options = {"bootstrap.servers": cluster.bootstrap(), "transactional.id": name}
    producer = confluent_kafka.Producer(options | {"log_level": 0})
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    for partition in range(partitions):
        producer.produce(topic, b"open", partition=partition)
    assert producer.flush(WAIT) == 0
    return producer


@pytest.fixture
def writer(cluster: KafkaCluster, topic: str) -> Any:
    """A transactional producer with an open transaction in both partitions of the topic."""
    return open_transaction(cluster, f"id-{topic}", topic, partitions=2)


def test_open_transaction_is_described_as_by_the_tool(
    admin: AdminClient, java: KafkaTools, topic: str, writer: Any
) -> None:
    name = f"id-{topic}"
    described = admin.describe_transactions(name)[name]
    assert described.state is TransactionState.ONGOING
    assert described.transaction_timeout_ms == 60_000
    assert described.topic_partitions == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    (row,) = java.transactions("describe", "--transactional-id", name)
    assert {
        "CoordinatorId": str(described.coordinator.id),
        "ProducerId": str(described.producer_id),
        "ProducerEpoch": str(described.producer_epoch),
        "TransactionState": described.state,
        "TransactionTimeoutMs": str(described.transaction_timeout_ms),
        "CurrentTransactionStartTimeMs": str(described.transaction_start_time_ms),
    }.items() <= row.items()
    listing = TransactionListing(name, described.producer_id, described.state)
    assert admin.list_transactions(producer_ids=described.producer_id) == [listing]
    assert sorted(
        (each.transactional_id, str(each.producer_id), each.state)
        for each in admin.list_transactions()
    ) == sorted(
        (row["TransactionalId"], row["ProducerId"], row["TransactionState"])
        for row in java.transactions("list")
    )
    _check_producers(admin, java, TopicPartition(topic, 1))
    writer.abort_transaction(WAIT)
    with pytest.raises(TransactionalIdNotFoundError, match="transactional id 'missing'"):
        admin.describe_transactions("missing")


def _check_producers(admin: AdminClient, java: KafkaTools, partition: TopicPartition) -> None:
    (state,) = admin.describe_producers(partition)[partition]
    where = ("--topic", partition.topic, "--partition", str(partition.partition))
    (row,) = java.transactions("describe-producers", *where)
    assert {
        "ProducerId": str(state.producer_id),
        "ProducerEpoch": str(state.producer_epoch),
        "LastSequence": str(state.last_sequence),
        "LastTimestamp": str(state.last_timestamp),
        "CurrentTransactionStartOffset": str(state.current_transaction_start_offset),
    }.items() <= row.items()


def test_filters_of_the_list(admin: AdminClient, topic: str, writer: Any) -> None:
    def listed(**filters: Any) -> list[str]:
        return [each.transactional_id for each in admin.list_transactions(**filters)]

    name = f"id-{topic}"
    assert name in listed(states=TransactionState.ONGOING)
    assert name not in listed(states=["CompleteAbort", "PrepareEpochFence"])
    assert listed(transactional_id_pattern=f"{name}|x") == [name]
    assert listed(transactional_id_pattern=name[1:]) == []
    assert listed(duration_ms=HOUR_MS) == []
    wait_until(lambda: name in listed(duration_ms=1), "the transaction is older than 1 ms", WAIT)
    with pytest.raises(InvalidRegularExpressionError):
        admin.list_transactions(transactional_id_pattern="(")
    writer.abort_transaction(WAIT)


@pytest.mark.parametrize("call", ["fence_producers", "force_terminate_transaction"])
def test_fenced_producer_cannot_commit(
    admin: AdminClient, topic: str, writer: Any, call: str
) -> None:
    name = f"id-{topic}"
    before = admin.describe_transactions(name)[name]
    getattr(admin, call)(name)
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        writer.commit_transaction(WAIT)
    assert caught.value.args[0].name() == "_FENCED"
    after = admin.describe_transactions(name)[name]
    assert after.state in {TransactionState.EMPTY, TransactionState.COMPLETE_ABORT}
    assert (after.producer_id, after.topic_partitions) == (before.producer_id, frozenset())
    assert after.producer_epoch > before.producer_epoch
    partition = TopicPartition(topic, 0)
    (state,) = admin.describe_producers(partition)[partition]
    assert state.current_transaction_start_offset is None


def hang(cluster: KafkaCluster, partition: TopicPartition, producer_id: int, epoch: int) -> None:
    """Open a transaction in a partition, as of an hour ago, without its coordinator."""
    hour_ago_ms = int(time.time() * 1000) - HOUR_MS
    producer = (producer_id, epoch, 0)
    batch = make_batch(producer=producer, transactional=True, first_timestamp=hour_ago_ms)
    part = PartitionProduceData(index=partition.partition, records=bytes(batch))
    topic = TopicProduceData(name=partition.topic, partition_data=[part])
    request = ProduceRequest(transactional_id="none", acks=-1, timeout_ms=5_000, topic_data=[topic])
    with Wire(cluster.bootstrap()) as wire:
        response = wire.ask(request, 9, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0


def new_producer_id(cluster: KafkaCluster) -> int:
    """Return a producer id that no transactional id has."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    with Wire(cluster.bootstrap()) as wire:
        return wire.ask(request, 4, InitProducerIdResponse).producer_id


def is_committed(admin: AdminClient, name: str) -> bool:
    return admin.describe_transactions(name)[name].state is TransactionState.COMPLETE_COMMIT


def test_hanging_transaction_is_found_and_aborted(
    cluster: KafkaCluster, admin: AdminClient, java: KafkaTools, topic: str, writer: Any
) -> None:
    blocked = TopicPartition(topic, 1)
    writer.commit_transaction(WAIT)
    wait_until(  # The commit responds before its markers are written.
        lambda: is_committed(admin, f"id-{topic}"), "the markers are in the log", WAIT
    )
    producer_id = new_producer_id(cluster)
    hang(cluster, blocked, producer_id, 3)
    with Producer(bootstrap_servers=cluster.bootstrap()) as producer:
        end = producer.send(topic, b"later", partition=1).result(WAIT).offset
    with Consumer(
        bootstrap_servers=cluster.bootstrap(),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([blocked])
        assert consumer.end_offsets([blocked])[blocked] == end - 1  # the last stable offset
        (found,) = admin.find_hanging_transactions(topics=topic)
        assert (found.partition, found.producer.producer_id) == (blocked, producer_id)
        assert found.producer.current_transaction_start_offset == end - 1
        (row,) = java.transactions("find-hanging", "--topic", topic)
        assert (row["Partition"], row["ProducerId"]) == ("1", str(producer_id))
        with pytest.raises(InvalidProducerEpochError, match=f"in partition {blocked}"):
            admin.abort_transaction(blocked, producer_id, 2, found.producer.coordinator_epoch)
        admin.abort_transaction(blocked, producer_id, 3, found.producer.coordinator_epoch)
        values: list[bytes | None] = []
        while len(values) < 2:
            values += [record.value for record in consumer.poll(WAIT)]
    assert values == [b"open", b"later"]
    assert admin.find_hanging_transactions(topics=topic) == []
    assert java.transactions("find-hanging", "--topic", topic) == []


def test_partition_that_is_not_in_the_transaction_hangs(
    cluster: KafkaCluster, admin: AdminClient, java: KafkaTools, topic: str, writer: Any
) -> None:
    name = f"id-{topic}"
    described = admin.describe_transactions(name)[name]
    admin.create_topics(NewTopic(f"{topic}-other", 1, 1))
    lost = TopicPartition(f"{topic}-other", 0)
    hang(cluster, lost, described.producer_id, described.producer_epoch)
    found = admin.find_hanging_transactions(topics=[topic, lost.topic])
    assert [each.partition for each in found] == [lost]
    assert found == admin.find_hanging_transactions(broker_ids=1)
    assert found == asyncio.run(found_by_coroutine(cluster))
    (row,) = java.transactions("find-hanging", "--broker-id", "1")
    assert (row["Topic"], row["Partition"]) == (lost.topic, "0")
    young = admin.find_hanging_transactions(topics=topic, max_transaction_timeout_ms=0)
    assert young == []  # the coordinator will end it
    writer.commit_transaction(WAIT)


async def found_by_coroutine(cluster: KafkaCluster) -> list[HangingTransaction]:
    async with aio.AdminClient(bootstrap_servers=cluster.bootstrap()) as admin:
        return await admin.find_hanging_transactions()


def test_page(cluster: KafkaCluster, admin: AdminClient, tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "hanging-transactions.md"
    admin.create_topics([NewTopic("orders", 2, 1), NewTopic("bills", 1, 1)]).raise_for_errors()
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    with Wire(cluster.bootstrap()) as wire:
        assert wire.produce("orders", bytes(make_batch(42))).error_code == 0
    producer_id = new_producer_id(cluster)
    for partition in (first, second):
        hang(cluster, partition, producer_id, 3)
    payments = open_transaction(cluster, "payments", "bills", partitions=1)
    finding, aborting, ending = all_blocks(page, "sh")
    found = shell(cluster, tmp_path, finding)
    assert f"orders-0  producer {producer_id}  epoch 3  coordinator epoch -  start" in found
    assert f'{{"topic": "orders", "partition": 1, "producer_id": {producer_id}, ' in found
    aborted = f"aborted the transaction of producer {producer_id} in orders-0\n"
    assert shell(cluster, tmp_path, aborting) == aborted
    ended = shell(cluster, tmp_path, ending)
    assert ended.startswith("payments  state Ongoing  producer ")
    assert ended.endswith("\n  bills-0\nterminated the transaction of payments\n")
    with pytest.raises(confluent_kafka.KafkaException):
        payments.commit_transaction(WAIT)
    (code,) = all_blocks(page, "python")
    with script(tmp_path, code.replace("localhost:9092", cluster.bootstrap())) as process:
        process.finish()
        assert process.stdout == "orders-1 0\n"
    assert admin.find_hanging_transactions(topics="orders") == []


def shell(cluster: KafkaCluster, directory: Path, block: str) -> str:
    """Run a block of commands; return their output."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": programs, "KCLIENT_BOOTSTRAP_SERVERS": cluster.bootstrap()}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        check=False,
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
