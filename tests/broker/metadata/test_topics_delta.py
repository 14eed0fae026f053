"""Replay of topics and partitions."""

import pytest

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    MIGRATING_DIRECTORY,
    RECOVERED,
    RECOVERING,
    MetadataImage,
    PartitionRegistration,
)
from kclient.broker.metadata.topics_delta import TopicsDelta
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ID, OTHER_ID = b"\1" * 16, b"\2" * 16
D1, D2, D3 = (bytes([number]) * 16 for number in (11, 12, 13))
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=ID,
    replicas=[1, 2],
    isr=[1],
    removing_replicas=[1],
    adding_replicas=[2],
    leader=1,
    leader_recovery_state=RECOVERING,
    leader_epoch=4,
    partition_epoch=7,
    directories=[D1, D2],
    eligible_leader_replicas=[2],
    last_known_elr=[3],
)


def image_of(*records: MetadataRecord) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    for record in (TopicRecord(name="t", topic_id=ID), *records):
        delta.replay(record)
    return delta.apply(1)


def changed(
    change: PartitionChangeRecord, base: PartitionRecord = PARTITION
) -> PartitionRegistration:
    change.topic_id, change.partition_id = ID, 0
    return image_of(base, change).topics["t"].partitions[0]


def test_partition_has_everything_of_its_record() -> None:
    expected = PartitionRegistration(
        replicas=(1, 2),
        isr=(1,),
        leader=1,
        leader_epoch=4,
        partition_epoch=7,
        directories=(D1, D2),
        removing=(1,),
        adding=(2,),
        recovery_state=RECOVERING,
        elr=(2,),
        last_known_elr=(3,),
    )
    assert image_of(PARTITION).topics["t"].partitions == (expected,)


def test_partition_without_directories_is_migrating() -> None:
    old = PartitionRecord(partition_id=0, topic_id=ID, replicas=[1, 2], isr=[1], leader=1)
    assert image_of(old).topics["t"].partitions[0].directories == (MIGRATING_DIRECTORY,) * 2


def test_empty_change_raises_the_partition_epoch_alone() -> None:
    before = image_of(PARTITION).topics["t"].partitions[0]
    assert changed(PartitionChangeRecord()) == before._replace(partition_epoch=8)


@pytest.mark.parametrize("leader", [1, 2, -1])
def test_a_leader_in_the_change_raises_the_leader_epoch(leader: int) -> None:
    """Also if it is the leader already."""
    after = changed(PartitionChangeRecord(leader=leader))
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (leader, 5, 8)


def test_all_parts_of_a_change() -> None:
    after = changed(
        PartitionChangeRecord(
            isr=[],
            replicas=[2, 3],
            removing_replicas=[],
            adding_replicas=[3],
            leader_recovery_state=RECOVERED,
            directories=[D2, D3],
            eligible_leader_replicas=[2, 3],
            last_known_elr=[],
        )
    )
    assert after == PartitionRegistration(
        replicas=(2, 3),
        isr=(),
        leader=1,
        leader_epoch=4,
        partition_epoch=8,
        directories=(D2, D3),
        adding=(3,),
        recovery_state=RECOVERED,
        elr=(2, 3),
    )


def test_replicas_without_directories_keep_those_of_the_replicas_that_stay() -> None:
    after = changed(PartitionChangeRecord(replicas=[3, 2]))
    assert after.directories == (MIGRATING_DIRECTORY, D2)


@pytest.mark.parametrize(
    "record",
    [
        PartitionRecord(partition_id=0, topic_id=ID, replicas=[1, 2], directories=[D1]),
        PartitionChangeRecord(partition_id=0, topic_id=ID, directories=[D1]),
        PartitionChangeRecord(partition_id=1, topic_id=ID),
        PartitionChangeRecord(partition_id=0, topic_id=OTHER_ID),
        ClearElrRecord(topic_name="u"),
    ],
)
def test_contradictions_are_refused(record: MetadataRecord) -> None:
    with pytest.raises(KafkaError, match="metadata log"):
        image_of(PARTITION, record)


@pytest.mark.parametrize(("name", "others"), [("t", (5,)), ("", ())])
def test_eligible_leader_replicas_are_cleared(name: str, others: tuple[int, ...]) -> None:
    other = PartitionRecord(
        partition_id=0, topic_id=OTHER_ID, replicas=[5], eligible_leader_replicas=[5]
    )
    image = image_of(
        PARTITION,
        TopicRecord(name="u", topic_id=OTHER_ID),
        other,
        ClearElrRecord(topic_name=name),
    )
    partition = image.topics["t"].partitions[0]
    assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == ((), (), 7)
    assert image.topics["u"].partitions[0].elr == others


def test_changes_name_topics_and_partitions() -> None:
    second = PartitionRecord(partition_id=1, topic_id=ID, replicas=[1])
    image = image_of(PARTITION, second)
    delta = MetadataDelta(image)
    delta.replay(PartitionChangeRecord(partition_id=1, topic_id=ID, leader=1))
    delta.replay(TopicRecord(name="u", topic_id=OTHER_ID))
    delta.replay(PartitionRecord(partition_id=0, topic_id=OTHER_ID, replicas=[1]))
    assert list(delta.created_topics) == ["u"]
    assert list(delta.changed_topics) == ["t"]
    assert delta.changed_partitions == {"t": {1: None}, "u": {0: None}}
    assert isinstance(delta.topics_delta, TopicsDelta)
    delta.replay(RemoveTopicRecord(topic_id=ID))
    assert delta.changed_partitions == {"u": {0: None}}
    (deleted,) = delta.deleted_topics
    assert deleted.partitions[1].leader_epoch == second.leader_epoch + 1
