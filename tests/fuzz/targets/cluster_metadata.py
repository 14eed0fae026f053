"""Cluster metadata log: replay of records and the resulting image.

An input is a list of values of records of ``__cluster_metadata``.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from random import Random

from kclient.broker.log.log_config import LogConfig
from kclient.broker.metadata.image_records import encoded_records
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import TOPIC_RESOURCE, MetadataImage
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kclient.protocol.types import read_uvarint
from tests.fuzz.message_mutation import TOPIC, TOPIC_ID, MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.pieces import mutate_pieces, packed, unpacked
from tests.fuzz.target import MEBIBYTE, Target

_MUTATOR = MessageMutator(("t", "retention.ms", "segment.bytes", "cleanup.policy", "compact", "1"))
_OTHER_ID = bytes(range(16, 32))


def run(data: bytes) -> None:
    """Replay the records, and read everything in the image."""
    delta = MetadataDelta(MetadataImage())
    with refusals():
        for piece in unpacked(data):
            delta.replay(MetadataRecord.decode_framed(piece or b""))
    image = delta.apply(7)
    for name, topic in image.topics.items():
        assert image.topic_by_id(topic.topic_id) is topic
        assert topic.name == name
        with refusals():
            LogConfig.parse(image.topic_config(name), LogConfig())
    assert repr(image.live_brokers())
    with refusals():
        again = MetadataDelta(MetadataImage())
        for value in list(encoded_records(image)):
            again.replay(MetadataRecord.decode_framed(value))
        assert again.apply(7).topics.keys() == image.topics.keys()


@cache
def _good() -> list[bytes]:
    records: list[tuple[MetadataRecord, int]] = [
        (RegisterBrokerRecord(broker_id=1, broker_epoch=3, incarnation_id=_OTHER_ID), 3),
        (TopicRecord(name=TOPIC, topic_id=TOPIC_ID), 0),
        (PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1), 1),
        (PartitionRecord(partition_id=1, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1), 0),
        (PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=[1], leader=1), 0),
        (ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=TOPIC, name="a", value="1"), 0),
        (ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=1000), 0),
        (TopicRecord(name="t", topic_id=_OTHER_ID), 0),
        (RemoveTopicRecord(topic_id=_OTHER_ID), 0),
        (UnregisterBrokerRecord(broker_id=1, broker_epoch=3), 0),
    ]
    return [record.encode_framed(version) for record, version in records]


def seeds() -> Iterator[bytes]:
    """Yield a short history, its parts, and a record of each kind."""
    good = _good()
    for end in range(len(good) + 1):
        yield packed(good[:end])
    for kind in MetadataRecord.__subclasses__():
        yield packed([*good[:3], kind().encode_framed(kind.min_version)])


def mutate(data: bytes, random: Random) -> bytes:
    """Change a record, or add one."""
    if random.random() < 0.25:
        return data + packed([random.choice(_good())])
    return mutate_pieces(data, random, mutate_record)


def mutate_record(value: bytes, random: Random) -> bytes:
    """Change a record as a message, rarely its type."""
    if random.random() < 0.1:
        other = random.choice(MetadataRecord.__subclasses__())
        return other().encode_framed(other.min_version)[:3] + _MUTATOR.made(
            other, other.min_version, random
        )
    with suppress(KafkaError):
        record = MetadataRecord.decode_framed(value)
        _, position = read_uvarint(value, 0)
        _, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
        body = _MUTATOR.mutated(type(record), version, value[position:], random)
        return value[:position] + body
    return spoil(value, random)


TARGET = Target(run, seeds, mutate, lambda size: 4 * MEBIBYTE + 100 * size)
