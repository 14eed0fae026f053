"""Every sink writes to Apache Kafka, and another client reads the records."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from integration.conftest import GIVEN
from integration.harness.discovery import NEWEST
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient.spark import (
    foreach_batch_sink,
    foreach_partition_sink,
    write_partitions,
)
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import ForeignRecord, Header

Topic = Callable[..., str]

ROWS = 1_200
SLICES = 4
PARTITIONS = 5
KEYS = 90
COLUMNS = ("key", "value", "headers", "partition")


def key(number: int) -> bytes | None:
    return None if number % 7 == 0 else b"key-%d" % (number % KEYS)


def headers(number: int) -> tuple[Header, ...]:
    return (("number", b"%d" % number), ("none", None)) if number % 3 else ()


def partition(number: int) -> int | None:
    return number % PARTITIONS if number % 11 == 0 else None


def content(number: int) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
    """Return key, value and headers of a row; rows without value have headers."""
    return key(number), None if number % 15 == 1 else b"%d" % number, headers(number)


def number_of(record: ForeignRecord) -> int:
    return int(record.value or dict(record.headers)["number"] or b"")


def rows(spark: SparkSession) -> DataFrame:
    """Return the rows with the columns of Spark's connector, in consecutive slices."""
    number = F.col("id")
    digits = number.cast("string")
    given = (
        "array(named_struct('key', 'number', 'value', cast(cast(id as string) as binary)), "
        "named_struct('key', 'none', 'value', cast(null as binary)))"
    )
    named = F.concat(F.lit("key-"), (number % KEYS).cast("string"))
    return spark.range(0, ROWS, 1, SLICES).select(
        F.when(number % 7 != 0, named).alias("key"),
        F.when(number % 15 != 1, digits.cast("binary")).alias("value"),
        F.when(number % 3 != 0, F.expr(given)).alias("headers"),
        F.when(number % 11 == 0, (number % PARTITIONS).cast("int")).alias("partition"),
        F.lit("ignored").alias("another"),
    )


def check_order(found: list[ForeignRecord]) -> None:
    """Check that the rows of a slice are in order in each partition.

    Rows with a key or partition are ordered among themselves, and so are the others.
    """
    last: dict[tuple[int, int, bool], int] = {}
    for one in found:
        number = number_of(one)
        has_place = one.key is not None or partition(number) is not None
        place = (one.partition, number // (ROWS // SLICES), has_place)
        assert last.get(place, -1) < number
        last[place] = number


class Writing:
    """The ways to write a DataFrame."""

    def __init__(self, kafka: RunningKafka, directory: Path) -> None:
        self._bootstrap = kafka.bootstrap
        self._directory = directory

    def by_foreach_partition(self, frame: DataFrame, topic: str) -> None:
        frame.foreachPartition(foreach_partition_sink(self._conf("gzip"), topic=topic))

    def by_write_partitions(self, frame: DataFrame, topic: str) -> None:
        report = write_partitions(frame, self._conf("zstd"), topic)
        size = sum(
            len(key or b"")
            + len(value or b"")
            + sum(len(name) + len(inside or b"") for name, inside in headers)
            for key, value, headers in map(content, range(ROWS))
        )
        assert (report.rows, report.bytes) == (ROWS, size)
        assert report.partitions == dict.fromkeys(range(SLICES), ROWS // SLICES)

    def by_table(self, frame: DataFrame, topic: str) -> None:
        options = self._options(topic, "lz4")
        frame.write.format("kclient").mode("append").options(**options).save()

    def by_stream(self, frame: DataFrame, topic: str) -> None:
        options = self._options(topic, "snappy")
        self._run(self._streamed(frame).format("kclient").options(**options))

    def by_foreach_batch(self, frame: DataFrame, topic: str) -> None:
        sink = foreach_batch_sink(self._conf("none"), topic=topic)
        self._run(self._streamed(frame).foreachBatch(sink))

    def _streamed(self, frame: DataFrame) -> DataStreamWriter:
        """Return the rows as a stream of files."""
        files = str(self._directory / "rows")
        frame.write.parquet(files)
        reader = frame.sparkSession.readStream.schema(frame.schema)
        return reader.parquet(files).writeStream

    def _run(self, writer: DataStreamWriter) -> None:
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(120)

    def _conf(self, codec: str) -> Mapping[str, object]:
        return {"bootstrap.servers": self._bootstrap, "compression.type": codec}

    def _options(self, topic: str, codec: str) -> dict[str, str]:
        conf = {f"kafka.{name}": str(value) for name, value in self._conf(codec).items()}
        return {**conf, "topic": topic}


WAYS = (
    Writing.by_foreach_partition,
    Writing.by_write_partitions,
    Writing.by_table,
    Writing.by_stream,
    Writing.by_foreach_batch,
)


@pytest.fixture(scope="module")
def places_by_java(
    kafka: RunningKafka,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[bytes, int]:
    """Return the partition of each key by Kafka's own producer."""
    version = NEWEST if kafka.version == GIVEN else kafka.version
    tools = KafkaTools(runtimes(version), tmp_path_factory.mktemp("tools"), kafka.bootstrap)
    name = kafka.create_topic(PARTITIONS)
    keys = {key(number) for number in range(ROWS)} - {None}
    tools.produce(name, [ForeignRecord(b"v", one) for one in sorted(filter(None, keys))])
    found = {
        one.key or b"": one.partition for one in ConfluentClient(kafka.bootstrap).read_all(name)
    }
    assert set(found) == keys
    return found


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_another_client_reads_all_rows_unchanged(
    spark: SparkSession,
    kafka: RunningKafka,
    topic: Topic,
    foreign: ConfluentClient,
    tmp_path: Path,
    places_by_java: Mapping[bytes, int],
    way: Callable[[Writing, DataFrame, str], None],
) -> None:
    name = topic(partitions=PARTITIONS)

    way(Writing(kafka, tmp_path), rows(spark), name)

    found = foreign.read_all(name)
    assert Counter(one.content for one in found) == Counter(
        content(number) for number in range(ROWS)
    )
    for one in found:
        chosen = partition(number_of(one))
        if chosen is not None:
            assert one.partition == chosen
        elif one.key is not None:
            assert one.partition == places_by_java[one.key]
    check_order(found)
