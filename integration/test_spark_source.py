"""The Spark source's offsets and ranges against Apache Kafka."""

import json
from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import Producer as TransactionalProducer
from confluent_kafka import TopicPartition as ForeignPartition
from confluent_kafka.admin import AdminClient as ForeignAdmin

from integration.harness.running_kafka import RunningKafka
from kclient import AdminClient, NewTopic, TopicPartition
from kclient.spark.common.errors import DataLossError
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.batch_reader import BatchReader
from kclient.spark.source.limited_stream_reader import LimitedStreamReader
from tests.support.checks.spark_query import EARLIEST, Query, numbers, parsed
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients


def read(kafka: RunningKafka, options: Mapping[str, str]) -> list[int]:
    servers = {"kafka.bootstrap.servers": kafka.bootstrap}
    reader = BatchReader(SourceOptions.parse({**servers, **options}, streaming=False))
    return sorted(row for one in reader.partitions() for row in numbers(reader.read(one)))


def expect(kafka: RunningKafka, rows: list[int], options: Mapping[str, str]) -> None:
    """Read until the rows are as expected: Kafka completes a transaction asynchronously."""
    wait_until(lambda: read(kafka, options) == rows, f"{rows} are read with {options}")


def produce(producer: TransactionalProducer, topic: str, *values: int) -> None:
    for value in values:
        producer.produce(topic, b"%d" % value, partition=0)
    assert producer.flush(30) == 0


def test_committed_transactions_are_read(kafka: RunningKafka, topic: Callable[..., str]) -> None:
    name = topic()
    producer = TransactionalProducer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{name}-writer"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    produce(producer, name, 0, 1)
    producer.commit_transaction(30)
    producer.begin_transaction()
    produce(producer, name, 10, 11)
    producer.abort_transaction(30)
    expect(kafka, [0, 1], {"subscribe": name})
    every = {"subscribe": name, "isolationLevel": "read_uncommitted"}
    expect(kafka, [0, 1, 10, 11], every)
    producer.begin_transaction()
    produce(producer, name, 2)
    assert read(kafka, {"subscribe": name}) == [0, 1]
    aborted_and_its_marker = json.dumps({name: {"0": 3}})
    assert read(kafka, {"subscribe": name, "startingOffsets": aborted_and_its_marker}) == []
    producer.commit_transaction(30)
    expect(kafka, [0, 1, 2], {"subscribe": name, "maxRecordsPerPartition": "1"})


def test_deleted_records_fail_the_stream_as_data_loss(
    kafka: RunningKafka, topic: Callable[..., str]
) -> None:
    name = topic()
    with Clients(kafka.bootstrap) as clients:
        clients.fill(name, 10)
    admin = ForeignAdmin({"bootstrap.servers": kafka.bootstrap})
    for done in admin.delete_records([ForeignPartition(name, 0, 6)]).values():
        done.result(30)
    options = {"subscribe": name, "startingOffsets": json.dumps({name: {"0": 2}})}
    with pytest.raises(DataLossError) as caught:
        read(kafka, options)
    assert caught.value.lost == {TopicPartition(name, 0): 4}
    assert read(kafka, {**options, "failOnDataLoss": "false"}) == [6, 7, 8, 9]


def test_stream_over_new_partitions_and_a_recreated_topic(
    kafka: RunningKafka, topic: Callable[..., str]
) -> None:
    name = topic()
    with (
        Clients(kafka.bootstrap) as clients,
        AdminClient(bootstrap_servers=kafka.bootstrap) as admin,
    ):
        options = {"subscribe": name, **EARLIEST, "maxOffsetsPerTrigger": "4"}
        query = Query(lambda: LimitedStreamReader(parsed(clients, options)))
        clients.fill(name, 6)
        assert query.rest() == [[0, 1, 2, 3], [4, 5]]
        admin.create_partitions({name: 2}).raise_for_errors()
        clients.fill(name, 2, partition=1, start=6)
        assert query.rest() == [[6, 7]]
        admin.delete_topics([name]).raise_for_errors()
        admin.create_topics([NewTopic(name, num_partitions=2)]).raise_for_errors()
        clients.fill(name, 9)
        with pytest.raises(DataLossError, match="deleted and recreated"):
            query.batch()
        query.reader.stop()
