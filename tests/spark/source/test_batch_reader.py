"""The batch reader on an embedded cluster, without a JVM."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from kclient import TopicPartition
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError
from kclient.spark.common.errors import DataLossError
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.batch_reader import BatchReader
from kclient.spark.source.stream_reader import UnlimitedStreamReader
from kclient.testing import EmbeddedCluster
from tests.support.checks.spark_query import numbers
from tests.support.checks.travelled import travelled
from tests.support.clients.clients import Clients, place


def reader(clients: Clients, options: Mapping[str, str]) -> BatchReader:
    servers = {"kafka.bootstrap.servers": clients.bootstrap}
    return BatchReader(SourceOptions.parse({**servers, **options}, streaming=False))


def read(clients: Clients, options: Mapping[str, str]) -> list[int]:
    """Plan a batch, and read each range as a task does."""
    batch_reader = reader(clients, options)
    ranges = travelled(batch_reader.partitions())
    return sorted(row for one in ranges for row in numbers(travelled(batch_reader).read(one)))


def test_times(clients: Clients) -> None:
    topic = clients.topic(2)
    producer = clients.producer()
    for number in range(6):
        producer.send(
            topic, b"%d" % number, partition=number % 2, timestamp_ms=1000 + number
        ).result(20)
    between = {"subscribe": topic, "startingTimestamp": "1001", "endingTimestamp": "1004"}
    assert read(clients, between) == [1, 2, 3]
    assert read(clients, {"subscribe": topic, "endingTimestamp": "9000"}) == list(range(6))
    by_partition = json.dumps({topic: {"0": 1002, "1": 1005}})
    assert read(clients, {"subscribe": topic, "startingOffsetsByTimestamp": by_partition}) == [
        2,
        4,
        5,
    ]
    assert read(clients, {"subscribe": topic, "endingOffsetsByTimestamp": by_partition}) == [
        0,
        1,
        3,
    ]
    with pytest.raises(ConfigError, match="startingTimestamp: got 1006"):
        read(clients, {"subscribe": topic, "startingTimestamp": "1006"})


def test_explicit_offsets_below_the_log_start_are_a_loss(
    clients: Clients, spark_cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    replicas = spark_cluster.broker.services.replica_manager
    replicas.partition(TopicPartition(topic, 0)).delete_records(6)
    assert read(clients, {"subscribe": topic}) == [6, 7, 8, 9]
    explicit = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}
    with pytest.raises(DataLossError) as caught:
        read(clients, explicit)
    assert caught.value.lost == {place(topic): 4}
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert read(clients, {**explicit, "failOnDataLoss": "false"}) == [6, 7, 8, 9]
    assert "4 offsets lost" in caplog.text


@pytest.mark.parametrize("stream", [False, True], ids=["table", "stream"])
def test_topic_recreated_after_planning_is_a_loss(clients: Clients, stream: bool) -> None:
    topic = clients.topic()
    clients.fill(topic, 5)
    options = {"kafka.bootstrap.servers": clients.bootstrap, "subscribe": topic}
    options["startingOffsets"] = "earliest"
    if stream:
        planner: Any = UnlimitedStreamReader(SourceOptions.parse(options, streaming=True))
        (planned,) = travelled(planner.partitions(planner.initialOffset(), planner.latestOffset()))
        planner.stop()
    else:
        planner = reader(clients, {"subscribe": topic})
        (planned,) = travelled(planner.partitions())
    clients.admin().delete_topics([topic]).raise_for_errors()
    clients.topic(name=topic)
    clients.fill(topic, 9)
    with pytest.raises(DataLossError, match="deleted and recreated, 5 offsets lost"):
        list(planner.read(planned))


def test_offsets_that_do_not_fit_fail(clients: Clients) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    for options, text in (
        ({"endingOffsets": json.dumps({topic: {"0": 11}})}, "at most 10, its end"),
        (
            {
                "startingOffsets": json.dumps({topic: {"0": 7}}),
                "endingOffsets": json.dumps({topic: {"0": 5}}),
            },
            f"endingOffsets: got 5 for {topic}-0, expected at least 7",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            read(clients, {"subscribe": topic, **options})
        assert text in str(caught.value)
    with pytest.raises(UnknownTopicOrPartitionError):
        read(clients, {"subscribe": f"{topic}-not"})


def test_pattern_without_match_is_an_empty_table(clients: Clients) -> None:
    assert read(clients, {"subscribePattern": "nothing-of-this-name"}) == []


def test_partition_created_by_spark_is_empty(clients: Clients) -> None:
    assert list(reader(clients, {"subscribe": "t"}).read(InputPartition(None))) == []
