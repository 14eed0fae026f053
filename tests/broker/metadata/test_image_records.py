"""Images as records, and back."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings

from kclient.broker.metadata.image_records import encoded_records, image_records, partition_record
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.messages.metadata_records import MetadataRecord, RegisterBrokerRecord
from tests.support.virtual.metadata_histories import History, histories

ID = b"\1" * 16
ORDER = (12, 21, 0, 27, 2, 3, 4, 14, 15, 18, 11, 10)
"""Types of records in the order of the sections of a snapshot."""


def replayed(records: Iterable[MetadataRecord], offset: int) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    for record in records:
        delta.replay(record)
    return delta.apply(offset)


@settings(max_examples=150, deadline=None)
@given(histories())
def test_image_is_what_its_records_make(history: History) -> None:
    image = history.image
    again = replayed(map(MetadataRecord.decode_framed, encoded_records(image)), image.offset)
    assert again == image


@settings(max_examples=50, deadline=None)
@given(histories())
def test_image_does_not_depend_on_the_batches(history: History) -> None:
    """`History` has applied every record on its own."""
    assert replayed(history.records, history.image.offset) == history.image


@settings(max_examples=50, deadline=None)
@given(histories(), histories())
def test_changes_between_images_name_all_that_differs(first: History, second: History) -> None:
    old, new = first.image, second.image
    delta = MetadataDelta.between(old, new)
    assert delta.apply(new.offset) == new
    for changed, before, after in (
        (delta.changed_brokers, old.brokers, new.brokers),
        (delta.changed_features, old.features, new.features),
        (delta.changed_configs, old.configs, new.configs),
        (delta.changed_client_quotas, old.client_quotas, new.client_quotas),
    ):
        keys = {*before, *after}
        assert set(changed) == {key for key in keys if before.get(key) != after.get(key)}
    same = {name for name in new.topics if new.topics[name] == old.topics.get(name)}
    assert {*delta.created_topics, *delta.changed_topics} == new.topics.keys() - same
    assert {topic.name for topic in delta.deleted_topics} == {
        name
        for name in old.topics
        if name not in new.topics or new.topics[name].topic_id != old.topics[name].topic_id
    }


def test_sections_are_in_order() -> None:
    seen: set[int] = set()
    for seed in range(20):
        history = History(Random(seed))
        for _ in range(150):
            history.step()
        types = [record.record_type for record in image_records(history.image)]
        sections = [ORDER.index(2 if kind == 3 else kind) for kind in types]
        assert sections == sorted(sections)
        first = next(image_records(history.image))
        assert getattr(first, "name", "") == "metadata.version"
        seen.update(types)
    assert seen == set(ORDER)


def test_state_of_a_migration_is_written_if_there_was_one() -> None:
    assert list(image_records(MetadataImage())) == []
    image = MetadataImage(features={"metadata.version": 8})
    assert [record.record_type for record in image_records(image)] == [12]
    image = replace(image, zk_migration_state=4)
    assert [record.record_type for record in image_records(image)] == [12, 21]


@pytest.mark.parametrize(("level", "cordoned"), [(29, None), (30, [])])
def test_cordoned_directories_are_a_list_where_they_exist(
    level: int, cordoned: list[bytes] | None
) -> None:
    broker = BrokerRegistration(1, 0, ID, (), None, fenced=True)
    image = MetadataImage(features={"metadata.version": level}, brokers={1: broker})
    _, record = image_records(image)
    assert isinstance(record, RegisterBrokerRecord)
    assert record.cordoned_log_dirs == cordoned


def test_directories_before_they_had_ids_are_left_out() -> None:
    partition = PartitionRegistration((1,), (1,), 1, 0, 0, directories=(bytes(16),))
    topic = TopicImage("t", ID, (partition,))
    image = MetadataImage(
        features={"metadata.version": 16}, topics={"t": topic}, topic_names={ID: "t"}
    )
    again = replayed(map(MetadataRecord.decode_framed, encoded_records(image)), -1)
    assert again == image


def test_what_a_level_cannot_store_is_refused() -> None:
    broker = BrokerRegistration(1, 0, ID, (), None, fenced=True, directories=(ID,))
    image = MetadataImage(features={"metadata.version": 16}, brokers={1: broker})
    with pytest.raises(UnsupportedVersionError):
        list(encoded_records(image))


def test_record_of_a_partition() -> None:
    partition = PartitionRegistration((1, 2), (1,), 1, 3, 4, (ID, ID), (1,), (2,), 1, (2,), (1,))
    record = partition_record(ID, 7, partition)
    assert (record.partition_id, record.topic_id, record.leader_epoch) == (7, ID, 3)
    assert record.directories == [ID, ID]
    assert (record.eligible_leader_replicas, record.last_known_elr) == ([2], [1])
