"""Records of another client in Apache Kafka, read as a table."""

import json
from collections.abc import Callable, Iterable, Mapping

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.harness.running_kafka import RunningKafka
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_record import ForeignRecord, Sending

Topic = Callable[..., str]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BEGIN_MS = 1_700_000_000_000
# Retention uses the timestamps of the records, which are in the past.
FOREVER = {"retention.ms": "-1"}


class Table:
    """Reads topics of Apache Kafka as tables."""

    def __init__(self, spark: SparkSession, kafka: RunningKafka) -> None:
        self._spark = spark
        self._bootstrap = kafka.bootstrap

    def load(self, options: Mapping[str, object]) -> DataFrame:
        reader = self._spark.read.format("kclient")
        reader.option("kafka.bootstrap.servers", self._bootstrap)
        for name, value in options.items():
            reader.option(name, value)  # type: ignore[arg-type]  # as users do, of any type
        return reader.load()

    def numbers(self, options: Mapping[str, object]) -> list[int]:
        """Return the values as numbers."""
        return sorted(int(row.value) for row in self.load(options).select("value").collect())


@pytest.fixture
def table(spark: SparkSession, kafka: RunningKafka) -> Table:
    return Table(spark, kafka)


def counted(numbers: Iterable[int], partition: int) -> list[ForeignRecord]:
    """Return records with timestamps a second apart."""
    return [
        ForeignRecord(b"%d" % number, timestamp_ms=BEGIN_MS + 1000 * number, partition=partition)
        for number in numbers
    ]


def varied_records(codec: str) -> list[ForeignRecord]:
    """Return records of all shapes, and enough similar ones to be compressed."""
    text = codec.encode()
    shapes = [
        ForeignRecord(None, None, (), BEGIN_MS, 0),
        ForeignRecord(b"", b"", (("", b""),), BEGIN_MS + 1, 1),
        ForeignRecord(None, text, (("h", None), ("h", b"twice"), ("ü", text)), BEGIN_MS + 2, 0),
        ForeignRecord(bytes(range(256)), None, (), BEGIN_MS - 7, 1),
    ]
    return shapes + [
        ForeignRecord(text * 30, b"%d" % number, (), BEGIN_MS + number, number % 2)
        for number in range(100)
    ]


def seen(frame: DataFrame) -> list[ForeignRecord]:
    """Return the rows as records, by partition and offset."""
    millis = (F.col("timestamp").cast("double") * 1000).cast("long").alias("ms")
    rows = frame.select("*", millis).orderBy("partition", "offset").collect()
    return [
        ForeignRecord(
            None if row["value"] is None else bytes(row["value"]),
            None if row["key"] is None else bytes(row["key"]),
            tuple(
                (one["key"], None if one["value"] is None else bytes(one["value"]))
                for one in row["headers"] or ()
            ),
            row["ms"],
            row["partition"],
            row["offset"],
        )
        for row in rows
    ]


def test_records_of_every_shape_and_codec_are_read(
    table: Table, topic: Topic, foreign: ConfluentClient
) -> None:
    name = topic(partitions=2, configs=FOREVER)
    sent = [
        record
        for codec in CODECS
        for record in foreign.produce(name, varied_records(codec), Sending(codec=codec))
    ]
    frame = table.load({"subscribe": name, "includeHeaders": True, "minPartitions": 6})
    assert seen(frame) == sorted(sent, key=lambda one: (one.partition, one.offset))
    assert frame.select("topic", "timestampType").distinct().collect() == [(name, 0)]


def test_log_append_time(table: Table, topic: Topic, foreign: ConfluentClient) -> None:
    name = topic(configs={"message.timestamp.type": "LogAppendTime"})
    foreign.produce(name, counted(range(3), 0))
    (stored, *_) = foreign.read_all(name)
    rows = table.load({"subscribe": name})
    assert {row.timestampType for row in rows.select("timestampType").collect()} == {1}
    assert seen(rows.withColumn("headers", F.lit(None)))[0].timestamp_ms == stored.timestamp_ms
    assert stored.timestamp_ms > BEGIN_MS + 1_000_000


def test_starting_and_ending_offsets_and_timestamps(
    table: Table, topic: Topic, foreign: ConfluentClient
) -> None:
    name = topic(partitions=2, configs=FOREVER)
    foreign.produce(name, counted(range(50), 0) + counted(range(100, 130), 1))
    bounds: list[tuple[dict[str, object], list[int]]] = [
        (
            {
                "startingOffsets": json.dumps({name: {"0": 45, "1": -2}}),
                "endingOffsets": json.dumps({name: {"0": -1, "1": 2}}),
                "maxRecordsPerPartition": 2,
            },
            [*range(45, 50), 100, 101],
        ),
        (
            {
                "startingTimestamp": BEGIN_MS + 47_500,
                "endingTimestamp": BEGIN_MS + 103_000,
            },
            [48, 49, 100, 101, 102],
        ),
        (
            {
                "startingOffsetsByTimestamp": json.dumps(
                    {name: {"0": BEGIN_MS + 10_000, "1": BEGIN_MS + 999_000}}
                ),
                "startingOffsetsByTimestampStrategy": "latest",
                "endingOffsetsByTimestamp": json.dumps(
                    {name: {"0": BEGIN_MS + 12_001, "1": BEGIN_MS + 999_000}}
                ),
            },
            [10, 11, 12],
        ),
    ]
    for options, expected in bounds:
        assert table.numbers({"subscribe": name, **options}) == expected


def test_aborted_transactions_are_left_out(
    table: Table, topic: Topic, foreign: ConfluentClient
) -> None:
    name = topic(configs=FOREVER)
    for begin, commit in ((0, True), (10, False), (20, True), (30, False)):
        how = Sending(transactional_id=f"{name}-{begin}", commit=commit)
        foreign.produce(name, counted(range(begin, begin + 10), 0), how)
    kept = [*range(10), *range(20, 30)]
    every = [*range(40)]
    assert table.numbers({"subscribe": name}) == kept
    # Some of these ranges contain only a marker, or only aborted records.
    assert table.numbers({"subscribe": name, "maxRecordsPerPartition": 3}) == kept
    assert table.numbers({"subscribe": name, "isolationLevel": "read_uncommitted"}) == every


def test_missing_topic_is_named_and_not_created(
    table: Table, topic: Topic, foreign_admin: AdminClient
) -> None:
    missing = f"{topic()}-missing"
    with pytest.raises(PySparkException, match=f"{missing} does not exist"):
        table.load({"subscribe": missing}).collect()
    assert missing not in foreign_admin.list_topics(timeout=30).topics
