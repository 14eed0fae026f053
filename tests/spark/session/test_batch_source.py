"""``spark.read.format("kclient")`` on a cluster, with the options of Spark's own connector."""

import json
from collections.abc import Mapping

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kclient.spark.source.schema import spark_schema
from tests.support.clients.clients import Clients


@pytest.fixture
def read(spark: SparkSession, clients: Clients) -> "Reading":
    return Reading(spark, clients.bootstrap)


class Reading:
    """Loads topics of the cluster."""

    def __init__(self, spark: SparkSession, bootstrap: str) -> None:
        self._spark = spark
        self._bootstrap = bootstrap

    def __call__(self, options: Mapping[str, object]) -> DataFrame:
        reader = self._spark.read.format("kclient")
        reader.option("kafka.bootstrap.servers", self._bootstrap)
        for name, value in options.items():
            reader.option(name, value)  # type: ignore[arg-type]  # as users do, of any type
        return reader.load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def test_topic_is_read_as_a_table(read: Reading, clients: Clients) -> None:
    topic = clients.topic(2)
    clients.fill(topic, 300)
    producer = clients.producer()
    sent = producer.send(
        topic, b"v", b"k", partition=1, timestamp_ms=1_700_000_000_123, headers=[("h", b"1")]
    ).result(20)
    frame = read({"subscribe": topic, "includeHeaders": True})
    assert frame.schema == spark_schema(include_headers=True)
    assert frame.count() == 301
    row = (
        frame.where("partition = 1")
        .select("*", (F.col("timestamp").cast("double") * 1000).cast("long").alias("ms"))
        .collect()[0]
    )
    assert (bytes(row.key), bytes(row.value), row.topic) == (b"k", b"v", topic)
    assert (row.offset, row.timestampType, row.ms) == (sent.offset, 0, 1_700_000_000_123)
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"1")]
    assert numbers(frame.where("partition = 0")) == list(range(300))


def test_offset_range_is_split_into_tasks(read: Reading, clients: Clients) -> None:
    topic = clients.topic(2)
    clients.fill(topic, 100)
    clients.fill(topic, 50, partition=1, start=100)
    frame = read(
        {
            "subscribe": topic,
            "startingOffsets": json.dumps({topic: {"0": 90, "1": -2}}),
            "endingOffsets": json.dumps({topic: {"0": -1, "1": 5}}),
            "minPartitions": 5,
        }
    )
    assert frame.rdd.getNumPartitions() == 5
    assert numbers(frame) == [*range(90, 100), *range(100, 105)]
    assert read({"subscribe": topic, "maxRecordsPerPartition": 40}).rdd.getNumPartitions() == 5


def test_subscribe_pattern_and_assign(read: Reading, clients: Clients) -> None:
    names = [clients.topic(2, f"batch-pattern-{letter}") for letter in "ab"]
    for start, name in enumerate(names):
        clients.fill(name, 3, partition=1, start=start * 10)
    assert numbers(read({"subscribePattern": "batch-pattern-.*"})) == [0, 1, 2, 10, 11, 12]
    assert numbers(read({"assign": json.dumps({names[1]: [1]})})) == [10, 11, 12]
    assert read({"assign": json.dumps({names[1]: [0]})}).count() == 0


def test_wrong_option_fails_at_load(read: Reading) -> None:
    with pytest.raises(AnalysisException) as caught:
        read({"subscribe": "t", "startingOfsets": "earliest"})
    assert "did you mean 'startingOffsets'?" in str(caught.value)


def test_unknown_topic_is_named(read: Reading) -> None:
    with pytest.raises(PySparkException) as caught:
        read({"subscribe": "no-such-topic"}).collect()
    assert "subscribe 'no-such-topic': no-such-topic does not exist" in str(caught.value)


def test_secrets_are_not_in_the_query_plan(
    read: Reading, clients: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = clients.topic()
    frame = read({"subscribe": topic, "kafka.client.id": "hunter2"})
    frame.explain(extended=True)
    assert "hunter2" not in capsys.readouterr().out


@pytest.mark.parametrize("streaming", [False, True])
def test_unknown_option_fails_on_load_with_a_short_text(
    spark: SparkSession,
    streaming: bool,
) -> None:
    reader = spark.readStream if streaming else spark.read
    reader = reader.format("kclient").option("kafka.bootstrap.servers", "localhost:1")
    with pytest.raises(AnalysisException, match="did you mean 'startingOffsets'") as caught:
        reader.options(subscribe="t", startingOffset="earliest").load()
    assert len(str(caught.value).splitlines()) <= 6
