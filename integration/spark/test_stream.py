"""Streams from Apache Kafka to Apache Kafka; another client writes and reads the records."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ForeignPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient import TopicPartition
from kclient.spark import lag
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import COMMITTED, PLAIN, ForeignRecord, Sending

Topic = Callable[..., str]

EARLIEST = {"startingOffsets": "earliest"}
_TIMEOUT_S = 120


class Copying:
    """A query that copies a topic to another one, and continues from its checkpoint."""

    def __init__(
        self, spark: SparkSession, kafka: RunningKafka, foreign: ConfluentClient, checkpoint: Path
    ) -> None:
        self.source = kafka.create_topic(2)
        self.target = kafka.create_topic(3)
        self.checkpoint = checkpoint
        self._spark = spark
        self._bootstrap = kafka.bootstrap
        self._foreign = foreign
        self._running: StreamingQuery | None = None

    def start(
        self, options: Mapping[str, str], *, available_now: bool = False, **sink: str
    ) -> StreamingQuery:
        servers = {"kafka.bootstrap.servers": self._bootstrap}
        reader = self._spark.readStream.format("kclient").options(**servers)
        if "subscribePattern" not in options:
            reader.option("subscribe", self.source)
        frame = reader.options(includeHeaders="true", **options).load()
        writer = frame.select("key", "value", "headers").writeStream.format("kclient")
        writer = writer.options(**servers, topic=self.target, **sink)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        self._running = (
            writer.trigger(availableNow=True).start() if available_now else writer.start()
        )
        return self._running

    def run(self, options: Mapping[str, str], **sink: str) -> StreamingQuery:
        """Copy the existing records."""
        query = self.start(options, available_now=True, **sink)
        assert query.awaitTermination(_TIMEOUT_S)
        return query

    def fill(
        self, numbers: Iterable[int], partition: int, how: Sending = PLAIN, topic: str = ""
    ) -> None:
        """Write with the other client; a header contains the partition."""
        self._foreign.produce(
            topic or self.source,
            [
                ForeignRecord(
                    b"%d" % number,
                    b"key-%d" % number,
                    (("from", b"%d" % partition),),
                    -1,
                    partition,
                )
                for number in numbers
            ],
            how,
        )

    def copied(self) -> Counter[int]:
        """Return the values that the other client reads, after a check of keys and headers."""
        found = self._foreign.read_all(self.target, isolation=COMMITTED)
        for one in found:
            assert one.key == b"key-%d" % int(one.value or b"")
            assert [name for name, _ in one.headers] == ["from"]
        return Counter(int(one.value or b"") for one in found)

    def await_copied(self, numbers: Iterable[int]) -> None:
        """Wait until exactly these values are copied, once each."""
        expected = Counter(numbers)
        wait_until(lambda: self.copied() >= expected, "all records are copied", _TIMEOUT_S)
        assert self.copied() == expected

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()


@pytest.fixture
def copying(
    spark: SparkSession, kafka: RunningKafka, foreign: ConfluentClient, tmp_path: Path
) -> Iterator[Copying]:
    made = Copying(spark, kafka, foreign, tmp_path / "checkpoint")
    yield made
    made.stop()


def sizes(query: StreamingQuery) -> list[int]:
    """Return the number of rows of each micro-batch."""
    return [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]


def test_limited_stream_continues_from_its_checkpoint(
    copying: Copying, tools: KafkaTools, kafka: RunningKafka
) -> None:
    group = f"group-of-{copying.source}"
    options = {**EARLIEST, "maxOffsetsPerTrigger": "40", "groupId": group}
    for partition in (0, 1):
        copying.fill(range(partition * 50, partition * 50 + 50), partition)
    query = copying.run(options)
    assert sizes(query) == [40, 40, 20]
    assert copying.copied() == Counter(range(100))
    rows = tools.describe_group(group)
    assert [(row.current_offset, row.log_end_offset, row.lag) for row in rows] == [(50, 50, 0)] * 2
    assert lag(query).total == 0

    copying.fill(range(100, 130), 1)
    assert lag(query, {"bootstrap.servers": kafka.bootstrap}) == {
        TopicPartition(copying.source, 0): 0,
        TopicPartition(copying.source, 1): 30,
    }
    assert sizes(copying.run(options)) == [30]
    assert copying.copied() == Counter(range(130))


@pytest.mark.campaign
def test_new_partitions_are_read_by_a_running_stream(
    copying: Copying, foreign_admin: AdminClient
) -> None:
    copying.fill(range(20), 0)
    query = copying.start(EARLIEST)
    copying.await_copied(range(20))
    created = foreign_admin.create_partitions([NewPartitions(copying.source, 4)])
    created[copying.source].result(30)
    copying.fill(range(20, 40), 3)
    copying.fill(range(40, 50), 1)
    copying.await_copied(range(50))
    assert query.exception() is None


@pytest.mark.campaign
def test_new_topics_of_a_pattern_are_read_by_a_running_stream(
    copying: Copying, foreign_admin: AdminClient
) -> None:
    copying.fill(range(10), 0)
    copying.start({**EARLIEST, "subscribePattern": f"{copying.source}(-more)?"})
    copying.await_copied(range(10))
    more = f"{copying.source}-more"
    foreign_admin.create_topics([NewTopic(more, 1)], operation_timeout=30)[more].result(30)
    copying.fill(range(10, 20), 0, topic=more)
    copying.await_copied(range(20))


@pytest.mark.campaign
def test_records_sent_while_the_stream_is_down_are_read(copying: Copying) -> None:
    copying.fill(range(20), 0)
    copying.start({})
    written = copying.checkpoint / "commits" / "0"
    wait_until(written.exists, "the start is in the checkpoint", _TIMEOUT_S)
    copying.stop()
    copying.fill(range(20, 40), 0)
    copying.fill(range(40, 45), 1)
    copying.start({})
    copying.await_copied(range(20, 45))


@pytest.mark.campaign
def test_stream_reads_committed_transactions_only(copying: Copying) -> None:
    for first, commit in ((0, True), (30, False), (60, True)):
        how = Sending(transactional_id=f"{copying.source}-{first}", commit=commit)
        copying.fill(range(first, first + 30), 0, how)
    copying.run({**EARLIEST, "maxOffsetsPerTrigger": "20"})
    assert copying.copied() == Counter([*range(30), *range(60, 90)])


@pytest.mark.campaign
def test_data_loss_fails_the_stream_with_its_count(
    copying: Copying, foreign_admin: AdminClient
) -> None:
    copying.fill(range(30), 0)
    copying.run(EARLIEST)
    copying.fill(range(30, 60), 0)
    removed = foreign_admin.delete_records([ForeignPartition(copying.source, 0, 47)])
    for done in removed.values():
        done.result(30)
    with pytest.raises(PySparkException) as caught:
        copying.run(EARLIEST)
    assert "DataLossError" in str(caught.value)
    assert "17 offsets lost" in str(caught.value)
    copying.run({**EARLIEST, "failOnDataLoss": "false"})
    assert copying.copied() == Counter([*range(30), *range(47, 60)])


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_repeated_micro_batch_is_committed_once(copying: Copying, delivery: str) -> None:
    copying.fill(range(30), 0)
    copying.run(EARLIEST, delivery=delivery)
    _, last = max((int(one.name), one) for one in copying.checkpoint.glob("commits/[0-9]*"))
    for one in (last, last.with_name(f".{last.name}.crc")):
        one.unlink()  # as after a crash between the sink's commit and Spark's
    copying.fill(range(30, 60), 1)
    copying.run(EARLIEST, delivery=delivery)
    repeated = Counter(range(30)) if delivery == "at-least-once" else Counter()
    assert copying.copied() == Counter(range(60)) + repeated
