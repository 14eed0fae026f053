"""Index of partitions by broker."""

from random import Random

import pytest

from kclient.broker.controller.partition_index import PartitionIndex
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.protocol.messages.metadata_records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


def state(index: PartitionIndex) -> tuple[object, ...]:
    members = {broker: set(index.members(broker)) for broker in range(4)}
    leads = [index.leads(broker) for broker in range(4)]
    return members, leads, set(index.leaderless), set(index.imbalanced)


def random_records(image: MetadataImage, random: Random) -> list[MetadataRecord]:
    """Return changes of one topic: its creation, its deletion, or changes of its partitions."""
    name = random.choice("ab")
    topic = image.topic(name)
    if topic is None:
        topic_id = random.randbytes(16)
        return [
            TopicRecord(name=name, topic_id=topic_id),
            *(
                PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=[0, 1],
                    isr=[0, 1],
                    leader=0,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for number in range(3)
            ),
        ]
    if random.random() < 0.2:
        return [RemoveTopicRecord(topic_id=topic.topic_id)]
    isr = random.sample(range(4), 2)
    return [
        PartitionChangeRecord(
            partition_id=number,
            topic_id=topic.topic_id,
            isr=isr,
            leader=random.choice([*isr, -1]),
            eligible_leader_replicas=[
                random.choice([each for each in range(4) if each not in isr])
            ],
        )
        for number in range(3)
        if random.random() < 0.7
    ]


@pytest.mark.parametrize("seed", range(10))
def test_index_follows_the_image(seed: int) -> None:
    random = Random(seed)
    image = MetadataImage()
    index = PartitionIndex(image)
    for offset in range(60):
        delta = MetadataDelta(image)
        for record in random_records(image, random):
            delta.replay(record)
        after = delta.apply(offset)
        index.update(image, after, delta)
        image = after
        assert state(index) == state(PartitionIndex(image))
