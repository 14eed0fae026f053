"""``spark.readStream.format("kclient")`` on a cluster, in every version of Spark."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kclient import TopicPartition
from kclient.spark.common.installed_spark import supports
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place

LIMITED = supports("admission-control")


class Streams:
    """Starts queries that collect their rows, and stops them with the test."""

    def __init__(self, spark: SparkSession, clients: Clients, home: Path) -> None:
        self._spark = spark
        self._clients = clients
        self._home = home
        self.batches: list[list[int]] = []
        self.queries: list[StreamingQuery] = []

    def start(self, options: dict[str, object], *, name: str = "", now: bool = False) -> Any:
        """Start a query; one with the same name continues from its checkpoint."""
        reader = self._spark.readStream.format("kclient")
        reader.option("kafka.bootstrap.servers", self._clients.bootstrap)
        for key, value in options.items():
            reader.option(key, value)  # type: ignore[arg-type]  # as users do, of any type
        writer = reader.load().writeStream.foreachBatch(self._collect)
        writer.option("checkpointLocation", str(self._home / (name or "query")))
        query = writer.trigger(availableNow=True).start() if now else writer.start()
        self.queries.append(query)
        return query

    def finish(self, options: dict[str, object], *, name: str = "") -> list[list[int]]:
        """Run a query over the existing records, and return its micro-batches with rows."""
        before = len(self.batches)
        assert self.start(options, name=name, now=True).awaitTermination(60)
        return [batch for batch in self.batches[before:] if batch]

    def rows(self) -> list[int]:
        return sorted(row for batch in self.batches for row in batch)

    def _collect(self, frame: DataFrame, number: int) -> None:
        self.batches.append(sorted(int(row.value) for row in frame.select("value").collect()))


@pytest.fixture
def streams(spark: SparkSession, clients: Clients, tmp_path: Path) -> Iterator[Streams]:
    made = Streams(spark, clients, tmp_path)
    yield made
    for query in made.queries:
        query.stop()


def test_stream_continues_from_its_checkpoint(streams: Streams, clients: Clients) -> None:
    topic, group = clients.topic(2), clients.group()
    clients.fill(topic, 30)
    options: dict[str, object] = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "groupId": group,
    }
    if LIMITED:
        options["maxOffsetsPerTrigger"] = 20
        found = streams.finish(options)
        assert [len(batch) for batch in found] == [20, 10]
        committed = clients.admin().list_consumer_group_offsets(group)
        assert committed[place(topic)].offset == 30
    else:
        assert [len(batch) for batch in streams.finish(options)] == [30]
    clients.admin().create_partitions({topic: 3}).raise_for_errors()
    clients.fill(topic, 5, partition=2, start=30)
    assert streams.finish(options) == [[30, 31, 32, 33, 34]]
    assert streams.rows() == list(range(35))


def test_records_sent_while_the_stream_is_down_are_read(
    streams: Streams, clients: Clients, tmp_path: Path
) -> None:
    topic = clients.topic()
    clients.fill(topic, 5)
    query = streams.start({"subscribe": topic})
    wait_until((tmp_path / "query" / "offsets" / "0").exists, "the start is in the checkpoint", 60)
    query.stop()
    clients.fill(topic, 10, start=5)
    query = streams.start({"subscribe": topic, "kafka.client.id": "hunter2"})
    wait_until(lambda: len(streams.rows()) >= 10, "ten rows", 60)
    assert streams.rows() == list(range(5, 15))
    wait_until(lambda: {topic: {"0": 15}} in reported(query, "endOffset"), "it is reported", 60)
    if LIMITED:
        assert {topic: {"0": 15}} in reported(query, "latestOffset")
    assert "hunter2" not in str(query.recentProgress)


def reported(query: StreamingQuery, field: str) -> list[Any]:
    """Return the source's offsets from the progress of the micro-batches."""
    found = [progress["sources"][0][field] for progress in query.recentProgress]
    # Spark 4.0 passes the repr of a dict instead of JSON.
    return [json.loads(text.replace("'", '"')) for text in found if text]


def failure(run: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as caught:
        run()
    return str(caught.value)


def test_data_loss_fails_the_stream_with_its_count(
    streams: Streams, clients: Clients, spark_cluster: EmbeddedCluster
) -> None:
    topic = clients.topic()
    clients.fill(topic, 5)
    options: dict[str, object] = {"subscribe": topic, "startingOffsets": "earliest"}
    assert streams.finish(options) == [[0, 1, 2, 3, 4]]
    clients.fill(topic, 5, start=5)
    replicas = spark_cluster.broker.services.replica_manager
    replicas.partition(TopicPartition(topic, 0)).delete_records(8)
    text = failure(lambda: streams.finish(options))
    assert "DataLossError" in text
    assert "3 offsets lost" in text
