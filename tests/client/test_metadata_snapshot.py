"""Snapshots: equality, merging of responses, and the cluster that they describe."""

from kclient.client.metadata_snapshot import (
    MetadataSnapshot,
    PartitionMetadata,
    TopicMetadata,
)
from kclient.common.broker_errors import TopicAuthorizationError
from kclient.common.types import Node, TopicPartition

NODE_1, NODE_2 = Node(1, "h1", 9092), Node(2, "h2", 9092)
NODES = {1: NODE_1, 2: NODE_2}
ID = bytes(15) + b"\x01"
ORDERS = TopicMetadata(ID, partitions={0: PartitionMetadata(1, 4, (1, 2, 9), (1, 2), (9,))})
REFUSED = TopicMetadata(error_code=29, error_detail="no access")


def snapshot(**topics: TopicMetadata) -> MetadataSnapshot:
    return MetadataSnapshot(NODES, topics, "c", 2)


def test_topics_and_partitions_are_found_by_name() -> None:
    known = snapshot(orders=ORDERS)
    assert (known.topic("orders"), known.topic("other")) == (ORDERS, None)
    assert known.partition("orders", 0) == ORDERS.partitions[0]
    assert (known.partition("orders", 1), known.partition("other", 0)) == (None, None)


def test_error_of_a_topic_has_its_detail() -> None:
    assert ORDERS.error is None
    assert isinstance(REFUSED.error, TopicAuthorizationError)
    assert "no access" in str(REFUSED.error)


def test_another_controller_is_no_change_of_the_cluster() -> None:
    known = snapshot(orders=ORDERS)
    assert known.describes_same_cluster(known._replace(controller_id=1))
    assert not known.describes_same_cluster(known._replace(nodes={1: NODE_1}))
    assert not known.describes_same_cluster(snapshot(orders=REFUSED))


def test_merge_keeps_topics_that_are_still_wanted() -> None:
    older = snapshot(orders=ORDERS, gone=ORDERS, internal=TopicMetadata(is_internal=True))
    newer = MetadataSnapshot({1: NODE_1}, {"orders": REFUSED}, "c2", 1)
    merged = older.merged(newer, lambda name, internal: internal or name == "orders")
    assert set(merged.topics) == {"orders", "internal"}
    assert merged.topics["orders"] is REFUSED
    assert (merged.nodes, merged.cluster_id, merged.controller_id) == ({1: NODE_1}, "c2", 1)


def test_cluster_has_topics_without_error() -> None:
    cluster = snapshot(
        orders=ORDERS, refused=REFUSED, internal=ORDERS._replace(topic_id=None, is_internal=True)
    ).cluster()
    assert cluster.topics == {"orders", "internal"}
    assert cluster.internal_topics == {"internal"}
    assert (cluster.topic_id("orders"), cluster.topic_id("internal")) == (ID, None)
    assert (cluster.controller, cluster.cluster_id) == (NODE_2, "c")


def test_replica_whose_broker_is_down_has_an_id_only() -> None:
    info = snapshot(orders=ORDERS).cluster().partition(TopicPartition("orders", 0))
    assert info is not None
    assert (info.leader, info.leader_epoch) == (NODE_1, 4)
    assert info.replicas == (NODE_1, NODE_2, Node(9, "", -1))
    assert info.in_sync_replicas == (NODE_1, NODE_2)
    assert info.offline_replicas == (Node(9, "", -1),)


def test_leader_that_is_no_known_broker_is_none() -> None:
    topic = TopicMetadata(partitions={0: PartitionMetadata(7, 4)})
    cluster = snapshot(orders=topic).cluster()
    assert cluster.leader_for(TopicPartition("orders", 0)) is None
    assert cluster.partition_count("orders") == 1


def test_bootstrap_server_is_not_the_controller() -> None:
    cluster = MetadataSnapshot.bootstrap([("a", 1), ("b", 2)]).cluster()
    assert cluster.is_bootstrap
    assert cluster.controller is None
    assert [node.host for node in cluster.nodes.values()] == ["a", "b"]
