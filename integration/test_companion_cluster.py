"""Three companion brokers with other projects' clients and Kafka's own tools."""

import re
from collections.abc import Iterator

import confluent_kafka
import pytest

from integration.conftest import ToolsFor
from integration.harness.kafka_tools import KafkaTools
from kclient import AdminClient, NewTopic, TopicPartition
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord

IDS = (1, 2, 3)
T0 = TopicPartition("t", 0)
HALF = 300


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3) as started:
        yield started


@pytest.fixture
def java(cluster: EmbeddedCluster, tools_for: ToolsFor) -> KafkaTools:
    return tools_for(cluster.bootstrap_servers)


def create(cluster: EmbeddedCluster, partitions: int = 1) -> None:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", partitions, 3)]).raise_for_errors()


def is_in_sync(cluster: EmbeddedCluster) -> bool:
    """Return whether the leader of the topic's first partition has all replicas in sync."""
    leader = cluster.leader_of("t", 0)
    if leader is None or leader not in cluster.brokers:
        return False
    partition = cluster.brokers[leader].services.replica_manager.hosted.table.get(T0)
    return partition is not None and len(partition.in_sync.isr) == 3


def leader(cluster: EmbeddedCluster) -> int | None:
    return cluster.leader_of("t", 0)


def follower(cluster: EmbeddedCluster) -> int | None:
    return next(each for each in IDS if each != leader(cluster))


def controller(cluster: EmbeddedCluster) -> int | None:
    return cluster.controller_id


def test_confluent_producer_loses_nothing_when_brokers_are_killed(
    cluster: EmbeddedCluster,
) -> None:
    create(cluster)
    options = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True}
    producer = confluent_kafka.Producer(options)
    sent: list[bytes] = []
    failed: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    def produce() -> None:
        for _ in range(HALF):
            value = b"%d" % len(sent)
            producer.produce("t", value, partition=0, on_delivery=delivered)
            sent.append(value)
        producer.poll(0)

    for role in (leader, follower, controller):
        wait_until(lambda: is_in_sync(cluster), "all replicas are in sync")
        wait_until(lambda: cluster.controller_id is not None, "a controller is active")
        victim = role(cluster)
        assert victim is not None
        produce()
        cluster.kill(victim)
        produce()
        assert producer.flush(60) == 0
        cluster.restart(victim)
    assert failed == []
    read = FOREIGN_CLIENTS["confluent-kafka"](cluster.bootstrap_servers).consume("t", len(sent))
    assert [record.value for record in read] == sent


@pytest.mark.parametrize("name", sorted(FOREIGN_CLIENTS))
def test_other_clients_write_and_read_through_a_failover(
    cluster: EmbeddedCluster, name: str
) -> None:
    create(cluster, partitions=3)
    client = FOREIGN_CLIENTS[name](cluster.bootstrap_servers)
    first = [ForeignRecord(b"a%d" % number, b"k%d" % number) for number in range(50)]
    client.produce("t", first)
    wait_until(lambda: is_in_sync(cluster), "all replicas are in sync")
    victim = leader(cluster)
    assert victim is not None
    cluster.kill(victim)
    second = [ForeignRecord(b"b%d" % number, b"k%d" % number) for number in range(50)]
    client.produce("t", second)
    read = client.consume("t", 100)
    values = sorted(record.value or b"" for record in read)
    assert values == sorted(record.value or b"" for record in (*first, *second))


def test_tools_see_replicas_and_quorum(cluster: EmbeddedCluster, java: KafkaTools) -> None:
    create(cluster, partitions=3)
    wait_until(lambda: is_in_sync(cluster), "all replicas are in sync")
    for partition in java.describe_topic("t"):
        assert sorted(partition.replicas) == sorted(partition.in_sync) == list(IDS)
    status = quorum_tool(java, "--bootstrap-server", java.bootstrap, "describe", "--status")
    assert re.search(rf"LeaderId:\s+{cluster.controller_id}\b", status)
    assert re.search(r"MaxFollowerLag:\s+0\b", status)
    controllers = ",".join(
        each.address
        for broker in cluster.brokers.values()
        for each in broker.bound
        if each.name == "CONTROLLER"
    )
    direct = quorum_tool(java, "--bootstrap-controller", controllers, "describe", "--replication")
    assert len(re.findall(r"^\d+\s.*\b(?:Leader|Follower)\s*$", direct, re.MULTILINE)) == 3


def quorum_tool(java: KafkaTools, *arguments: str) -> str:
    output = java.run("org.apache.kafka.tools.MetadataQuorumCommand", list(arguments))
    return output.stdout.decode()


def test_java_clients_write_and_read_through_a_failover(
    cluster: EmbeddedCluster, java: KafkaTools
) -> None:
    create(cluster, partitions=3)
    records = [ForeignRecord(b"v%d" % number, b"k%d" % number) for number in range(60)]
    java.produce("t", records[:30])
    wait_until(lambda: is_in_sync(cluster), "all replicas are in sync")
    victim = leader(cluster)
    assert victim is not None
    cluster.kill(victim)
    java.produce("t", records[30:])
    read = java.consume("t", len(records))
    assert sorted(r.value or b"" for r in read) == sorted(r.value or b"" for r in records)
