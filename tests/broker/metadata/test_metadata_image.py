"""Image of the cluster metadata."""

import pytest

from kclient.broker.metadata.metadata_image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    TOPIC_RESOURCE,
    UNASSIGNED_DIRECTORY,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.common.types import Node, TopicPartition
from kclient.network.endpoint import Endpoint, SecurityProtocol

A_ID, B_ID = bytes(15) + b"\1", bytes(15) + b"\2"


def led_by(*leaders: int) -> tuple[PartitionRegistration, ...]:
    return tuple(PartitionRegistration((1, 2), (1, 2), leader, 0, 0) for leader in leaders)


def endpoint(name: str, port: int) -> Endpoint:
    return Endpoint(name, "host", port, SecurityProtocol.PLAINTEXT)


def broker(node_id: int, *listeners: str, fenced: bool = False) -> BrokerRegistration:
    endpoints = tuple(endpoint(name, 9000 + node_id) for name in listeners)
    return BrokerRegistration(node_id, 1, bytes(16), endpoints, f"rack-{node_id}", fenced)


IMAGE = MetadataImage(
    topics={"a": TopicImage("a", A_ID, led_by(1, 2, 1)), "b": TopicImage("b", B_ID, led_by(2))},
    topic_names={A_ID: "a", B_ID: "b"},
    configs={(TOPIC_RESOURCE, "a"): {"retention.ms": "1"}, (4, "a"): {"other": "2"}},
    brokers={
        3: broker(3, "EXTERNAL"),
        1: broker(1, "INTERNAL", "EXTERNAL"),
        2: broker(2, "EXTERNAL", fenced=True),
    },
)


def test_topics_are_found_by_name_and_id() -> None:
    assert IMAGE.topic("b") is IMAGE.topic_by_id(B_ID) is IMAGE.topics["b"]
    assert IMAGE.topic("c") is IMAGE.topic_by_id(bytes(16)) is None
    assert IMAGE.partition_count() == 4


@pytest.mark.parametrize(
    ("topic", "number", "leader"), [("a", 0, 1), ("a", 1, 2), ("b", 0, 2), ("a", 2, 1)]
)
def test_partition_of_topic(topic: str, number: int, leader: int) -> None:
    found = IMAGE.partition(TopicPartition(topic, number))
    assert found is not None
    assert found.leader == leader


@pytest.mark.parametrize(("topic", "number"), [("a", 3), ("a", -1), ("b", 1), ("c", 0)])
def test_unknown_partition_is_none(topic: str, number: int) -> None:
    assert IMAGE.partition(TopicPartition(topic, number)) is None


def test_live_brokers_are_ordered_and_not_fenced() -> None:
    assert [each.id for each in IMAGE.live_brokers()] == [1, 3]
    assert IMAGE.broker(2) is not None
    assert IMAGE.broker(4) is None


def test_nodes_have_the_address_of_the_listener() -> None:
    assert IMAGE.live_nodes("EXTERNAL") == [
        Node(1, "host", 9001, "rack-1"),
        Node(3, "host", 9003, "rack-3"),
    ]
    assert [node.id for node in IMAGE.live_nodes("INTERNAL")] == [1]
    assert IMAGE.live_nodes("OTHER") == []


def test_topic_config_is_empty_without_overrides() -> None:
    assert IMAGE.topic_config("a") == {"retention.ms": "1"}
    assert IMAGE.topic_config("b") == {}


@pytest.mark.parametrize(
    ("name", "internal"),
    [("__consumer_offsets", True), ("__transaction_state", True), ("__mine", False), ("a", False)],
)
def test_only_topics_of_the_brokers_are_internal(name: str, *, internal: bool) -> None:
    assert TopicImage(name, A_ID, ()).is_internal is internal


def test_directory_of_a_new_replica() -> None:
    none, one, two = (broker(1)._replace(directories=ids) for ids in ((), (A_ID,), (A_ID, B_ID)))
    assert none.default_directory == MIGRATING_DIRECTORY == bytes(16)
    assert one.default_directory == A_ID
    assert two.default_directory == UNASSIGNED_DIRECTORY == bytes(15) + b"\1"


def test_directories_online() -> None:
    other = b"\7" * 16
    some = broker(1)._replace(directories=(b"\6" * 16,))
    assert some.has_online_directory(b"\6" * 16)
    assert not some.has_online_directory(other)
    assert broker(1).has_online_directory(other)
    for known in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY):
        assert some.has_online_directory(known)
    for each in (some, broker(1)):
        assert not each.has_online_directory(LOST_DIRECTORY)


def test_active_brokers_are_neither_fenced_nor_shutting_down() -> None:
    assert broker(1).is_active
    assert not broker(1, fenced=True).is_active
    assert not broker(1)._replace(in_controlled_shutdown=True).is_active
