"""Look-ups in the immutable description of a cluster."""

import pytest

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.common.types import Node, TopicPartition

NODES = [Node(2, "h2", 9092), Node(1, "h1", 9092)]
ID = bytes(15) + b"\x01"


@pytest.fixture
def cluster() -> Cluster:
    partitions = [
        PartitionInfo("orders", 2, None),
        PartitionInfo("orders", 0, NODES[0], 4),
        PartitionInfo("orders", 1, NODES[1], 7),
        PartitionInfo("payments", 0, None),
    ]
    return Cluster(NODES, partitions, topic_ids={"orders": ID}, controller=NODES[0])


def test_nodes_keep_the_order_of_the_response(cluster: Cluster) -> None:
    assert list(cluster.nodes) == [2, 1]
    assert (cluster.node(1), cluster.node(3)) == (NODES[1], None)


def test_partitions_are_sorted_by_number(cluster: Cluster) -> None:
    assert [info.partition for info in cluster.partitions_for("orders")] == [0, 1, 2]
    assert cluster.partition_count("orders") == 3
    assert cluster.topics == {"orders", "payments"}


def test_only_partitions_with_a_leader_are_available(cluster: Cluster) -> None:
    assert [info.partition for info in cluster.available_partitions_for("orders")] == [0, 1]
    assert cluster.available_partitions_for("payments") == []
    assert cluster.leader_for(TopicPartition("orders", 1)) == NODES[1]
    assert cluster.leader_for(TopicPartition("orders", 2)) is None


def test_unknown_topics_and_partitions_have_no_description(cluster: Cluster) -> None:
    missing = TopicPartition("orders", 3)
    assert (cluster.partition(missing), cluster.leader_for(missing)) == (None, None)
    assert cluster.partitions_for("other") == []
    assert cluster.available_partitions_for("other") == []
    assert cluster.partition_count("other") is None
    assert (cluster.topic_id("orders"), cluster.topic_id("payments")) == (ID, None)


def test_bootstrap_servers_have_negative_ids() -> None:
    cluster = Cluster.bootstrap([("a", 1), ("b", 2)])
    assert cluster.is_bootstrap
    assert list(cluster.nodes.values()) == [Node(-1, "a", 1), Node(-2, "b", 2)]
    assert (cluster.cluster_id, cluster.controller, cluster.topics) == (None, None, frozenset())


def test_description_does_not_follow_its_arguments() -> None:
    ids = {"orders": ID}
    cluster = Cluster(NODES, topic_ids=ids)
    ids.clear()
    assert cluster.topic_id("orders") == ID
    with pytest.raises(TypeError):
        cluster.nodes[3] = NODES[0]  # type: ignore[index]  # what is refused


def test_another_controller_changes_no_other_view(cluster: Cluster) -> None:
    other = Node(77, "b77", 9092)
    changed = cluster.with_controller(other)
    assert changed.controller == other
    assert cluster.controller != other
    assert changed.nodes == cluster.nodes
