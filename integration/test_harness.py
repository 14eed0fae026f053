"""The harness, without the client under test: Apache Kafka runs, its tools work."""

from collections.abc import Callable

import pytest

from integration.conftest import StartCluster, ToolsFor
from integration.harness.kafka_cluster import ClusterOptions
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from integration.harness.wire_probe import known_brokers, served_apis
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord

Topic = Callable[..., str]

RECORDS = [
    ForeignRecord(b"first", b"a", (("h", b"1"), ("i", None))),
    ForeignRecord(None, b"b"),
    ForeignRecord("zwölf".encode(), None, (("h", b""),)),
]


def test_console_producer_to_console_consumer(topic: Topic, tools: KafkaTools) -> None:
    name = topic()
    tools.produce(name, RECORDS)
    found = tools.consume(name, len(RECORDS))
    assert [record.content for record in found] == [record.content for record in RECORDS]
    assert [(record.partition, record.offset) for record in found] == [(0, 0), (0, 1), (0, 2)]
    assert all(record.timestamp_ms > 0 for record in found)


def test_tools_describe_topics_and_groups(
    kafka: RunningKafka, topic: Topic, tools: KafkaTools
) -> None:
    name = topic(partitions=2, configs={"retention.ms": "100000"})
    client = FOREIGN_CLIENTS["confluent-kafka"](kafka.bootstrap)
    client.produce(name, [ForeignRecord(b"x", partition=number % 2) for number in range(10)])
    client.commit(f"group-of-{name}", name, {0: 2, 1: 5})

    assert name in tools.topics()
    assert [row.partition for row in tools.describe_topic(name)] == [0, 1]
    assert tools.offsets(name) == {0: 5, 1: 5}
    assert tools.offsets(name, "earliest") == {0: 0, 1: 0}
    assert f"group-of-{name}" in tools.groups()
    assert [row.lag for row in tools.describe_group(f"group-of-{name}")] == [3, 0]
    assert tools.group_state(f"group-of-{name}").state == "Empty"


def test_verifiable_clients_report_events(topic: Topic, tools: KafkaTools) -> None:
    name = topic(partitions=2)
    consumer = tools.verifiable_consumer(name, f"group-of-{name}")
    assigned = consumer.await_events("partitions_assigned")
    assert len(assigned[0]["partitions"]) == 2
    producer = tools.verifiable_producer(name, 50)
    (summary,) = producer.await_events("tool_data")
    assert summary["acked"] == 50
    values = consumer.await_events("record_data", lambda events: len(events) >= 50)
    assert sorted(int(event["value"]) for event in values) == list(range(50))
    producer.stop()
    consumer.stop()
    assert consumer.events("shutdown_complete")


def test_dump_log_reads_what_was_written(local_kafka: RunningKafka, tools: KafkaTools) -> None:
    name = local_kafka.create_topic()
    client = FOREIGN_CLIENTS["kafka-python"](local_kafka.bootstrap)
    client.produce(name, [ForeignRecord(b"v%d" % number) for number in range(3)])
    batches = tools.dump_log(*local_kafka.segments(name), payload=True)
    assert all(batch.fields["isvalid"] == "true" for batch in batches)
    records = [record for batch in batches for record in batch.records]
    assert [record["payload"] for record in records] == ["v0", "v1", "v2"]


def test_performance_tools_measure(topic: Topic, tools: KafkaTools) -> None:
    name = topic(partitions=2)
    produced = tools.producer_performance(name, 5_000, 100)
    consumed = tools.consumer_performance(name, 5_000)
    assert (produced.records, consumed.records) == (5_000, 5_000)
    assert produced.records_per_second > 0
    assert consumed.records_per_second > 0


@pytest.mark.campaign
def test_three_nodes_survive_the_loss_of_one(
    start_cluster: StartCluster, tools_for: ToolsFor
) -> None:
    options = ClusterOptions(
        nodes=3,
        heap_mb=384,
        properties={"min.insync.replicas": "2", "broker.session.timeout.ms": "3000"},
    )
    cluster = start_cluster(options)
    assert set(known_brokers(cluster.bootstrap().split(",")[0])) == {1, 2, 3}
    kafka = RunningKafka("4.3.1", cluster.bootstrap(), cluster)
    name = kafka.create_topic(partitions=3, replicas=3)
    client = FOREIGN_CLIENTS["confluent-kafka"](cluster.bootstrap())
    client.produce(name, [ForeignRecord(b"before", partition=number) for number in range(3)])

    cluster.nodes[0].kill()
    cluster.await_brokers()
    client.produce(name, [ForeignRecord(b"after", partition=number) for number in range(3)])
    assert len(client.read_all(name)) == 6

    cluster.nodes[0].start()
    cluster.await_brokers()
    tools = tools_for(cluster.bootstrap())
    wait_until(
        lambda: all(set(row.in_sync) == {1, 2, 3} for row in tools.describe_topic(name)),
        "the node that was killed is in sync again",
        30,
    )


def test_node_keeps_its_data_over_a_restart(start_cluster: StartCluster) -> None:
    cluster = start_cluster(None, "3.9.2")
    node = cluster.nodes[0]
    kafka = RunningKafka("3.9.2", cluster.bootstrap(), cluster)
    name = kafka.create_topic()
    client = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap())
    given = [ForeignRecord(b"v%d" % number) for number in range(5)]
    client.produce(name, given)
    node.restart()
    assert served_apis(node.address())
    assert [one.value for one in client.read_all(name)] == [one.value for one in given]
