"""Transactions of the producer on Apache Kafka, with both versions of their protocol."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import confluent_kafka
import pytest

from integration.conftest import StartCluster, ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient import AdminClient, Consumer, Producer, TopicPartition, aio
from kclient.consumer import ConsumerGroupMetadata
from kclient.errors import (
    CommitFailedError,
    FatalError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from tests.support.checks.waiting import wait_until

TIMEOUT_S = 30.0
VERSIONS = {"4.3.1": 2, "3.9.2": 1}


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(
    request: pytest.FixtureRequest,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningKafka]:
    version: str = request.param
    directory = tmp_path_factory.mktemp(f"transactions-{version}-")
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    options = ClusterOptions(properties={interval: "100"})
    with KafkaCluster(runtimes(version), directory, options) as started:
        yield RunningKafka(version, started.bootstrap(), started)


def producer(cluster: RunningKafka, name: str, **options: object) -> Producer[bytes, bytes]:
    given = {"bootstrap.servers": cluster.bootstrap, "transactional.id": name}
    made: Producer[bytes, bytes] = Producer(given | options)
    made.init_transactions(TIMEOUT_S)
    return made


def values(cluster: RunningKafka, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Returns the values of a topic up to its present end, by partition and offset."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        described = admin.describe_topics([topic])[topic]
    partitions = [TopicPartition(topic, info.partition) for info in described.partitions]
    with Consumer(
        {"bootstrap.servers": cluster.bootstrap, "isolation.level": isolation}
    ) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        found: list[tuple[int, int, bytes]] = []

        def is_read() -> bool:
            found.extend(
                (each.partition, each.offset, bytes(each.value or b""))
                for each in consumer.poll(0.2)
            )
            return all(consumer.position(each) >= ends[each] for each in partitions)

        wait_until(is_read, f"{topic} is read to its end", TIMEOUT_S)
    return [value for _, _, value in sorted(found)]


def values_of_confluent(cluster: RunningKafka, topic: str, count: int) -> list[bytes]:
    """Returns the first committed values of a topic, as another client reads them."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"{topic}-confluent",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        return [
            message.value() or b""
            for message in consumer.consume(count, TIMEOUT_S)
            if not message.error()
        ]
    finally:
        consumer.close()


def test_records_appear_with_the_commit_alone(cluster: RunningKafka) -> None:
    first, second = cluster.create_topic(2), cluster.create_topic()
    with producer(cluster, first) as writer:
        for number in range(9):
            writer.begin_transaction()
            for topic, partition in ((first, 0), (first, 1), (second, 0)):
                writer.send(topic, b"%d" % number, partition=partition)
            if number % 3:
                writer.commit_transaction()
            else:
                aborted = writer.send(first, b"queued", partition=0)
                writer.abort_transaction()
                assert isinstance(aborted.exception(TIMEOUT_S), TransactionAbortedError)
        committed = [b"%d" % number for number in range(9) if number % 3]
        assert values(cluster, second) == committed
        assert values(cluster, first) == committed * 2
        writer.begin_transaction()
        open_record = writer.send(second, b"open")
        open_record.result(TIMEOUT_S)
        assert values(cluster, second) == committed
        assert values(cluster, second, "read_uncommitted")[-1] == b"open"
        writer.commit_transaction()
    assert values(cluster, second) == [*committed, b"open"]
    assert values_of_confluent(cluster, second, 7) == [*committed, b"open"]


def test_block_commits_and_an_exception_aborts(cluster: RunningKafka) -> None:
    topic = cluster.create_topic(configs={"max.message.bytes": "1000"})
    with producer(cluster, topic) as writer:
        with writer.transaction():
            writer.send_many(topic, [b"a", b"b"])
        with pytest.raises(ZeroDivisionError), writer.transaction():
            1 // (writer.send(topic, b"lost").result(TIMEOUT_S).partition)
        with pytest.raises(TransactionAbortableError) as caught, writer.transaction():
            writer.send(topic, b"x" * 10_000)
        with writer.transaction():
            writer.send(topic, b"c")
    assert isinstance(caught.value.__cause__, RecordTooLargeError)
    assert values(cluster, topic) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("step", ["send", "commit", "offsets"])
def test_earlier_producer_is_fenced(cluster: RunningKafka, step: str) -> None:
    topic = cluster.create_topic()
    first = producer(cluster, topic)
    first.begin_transaction()
    first.send(topic, b"of the first").result(TIMEOUT_S)
    with producer(cluster, topic) as second:
        with pytest.raises((ProducerFencedError, TransactionAbortableError)):
            use(first, topic, step)
        with second.transaction():
            second.send(topic, b"of the second")
    with pytest.raises(FatalError):
        first.abort_transaction()
    first.close(5)
    assert values(cluster, topic) == [b"of the second"]


def use(writer: Producer[bytes, bytes], topic: str, step: str) -> None:
    match step:
        case "send":
            writer.send(topic, b"late")
            writer.commit_transaction()
        case "commit":
            writer.commit_transaction()
        case _:
            group = ConsumerGroupMetadata(f"{topic}-group")
            writer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, group)


def test_transaction_that_is_open_for_too_long_is_aborted(cluster: RunningKafka) -> None:
    topic = cluster.create_topic()
    with producer(cluster, topic, transaction_timeout_ms=1_000) as writer:
        writer.begin_transaction()
        writer.send(topic, b"expired").result(TIMEOUT_S)
        wait_until(
            lambda: values(cluster, topic) == [] and has_ended(cluster, topic),
            "the coordinator has aborted the transaction",
            TIMEOUT_S,
        )
        with pytest.raises((TransactionAbortableError, FatalError)):
            use(writer, topic, "send")
        if VERSIONS[cluster.version] == 2:
            writer.abort_transaction()
            with writer.transaction():
                writer.send(topic, b"next")
            assert values(cluster, topic) == [b"next"]
        else:
            with pytest.raises(ProducerFencedError):
                writer.abort_transaction()
            assert values(cluster, topic) == []


def has_ended(cluster: RunningKafka, topic: str) -> bool:
    """Returns whether no transaction is open in a topic."""
    partitions = [TopicPartition(topic, 0)]
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        with Consumer(
            {"bootstrap.servers": cluster.bootstrap, "isolation.level": isolation}
        ) as consumer:
            ends.append(consumer.end_offsets(partitions))
    return ends[0] == ends[1]


def test_copy_commits_offsets_with_the_results(cluster: RunningKafka) -> None:
    source, target = cluster.create_topic(3), cluster.create_topic(2)
    expected = sorted(b"%03d" % number for number in range(300))
    with Producer(bootstrap_servers=cluster.bootstrap) as seeds:
        seeds.send_many(source, expected).result(TIMEOUT_S)
    copied = 0
    with (
        producer(cluster, target) as writer,
        Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=f"{source}-copy",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_poll_records=20,
        ) as reader,
    ):
        reader.subscribe([source])
        rounds = 0
        while copied < len(expected):
            records = reader.poll(TIMEOUT_S)
            if not records:
                continue
            rounds += 1
            writer.begin_transaction()
            offsets: dict[TopicPartition, int] = {}
            for each in records:
                writer.send(target, each.value)
                offsets[TopicPartition(source, each.partition)] = each.offset + 1
            writer.send_offsets_to_transaction(offsets, reader.group_metadata())
            if rounds % 3 == 0:
                writer.abort_transaction()
                for partition, committed in reader.committed(reader.assignment()).items():
                    reader.seek(partition, 0 if committed is None else committed.offset)
                continue
            writer.commit_transaction()
            copied += len(records)
    assert rounds >= 10
    assert sorted(values(cluster, target)) == expected
    assert len(values(cluster, target, "read_uncommitted")) > len(expected)


def test_offsets_of_a_group_that_has_rebalanced_are_refused(cluster: RunningKafka) -> None:
    topic = cluster.create_topic()
    with Producer(bootstrap_servers=cluster.bootstrap) as seeds:
        seeds.send(topic, b"x").result(TIMEOUT_S)
    with (
        producer(cluster, topic) as writer,
        Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=f"{topic}-group",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as reader,
    ):
        reader.subscribe([topic])
        wait_until(lambda: len(reader.poll(0.2)) > 0, "the group has its partition", TIMEOUT_S)
        stale = reader.group_metadata()._replace(generation_id=0)
        writer.begin_transaction()
        with pytest.raises(CommitFailedError):
            writer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stale)
        with pytest.raises(TransactionAbortableError):
            writer.commit_transaction()
        writer.abort_transaction()
        writer.begin_transaction()
        writer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, reader.group_metadata())
        writer.commit_transaction()
        (committed,) = reader.committed([TopicPartition(topic, 0)]).values()
        assert committed is not None
        assert committed.offset == 1


def test_calls_continue_after_the_coordinator_was_away(cluster: RunningKafka) -> None:
    topic = cluster.create_topic()
    assert cluster.cluster is not None
    (node,) = cluster.cluster.nodes
    with producer(cluster, topic) as writer:
        writer.begin_transaction()
        writer.send(topic, b"x").result(TIMEOUT_S)
        node.suspend()
        with pytest.raises(KafkaTimeoutError, match="call commit_transaction\\(\\) again"):
            writer.commit_transaction(0.5)
        node.resume()
        writer.commit_transaction(TIMEOUT_S)
    assert values(cluster, topic) == [b"x"]


def test_close_aborts_the_transaction(cluster: RunningKafka) -> None:
    topic = cluster.create_topic()
    with producer(cluster, topic) as writer:
        writer.begin_transaction()
        writer.send(topic, b"x").result(TIMEOUT_S)
    assert has_ended(cluster, topic)
    assert values(cluster, topic) == []


def test_asyncio_producer_writes_transactions(cluster: RunningKafka) -> None:
    topic = cluster.create_topic()

    async def cancelled(writer: "aio.Producer[bytes, bytes]") -> None:
        async with writer.transaction():
            await writer.send_and_wait(topic, b"cancelled")
            await asyncio.Event().wait()

    async def failing(writer: "aio.Producer[bytes, bytes]") -> None:
        async with writer.transaction():
            metadata = await writer.send_and_wait(topic, b"lost")
            1 // metadata.partition

    async def test() -> None:
        async with aio.Producer(
            bootstrap_servers=cluster.bootstrap, transactional_id=topic
        ) as writer:
            await writer.init_transactions(TIMEOUT_S)
            async with writer.transaction():
                await writer.send(topic, b"a")
            with pytest.raises(ZeroDivisionError):
                await failing(writer)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(cancelled(writer), 0.5)
            async with writer.transaction():
                await writer.send(topic, b"b")

    asyncio.run(test())
    assert values(cluster, topic) == [b"a", b"b"]


def test_producer_follows_the_transaction_version_up_and_down(
    start_cluster: StartCluster, tools_for: ToolsFor, caplog: pytest.LogCaptureFixture
) -> None:
    """The level is known from a connection's start on: brokers report it nowhere else.

    Level 0 is not set again: Kafka 4.3.1 then cannot write the record of an id that was used at
    level 2, and responds UNSUPPORTED_VERSION to any client.
    """
    level_0 = ["--feature", "transaction.version=0"]
    started = start_cluster(ClusterOptions(format_options=level_0))
    cluster = RunningKafka(NEWEST, started.bootstrap(), started)
    tools = tools_for(cluster.bootstrap)
    topic = cluster.create_topic()
    caplog.set_level("DEBUG", "kclient.client.node_connections")
    written: list[bytes] = []
    with (
        producer(cluster, topic) as writer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        description = partial(admin.describe_transactions, topic)

        def write_transactions() -> tuple[list[int], bool]:
            """Returns how much each of 4 raised the epoch, and whether one was requested."""
            caplog.clear()
            epochs = [description()[topic].producer_epoch]
            for number in range(4):
                value = b"%d" % len(written)
                writer.begin_transaction()
                writer.send(topic, value).result(TIMEOUT_S)
                if number == 2:
                    writer.abort_transaction()
                else:
                    writer.commit_transaction(TIMEOUT_S)
                    written.append(value)
                epochs.append(description()[topic].producer_epoch)
            requested = "sending INIT_PRODUCER_ID request" in caplog.text
            return [after - before for before, after in pairwise(epochs)], requested

        version_1, version_2 = ([0, 0, 0, 0], False), ([1, 1, 1, 1], False)
        assert write_transactions() == version_1
        set_transaction_version(tools, "upgrade", 2)
        assert write_transactions() == version_1
        restart(started)
        # The first transaction ends as it began; one request after it raises the epoch.
        assert write_transactions() == ([1, 1, 1, 1], True)
        assert write_transactions() == version_2
        set_transaction_version(tools, "downgrade", 1)
        assert write_transactions() == version_2
        restart(started)
        assert write_transactions() == ([2, 0, 0, 0], True)
        assert write_transactions() == version_1
    assert values(cluster, topic) == written


def set_transaction_version(tools: KafkaTools, action: str, level: int) -> None:
    feature = f"transaction.version={level}"
    arguments = ["--bootstrap-server", tools.bootstrap, action, "--feature", feature]
    tools.run("org.apache.kafka.tools.FeatureCommand", arguments)


def restart(cluster: KafkaCluster) -> None:
    """Restarts the broker, which ends all connections."""
    (node,) = cluster.nodes
    node.stop()
    node.start()
