"""Replay of metadata records."""

import pytest

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import BROKER_RESOURCE, MetadataImage
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.support.virtual.controller_calls import cluster_of


def test_replay_of_records_from_other_controllers() -> None:
    delta = MetadataDelta(cluster_of(1, 2)[0].image)
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
        BrokerRegistrationChangeRecord(broker_id=1, fenced=1),
        UnregisterBrokerRecord(broker_id=2),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="x", value="1"),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="x", value=None),
    ):
        delta.replay(record)
    image = delta.apply(99)
    (part,) = image.topics["t"].partitions
    assert (part.leader, part.leader_epoch, part.isr, part.partition_epoch) == (2, 5, (2,), 8)
    assert image.live_brokers() == []
    assert image.live_nodes("INTERNAL") == []
    assert image.configs[BROKER_RESOURCE, ""] == {}


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
