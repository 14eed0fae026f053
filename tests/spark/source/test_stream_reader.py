"""Micro-batches of the stream reader on an embedded cluster, without a JVM."""

import json
import logging
from collections.abc import Iterator

import pytest

from kclient import TopicPartition
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError
from kclient.spark.common.errors import DataLossError
from kclient.spark.source.stream_reader import StreamReader, UnlimitedStreamReader, stream_reader
from kclient.testing import EmbeddedCluster
from tests.support.checks.spark_query import EARLIEST, Stream, parsed, queries
from tests.support.clients.clients import Clients, place


@pytest.fixture(params=[True, False], ids=["this-spark", "spark-4.0"])
def stream(clients: Clients, request: pytest.FixtureRequest) -> Iterator[Stream]:
    newest = type(stream_reader(parsed(clients, {"subscribe": "t"})))
    assert issubclass(newest, StreamReader)
    yield from queries(clients, newest if request.param else UnlimitedStreamReader)


def test_earliest_reads_existing_and_new_records(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(2)
    clients.fill(topic, 5)
    query = stream({"subscribe": topic, **EARLIEST})
    assert query.rest() == [[0, 1, 2, 3, 4]]
    clients.fill(topic, 2, partition=1, start=5)
    assert query.rest() == [[5, 6]]
    assert query.ends[-1] == {topic: {"0": 5, "1": 2}}


def test_latest_is_checkpointed_before_the_first_read(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 5)
    query = stream({"subscribe": topic})
    assert query.plan()
    clients.fill(topic, 10, start=5)  # while the query is down
    query.crash()
    assert query.run() == []
    assert query.rest() == [list(range(5, 15))]


def test_starting_offsets_mix_latest_and_numbers(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(3)
    for partition in range(3):
        clients.fill(topic, 10, partition, partition * 10)
    options = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": -1, "1": -2, "2": 7}}),
    }
    query = stream(options)
    found = [query.batch() for _ in range(3)]  # the first one may be None on an old Spark
    assert [batch for batch in found if batch is not None] == [[], [*range(10, 20), 27, 28, 29]]


def test_starting_offsets_must_cover_all_partitions(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(2)
    for offsets, text in (
        ({"0": 0}, f"without {topic}-1"),
        ({"0": 0, "1": 0, "2": 0}, f"with unknown {topic}-2"),
        ({"0": 0, "1": 9}, f"got 9 for {topic}-1, expected at most 0"),
    ):
        query = stream({"subscribe": topic, "startingOffsets": json.dumps({topic: offsets})})
        with pytest.raises(ConfigError) as caught:
            query.batch()
        assert text in str(caught.value)


def test_times(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(2)
    for number in range(4):
        clients.producer().send(
            topic, b"%d" % number, partition=0, timestamp_ms=1000 + number
        ).result(20)
    late = {"subscribe": topic, "startingTimestamp": "1002"}
    with pytest.raises(ConfigError, match="startingOffsetsByTimestampStrategy=latest"):
        stream(late).batch()
    query = stream({**late, "startingOffsetsByTimestampStrategy": "latest"})
    assert query.rest() == [[], [2, 3]]
    each = json.dumps({topic: {"0": 1003, "1": 0}})
    query = stream({"subscribe": topic, "startingOffsetsByTimestamp": each})
    with pytest.raises(ConfigError, match=f"got 0 for {topic}-1"):
        query.batch()


def test_unknown_topics_and_partitions_fail(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    for options in (
        {"subscribe": f"{topic},nowhere"},
        {"assign": json.dumps({topic: [0, 3]})},
    ):
        with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
            stream(options).batch()


def test_new_partitions_and_topics_start_at_the_earliest(clients: Clients, stream: Stream) -> None:
    family = clients.group()
    topic = clients.topic(1, f"{family}-a")
    query = stream({"subscribePattern": f"{family}-."})
    assert query.rest() == [[]]
    clients.admin().create_partitions({topic: 2}).raise_for_errors()
    clients.fill(topic, 3, partition=1)
    clients.fill(clients.topic(1, f"{family}-b"), 2, start=3)
    assert query.rest() == [[0, 1, 2, 3, 4]]
    query.crash()
    assert query.rest() == []


def test_pattern_may_match_no_topic_at_first(clients: Clients, stream: Stream) -> None:
    name = clients.group()
    query = stream({"subscribePattern": name, **EARLIEST})
    assert query.rest() == []
    clients.fill(clients.topic(1, name), 2)
    assert query.rest() == [[0, 1]]


def test_micro_batch_is_split_into_tasks(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST, "minPartitions": "3"})
    query.plan()
    tasks = query.reader.partitions(query.start(), query.ends[-1])
    assert [str(task) for task in tasks] == [
        f"OffsetRange({topic}-0[{start}:{end}])" for start, end in ((0, 3), (3, 6), (6, 10))
    ]


def test_assign_reads_only_the_given_partitions(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(2)
    clients.fill(topic, 2)
    clients.fill(topic, 2, partition=1, start=10)
    assert stream({"assign": json.dumps({topic: [1]}), **EARLIEST}).rest() == [[10, 11]]


def test_old_spark_gets_the_unlimited_reader(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.spark.common.installed_spark.spark_version", lambda: "4.1.4")
    reader = stream_reader(parsed(clients, {"subscribe": "t"}))
    assert isinstance(reader, UnlimitedStreamReader)


def cut(cluster: EmbeddedCluster, topic: str, offset: int, partition: int = 0) -> None:
    """Delete the records before an offset, as retention does."""
    replicas = cluster.broker.services.replica_manager
    replicas.partition(TopicPartition(topic, partition)).delete_records(offset)


def test_planned_micro_batch_with_deleted_records_fails(
    clients: Clients, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST})
    query.plan()
    query.crash()
    query.committed = 0
    query.ends.insert(0, {topic: {"0": 2}})
    query.committed = 1
    cut(spark_cluster, topic, 5)
    with pytest.raises(DataLossError) as caught:
        query.run()
    assert caught.value.lost == {place(topic): 3}


def test_recreated_topic_is_a_loss(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 4)
    options = {"subscribe": topic, **EARLIEST}
    strict, lenient = stream(options), stream({**options, "failOnDataLoss": "false"})
    restarted = stream(options)
    assert strict.batch() == lenient.batch() == restarted.batch() == [0, 1, 2, 3]
    clients.admin().delete_topics([topic]).raise_for_errors()
    clients.topic(1, topic)
    clients.fill(topic, 6, start=50)
    with pytest.raises(DataLossError, match="deleted and recreated"):
        strict.batch()
    assert lenient.rest() == [list(range(50, 56))]


def test_recreated_shorter_topic_is_a_loss(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 4)
    options = {"subscribe": topic, **EARLIEST}
    strict, lenient = stream(options), stream({**options, "failOnDataLoss": "false"})
    assert strict.batch() == lenient.batch() == [0, 1, 2, 3]
    clients.admin().delete_topics([topic]).raise_for_errors()
    clients.topic(1, topic)
    clients.fill(topic, 2, start=50)
    for query in (strict, lenient):
        query.crash()  # the topic ids are lost
    with pytest.raises(DataLossError, match="deleted and recreated"):
        strict.batch()
    assert lenient.rest() == [[50, 51]]


def test_new_partition_without_its_first_records_is_a_loss(
    clients: Clients, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = clients.topic()
    clients.fill(topic, 1)
    query = stream({"subscribe": topic, **EARLIEST})
    assert query.rest() == [[0]]
    clients.admin().create_partitions({topic: 2}).raise_for_errors()
    clients.fill(topic, 5, partition=1)
    cut(spark_cluster, topic, 3, partition=1)
    with pytest.raises(DataLossError) as caught:
        query.batch()
    assert caught.value.lost == {place(topic, 1): 3}


def test_records_deleted_by_retention_are_a_loss(
    clients: Clients, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = clients.topic()
    clients.fill(topic, 4)
    query = stream({"subscribe": topic, **EARLIEST})
    assert query.batch() == [0, 1, 2, 3]
    clients.fill(topic, 4, start=4)
    cut(spark_cluster, topic, 6)
    with pytest.raises(DataLossError) as caught:
        query.batch()
    assert caught.value.lost == {place(topic): 2}


def test_progress_is_committed_to_the_group(clients: Clients, stream: Stream) -> None:
    topic, group = clients.topic(2), clients.group()
    clients.fill(topic, 4)
    query = stream({"subscribe": topic, **EARLIEST, "groupId": group})
    query.batch()
    query.reader.commit(query.ends[-1])
    committed = clients.admin().list_consumer_group_offsets(group)
    assert {one: found.offset for one, found in committed.items()} == {
        place(topic, 0): 4,
        place(topic, 1): 0,
    }


def test_failed_commit_does_not_fail_the_query(
    clients: Clients, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = clients.topic(), clients.group()
    member = clients.consumer(group)
    member.subscribe([topic])
    member.poll(0.5)
    query = stream({"subscribe": topic, **EARLIEST, "groupId": group})
    query.batch()
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        for _ in range(3):
            query.reader.commit({topic: {"0": 0}})
    assert caplog.text.count("commit for lag monitoring failed") == 1  # retried ten seconds later
