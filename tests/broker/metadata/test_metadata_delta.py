"""Replay of metadata records."""

import pytest

from kclient.broker.metadata.metadata_delta import _ACTIONS, MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.support.virtual.controller_calls import cluster_of


def test_replay_of_records_from_other_controllers() -> None:
    before = cluster_of(1, 2)[0].image
    delta = MetadataDelta(before)
    epochs = {node_id: broker.epoch for node_id, broker in before.brokers.items()}
    topic_id = b"\2" * 16
    for record in (
        TopicRecord(name="t", topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1, 2],
            isr=[1, 2],
            leader=1,
            leader_epoch=4,
            partition_epoch=7,
        ),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[2], leader=2),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epochs[1], fenced=1),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=epochs[2]),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="x", value="1"),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="x", value=None),
    ):
        delta.replay(record)
    image = delta.apply(99)
    (part,) = image.topics["t"].partitions
    assert (part.leader, part.leader_epoch, part.isr, part.partition_epoch) == (2, 5, (2,), 8)
    assert image.live_brokers() == []
    assert image.live_nodes("INTERNAL") == []
    assert (BROKER_RESOURCE, "") not in image.configs


@pytest.mark.parametrize(
    "record",
    [
        RemoveTopicRecord(topic_id=b"\3" * 16),
        PartitionRecord(partition_id=0, topic_id=b"\3" * 16),
        BrokerRegistrationChangeRecord(broker_id=9),
        RegisterBrokerRecord(broker_id=1, end_points=[BrokerEndpoint(security_protocol=4)]),
    ],
)
def test_records_for_unknown_objects_fail(record: MetadataRecord) -> None:
    with pytest.raises(KafkaError, match="metadata log"):
        MetadataDelta(MetadataImage()).replay(record)


def test_an_image_is_not_changed_by_later_records() -> None:
    delta = MetadataDelta(MetadataImage())
    setting = ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="x", value="1")
    delta.replay(setting)
    first = delta.apply(1)
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    delta.replay(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="y", value="2"))
    second = delta.apply(2, epoch=3, timestamp_ms=4)
    assert first.topics == {}
    assert first.topic_config("t") == {"x": "1"}
    assert second.topic_config("t") == {"x": "1", "y": "2"}
    assert (second.offset, second.epoch, second.timestamp_ms) == (2, 3, 4)


def test_unchanged_parts_are_shared() -> None:
    before = cluster_of(1, 2)[0].image
    delta = MetadataDelta(before)
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    after = delta.apply(9)
    assert after.brokers is before.brokers
    assert after.features is before.features
    assert after.topics is not before.topics
    assert delta.image is before


def test_removal_of_a_topic_removes_its_settings() -> None:
    delta = MetadataDelta(MetadataImage())
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    delta.replay(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="y", value="2"))
    delta.replay(RemoveTopicRecord(topic_id=b"\1" * 16))
    assert delta.apply(2).configs == {}
    assert not delta.changed_configs


def test_every_kind_of_record_is_replayed() -> None:
    """But for those that change nothing in an image."""
    ignored = {
        NoOpRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
    }
    assert set(MetadataRecord.__subclasses__()) - _ACTIONS.keys() == ignored


def test_changes_between_images() -> None:
    old = cluster_of(1, 2)[0].image
    delta = MetadataDelta.between(MetadataImage(), old)
    assert set(delta.changed_brokers) == {1, 2}
    assert delta.image == MetadataImage()
    assert delta.apply(old.offset, old.epoch, old.timestamp_ms) == old


@pytest.mark.parametrize("number", [-1, -5, 1, 2**31 - 1])
def test_partition_records_must_be_in_order(number: int) -> None:
    delta = MetadataDelta(MetadataImage())
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    with pytest.raises(KafkaError, match=f"metadata log: t-{number} "):
        delta.replay(PartitionRecord(partition_id=number, topic_id=b"\1" * 16))


def test_duplicate_topic_name_or_id_fails() -> None:
    """Deleting one of them would delete the other."""
    delta = MetadataDelta(MetadataImage())
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    for again in (
        TopicRecord(name="t", topic_id=b"\2" * 16),
        TopicRecord(name="u", topic_id=b"\1" * 16),
    ):
        with pytest.raises(KafkaError, match="metadata log: topic"):
            delta.replay(again)
