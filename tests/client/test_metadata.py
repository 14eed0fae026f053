"""Metadata: updates by responses, errors, and waits for an update."""

import pytest

from kclient.client.metadata import LeaderIdAndEpoch, Metadata
from kclient.common.broker_errors import (
    InvalidTopicError,
    SaslAuthenticationError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import ClosedError
from kclient.common.types import Node, TopicPartition
from tests.client.metadata_world import ID_1, ID_2, ORDERS, MetadataWorld, response, topic
from tests.support.virtual.virtual_home import VirtualHome


def test_response_updates_cluster(known: MetadataWorld) -> None:
    assert known.metadata.cluster().is_bootstrap
    assert [str(node) for node in known.metadata.cluster().nodes.values()] == ["b0:9092 (id: -1)"]
    known.update(topic(partitions=3))
    cluster = known.metadata.cluster()
    assert cluster.cluster_id == "cluster"
    assert cluster.controller == Node(2, "b2", 9092)
    assert cluster.topics == {"orders"}
    assert [info.partition for info in cluster.partitions_for("orders")] == [0, 1, 2]
    info = cluster.partition(ORDERS)
    assert info is not None
    assert info.leader == cluster.leader_for(ORDERS) == Node(1, "b1", 9092)
    assert [node.id for node in info.replicas] == [1, 2, 9]
    assert [node.id for node in info.offline_replicas] == [9]
    assert cluster.topic_id("orders") == ID_1
    assert cluster.partition_count("other") is None


def test_newer_epoch_of_other_response_requests_update(known: MetadataWorld) -> None:
    assert not known.metadata.update_last_seen_epoch_if_newer(ORDERS, 5)
    known.update(topic(epoch=5))
    assert known.metadata.time_to_next_update(known.now_ms) > 1000
    assert not known.metadata.update_last_seen_epoch_if_newer(ORDERS, 5)
    assert known.metadata.update_last_seen_epoch_if_newer(ORDERS, 6)
    assert known.metadata.time_to_next_update(known.now_ms) <= 120
    known.update(topic(leader=2, epoch=5))
    assert known.leader() == (1, 5)
    assert not known.metadata.update_last_seen_epoch_if_newer(ORDERS, 6)


def test_newer_leader_of_other_response_is_applied(known: MetadataWorld) -> None:
    known.update(topic(leader=1, epoch=5, partitions=2))
    news = {
        ORDERS: LeaderIdAndEpoch(3, 6),
        TopicPartition("orders", 1): LeaderIdAndEpoch(3, 5),
        TopicPartition("orders", 7): LeaderIdAndEpoch(3, 9),
        TopicPartition("other", 0): LeaderIdAndEpoch(3, 9),
    }
    assert known.metadata.update_partition_leadership(news, [Node(3, "b3", 9092)]) == {ORDERS}
    assert known.leader() == (3, 6)
    nowhere = {ORDERS: LeaderIdAndEpoch(8, 7)}
    assert known.metadata.update_partition_leadership(nowhere, []) == set()


def test_unknown_topic_is_requested_again_and_has_error(known: MetadataWorld) -> None:
    known.update(topic(error=3))
    assert isinstance(known.metadata.topic_error("orders"), UnknownTopicOrPartitionError)
    assert known.metadata.cluster().topics == frozenset()
    assert known.metadata.time_to_next_update(known.now_ms) <= 120
    known.metadata.maybe_raise_any_error()


@pytest.mark.parametrize(("code", "kind"), [(17, InvalidTopicError), (29, TopicAuthorizationError)])
def test_non_retriable_topic_error_is_raised_once(
    known: MetadataWorld, code: int, kind: type[Exception]
) -> None:
    known.metadata.add_topic("secret", known.now_ms)
    known.update(topic(), topic("secret", error=code))
    with pytest.raises(kind, match="secret"):
        known.metadata.maybe_raise_any_error()
    known.metadata.maybe_raise_any_error()
    known.update(topic(), topic("secret", error=code))
    known.metadata.maybe_raise_error_for_topic("orders")
    with pytest.raises(kind, match="secret"):
        known.metadata.maybe_raise_error_for_topic("secret")


def test_await_update_ends_on_response_error_or_close(known: MetadataWorld) -> None:
    version = known.metadata.update_version()
    before = known.now_ms
    assert not known.await_update(version, 500)
    assert known.now_ms - before == 500
    known.net.clock.after(100, lambda: known.update(topic()))
    assert known.await_update(version, 5_000)
    known.net.clock.after(
        100, lambda: known.metadata.fatal_error(SaslAuthenticationError("wrong password"))
    )
    with pytest.raises(SaslAuthenticationError, match="wrong password"):
        known.await_update(known.metadata.update_version(), 5_000)
    known.net.clock.after(100, known.metadata.close)
    with pytest.raises(ClosedError):
        known.await_update(known.metadata.update_version(), 5_000)


def test_bootstrap_server_is_never_controller() -> None:
    metadata = Metadata(VirtualHome().runtime)
    metadata.bootstrap([("a", 9092), ("b", 9092)])
    assert metadata.cluster().controller is None


def test_equal_response_keeps_the_view_of_the_cluster(known: MetadataWorld) -> None:
    known.update(topic(partitions=3))
    before = known.metadata.cluster()
    known.update(topic(partitions=3))
    assert known.metadata.cluster() is before
    other = response(topic(partitions=3))
    other.controller_id = 1
    known.metadata.update(known.metadata.next_request(known.now_ms), other, known.now_ms)
    changed = known.metadata.cluster()
    assert (before.controller, changed.controller) == (Node(2, "b2", 9092), Node(1, "b1", 9092))
    assert changed.partitions_for("orders") is before.partitions_for("orders")
    known.update(topic(partitions=4))
    assert known.metadata.cluster().partition_count("orders") == 4


def test_newer_leaders_of_several_topics_are_applied_together(known: MetadataWorld) -> None:
    topics = [topic(epoch=5, partitions=3), topic("bills", epoch=5, partitions=2, topic_id=ID_2)]
    known.metadata.add_topic("bills", known.now_ms)
    known.update(*topics)
    moved = {
        TopicPartition("orders", 0): LeaderIdAndEpoch(3, 6),
        TopicPartition("orders", 2): LeaderIdAndEpoch(2, 7),
        TopicPartition("bills", 1): LeaderIdAndEpoch(3, 8),
    }
    updated = known.metadata.update_partition_leadership(moved, [Node(3, "b3", 9092)])
    assert updated == moved.keys()
    cluster = known.metadata.cluster()
    leaders = [
        (info.topic, info.leader.id if info.leader else None, info.leader_epoch)
        for name in ("orders", "bills")
        for info in cluster.partitions_for(name)
    ]
    assert leaders == [
        ("orders", 3, 6),
        ("orders", 1, 5),
        ("orders", 2, 7),
        ("bills", 1, 5),
        ("bills", 3, 8),
    ]
