"""Partitions that move between the brokers of a cluster, and back."""

from collections.abc import Iterator

import pytest

from kclient import Producer
from kclient.common.types import TopicPartition
from kclient.protocol.messages.leaders_and_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kclient.protocol.messages.metadata import MetadataResponsePartition
from kclient.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, records_of

T0 = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3) as running:
        yield running


@pytest.fixture
def wire(cluster: EmbeddedCluster) -> Iterator[Wire]:
    with Wire(cluster.bootstrap_servers.split(",")[0]) as connection:
        yield connection


def create(wire: Wire, cluster: EmbeddedCluster, *replicas: int) -> None:
    """Create a topic with a partition of 20 records."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    wanted = CreatableTopic(
        name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
    response = wire.ask(request, 7, CreateTopicsResponse)
    assert response.topics[0].error_code == 0
    with Producer(bootstrap_servers=cluster.bootstrap_servers, acks=1) as producer:
        for number in range(20):
            producer.send("t", b"%d" % number, partition=0).result(20)


def reassign(wire: Wire, replicas: list[int] | None) -> int:
    wanted = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name="t", partitions=[wanted])
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic])
    response = wire.ask(request, 1, AlterPartitionReassignmentsResponse)
    assert response.error_code == 0
    return response.responses[0].partitions[0].error_code


def ongoing(wire: Wire) -> list[tuple[list[int], list[int]]]:
    """Return the replicas that are added and removed."""
    request = ListPartitionReassignmentsRequest(topics=None)
    response = wire.ask(request, 0, ListPartitionReassignmentsResponse)
    assert response.error_code == 0
    return [
        (part.adding_replicas, part.removing_replicas)
        for topic in response.topics
        for part in topic.partitions
    ]


def described(wire: Wire) -> MetadataResponsePartition:
    return wire.metadata("t").topics[0].partitions[0]


def test_records_move_to_other_brokers(cluster: EmbeddedCluster, wire: Wire) -> None:
    create(wire, cluster, 1)
    assert reassign(wire, [2, 3]) == 0
    wait_until(lambda: sorted(described(wire).isr_nodes) == [2, 3], "the partition has moved", 30)
    wait_until(lambda: not ongoing(wire), "the reassignment has ended", 30)
    found = described(wire)
    assert found.replica_nodes == [2, 3]
    for node in (2, 3):
        assert cluster.brokers[node].storage.replicas.partition(T0).log.log_end_offset == 20
    removed = cluster.brokers[1].storage.replicas.hosted
    wait_until(lambda: T0 not in removed.table, "the old replica is removed", 30)
    addresses = cluster.bootstrap_servers.split(",")
    with Wire(addresses[found.leader_id - 1]) as leader:
        wait_until(lambda: leader.fetch("t", 0).error_code == 0, "the leader serves", 30)
        assert len(records_of(leader.fetch("t", 0).records)) == 20


def test_reassignment_to_a_stopped_broker_is_cancelled(
    cluster: EmbeddedCluster, wire: Wire
) -> None:
    create(wire, cluster, 1, 2)
    cluster.stop(3)
    assert reassign(wire, [1, 3]) == 0
    wait_until(lambda: ongoing(wire) == [([3], [2])], "the reassignment is listed", 30)
    assert described(wire).replica_nodes == [1, 3, 2]
    assert reassign(wire, None) == 0
    wait_until(lambda: not ongoing(wire), "the reassignment is cancelled", 30)
    assert described(wire).replica_nodes == [1, 2]
    assert reassign(wire, None) == 85
