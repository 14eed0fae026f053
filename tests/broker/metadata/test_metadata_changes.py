"""Differences of two images."""

from dataclasses import replace

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import (
    DelegationToken,
    MetadataImage,
    PartitionRegistration,
    StandardAcl,
    TopicImage,
)
from kclient.network.sasl.scram import ScramCredential

A_ID, B_ID, C_ID = (bytes(15) + bytes([last]) for last in (101, 102, 103))
PARTITION = PartitionRegistration((1, 2), (1, 2), 1, 0, 0)
MOVED = PARTITION._replace(leader=2, leader_epoch=1, partition_epoch=1)


def image_with(*topics: TopicImage) -> MetadataImage:
    return MetadataImage(
        topics={topic.name: topic for topic in topics},
        topic_names={topic.topic_id: topic.name for topic in topics},
    )


def changes(old: MetadataImage, new: MetadataImage) -> MetadataChanges:
    found = MetadataChanges()
    found.add_differences(old, new)
    return found


def test_equal_images_have_no_differences() -> None:
    image = image_with(TopicImage("a", A_ID, (PARTITION,)))
    assert vars(changes(image, replace(image, offset=5))) == vars(MetadataChanges())


def test_created_changed_and_deleted_topics() -> None:
    old = image_with(
        TopicImage("same", A_ID, (PARTITION,)),
        TopicImage("more", B_ID, (PARTITION, PARTITION)),
        TopicImage("gone", C_ID, (PARTITION,)),
    )
    new = image_with(
        TopicImage("same", A_ID, (PARTITION,)),
        TopicImage("more", B_ID, (PARTITION, MOVED, PARTITION)),
        TopicImage("new", b"\4" * 16, (PARTITION,)),
    )
    found = changes(old, new)
    assert list(found.created_topics) == ["new"]
    assert list(found.changed_topics) == ["more"]
    assert found.deleted_topics == [old.topics["gone"]]
    assert found.changed_partitions == {"more": {1: None, 2: None}, "new": {0: None}}


def test_topic_with_another_id_is_another_topic() -> None:
    old = image_with(TopicImage("a", A_ID, (PARTITION, PARTITION)))
    found = changes(old, image_with(TopicImage("a", B_ID, (PARTITION, PARTITION))))
    assert found.deleted_topics == [old.topics["a"]]
    assert list(found.created_topics) == ["a"]
    assert found.changed_partitions == {"a": {0: None, 1: None}}
    assert not found.changed_topics


def test_other_differences() -> None:
    token = DelegationToken("a", "a", (), 1, 2, 3)
    acl = StandardAcl(2, "t", 3, "User:a", "*", 3, 3)
    entity = (("user", "u"),)
    old = MetadataImage(
        configs={(2, "a"): {"x": "1"}, (2, "b"): {"x": "1"}},
        features={"f": 1, "g": 1},
        acls={A_ID: acl},
    )
    new = MetadataImage(
        configs={(2, "a"): {"x": "2"}, (2, "b"): {"x": "1"}},
        features={"f": 1},
        client_quotas={entity: {"consumer_byte_rate": 1.0}},
        scram={(1, "u"): ScramCredential(b"", b"", b"", 4096)},
        delegation_tokens={"id": token},
    )
    found = changes(old, new)
    assert list(found.changed_configs) == [(2, "a")]
    assert list(found.changed_features) == ["g"]
    assert list(found.changed_client_quotas) == [entity]
    assert list(found.changed_scram) == [(1, "u")]
    assert list(found.changed_acls) == [A_ID]
    assert list(found.changed_delegation_tokens) == ["id"]
