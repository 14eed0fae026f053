"""Limited micro-batches, and losses detected at planning: from Spark 4.2 on."""

import logging
from collections.abc import Iterator

import pytest

from kclient import TopicPartition
from kclient.spark.common.errors import DataLossError
from kclient.spark.source.limited_stream_reader import LimitedStreamReader
from kclient.testing import EmbeddedCluster
from tests.support.checks.spark_query import EARLIEST, Stream, queries
from tests.support.clients.clients import Clients, place


@pytest.fixture
def stream(clients: Clients) -> Iterator[Stream]:
    yield from queries(clients, LimitedStreamReader)


def cut(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    """Delete the records before an offset, as retention does."""
    replicas = cluster.broker.services.replica_manager
    replicas.partition(TopicPartition(topic, 0)).delete_records(offset)


def test_planned_micro_batch_is_repeated_after_a_crash(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": "4"})
    assert query.batch() == [0, 1, 2, 3]
    query.plan()
    query.crash()
    clients.fill(topic, 10, start=10)
    assert query.run() == [4, 5, 6, 7]


def test_micro_batch_has_at_most_max_offsets(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(3)
    for partition in range(3):
        clients.fill(topic, 10 * partition + 1, partition, 100 * partition)
    query = stream({"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": "7"})
    found = query.rest()
    assert [len(rows) for rows in found] == [7, 7, 7, 7, 5]
    assert len({row for rows in found for row in rows}) == 33


def test_max_bytes_is_applied_by_a_sample(clients: Clients, stream: Stream) -> None:
    topic = clients.topic(2)
    for size, count in ((100, 2000), (1000, 200)):
        for partition in range(2):
            values = [b"1" * size] * count
            clients.producer().send_many(topic, values, partition=partition).result(20)
    query = stream({"subscribe": topic, **EARLIEST, "maxBytesPerTrigger": "50000"})
    sizes = [len(rows) for rows in query.rest()]
    assert sum(sizes) == 4400
    assert all(350 <= size <= 500 for size in sizes[:5])
    assert all(40 <= size <= 50 for size in sizes[-5:-1])


def test_both_limits_apply(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.producer().send_many(topic, [b"1" * 1000] * 100, partition=0).result(20)
    options = {"subscribe": topic, **EARLIEST, "maxBytesPerTrigger": "20200"}
    few = stream({**options, "maxOffsetsPerTrigger": "7"}).batch()
    assert len(few or ()) == 7
    many = stream({**options, "maxOffsetsPerTrigger": "70"}).batch()
    assert 15 <= len(many or ()) <= 20


def test_micro_batch_waits_for_min_offsets(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 2)
    options = {"subscribe": topic, **EARLIEST, "minOffsetsPerTrigger": "5"}
    query = stream(options)
    assert query.rest() == [[0, 1]]  # the first micro-batch does not wait
    clients.fill(topic, 4, start=2)
    assert query.batch() is None
    clients.fill(topic, 1, start=6)
    assert query.rest() == [[2, 3, 4, 5, 6]]
    undelayed = stream({**options, "maxTriggerDelay": "0"})
    assert undelayed.batch() is not None
    clients.fill(topic, 1, start=7)
    assert undelayed.batch() == [7]


def test_available_now_stops_at_the_ends_at_start(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 5)
    options = {**EARLIEST, "maxOffsetsPerTrigger": "2", "minOffsetsPerTrigger": "100"}
    query = stream({"subscribe": topic, **options})
    reader = query.reader
    assert isinstance(reader, LimitedStreamReader)
    reader.prepareForTriggerAvailableNow()
    clients.fill(topic, 5, start=5)
    clients.admin().create_partitions({topic: 2}).raise_for_errors()
    clients.fill(topic, 5, partition=1, start=10)
    assert query.rest() == [[0, 1], [2, 3], [4]]
    assert reader.reportLatestOffset() == {topic: {"0": 10, "1": 5}}


def test_available_now_with_an_unresolved_start(clients: Clients, stream: Stream) -> None:
    topic = clients.topic()
    clients.fill(topic, 5)
    query = stream({"subscribe": topic})
    reader = query.reader
    assert isinstance(reader, LimitedStreamReader)
    reader.prepareForTriggerAvailableNow()
    clients.fill(topic, 5, start=5)
    assert query.rest() == [[]]
    assert query.ends == [{topic: {"0": 10}}]


def test_loss_fails_before_it_is_checkpointed(
    clients: Clients, stream: Stream, spark_cluster: EmbeddedCluster
) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    query = stream({"subscribe": topic, **EARLIEST, "maxOffsetsPerTrigger": "2"})
    assert query.batch() == [0, 1]
    cut(spark_cluster, topic, 7)
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert caught.value.lost == {place(topic): 5}
    assert len(query.ends) == 1


def test_without_fail_on_data_loss_the_stream_continues(
    clients: Clients,
    stream: Stream,
    spark_cluster: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = clients.topic()
    clients.fill(topic, 10)
    options = {**EARLIEST, "maxOffsetsPerTrigger": "2", "failOnDataLoss": "false"}
    query = stream({"subscribe": topic, **options})
    assert query.batch() == [0, 1]
    cut(spark_cluster, topic, 7)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert query.rest() == [[7, 8], [9]]
    assert caplog.text.count("5 offsets lost") == 1


def test_loss_is_logged_once_while_waiting_for_min_offsets(
    clients: Clients,
    stream: Stream,
    spark_cluster: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = clients.topic()
    clients.fill(topic, 4)
    options = {**EARLIEST, "minOffsetsPerTrigger": "5", "failOnDataLoss": "false"}
    query = stream({"subscribe": topic, **options})
    assert query.batch() == [0, 1, 2, 3]
    clients.fill(topic, 4, start=4)
    cut(spark_cluster, topic, 6)
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert [query.batch() for _ in range(3)] == [None, None, None]
    assert caplog.text.count("2 offsets lost") == 1
    clients.fill(topic, 3, start=8)
    assert query.batch() == [6, 7, 8, 9, 10]


def test_deleted_topic_is_a_loss(
    clients: Clients, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    names = [clients.topic(1, name) for name in ("gone-a", "gone-b")]
    for name in names:
        clients.fill(name, 4)
    options = {"subscribePattern": "gone-.", **EARLIEST, "maxOffsetsPerTrigger": "4"}
    strict, lenient = stream(options), stream({**options, "failOnDataLoss": "false"})
    assert strict.batch() == lenient.batch() == [0, 0, 1, 1]
    clients.admin().delete_topics(["gone-a"]).raise_for_errors()
    with pytest.raises(DataLossError) as caught:
        strict.plan()
    assert caught.value.lost == {place("gone-a"): 2}
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert lenient.rest() == [[2, 3]]
    assert caplog.text.count("gone-a-0: it does not exist") == 1
    assert lenient.ends[-1] == {"gone-b": {"0": 4}}


def test_idle_query_commits_its_last_finished_batch(clients: Clients, stream: Stream) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 4)
    query = stream({"subscribe": topic, **EARLIEST, "groupId": group})

    def committed() -> int:
        return clients.admin().list_consumer_group_offsets(group)[place(topic)].offset

    assert query.plan()
    assert committed() == 0  # planned, not finished
    query.crash()
    assert query.run() == [0, 1, 2, 3]  # repeated as planned, without a call of latestOffset
    assert committed() == 0
    assert not query.plan()  # the next trigger finds no new records
    assert committed() == 4
