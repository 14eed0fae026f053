"""Produce requests with the batches of a node."""

from collections.abc import Sequence
from typing import cast

from kclient.common.types import TopicPartition
from kclient.common.uuids import ZERO_UUID
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.producer_batch import ProducerBatch
from kclient.protocol.messages.produce import ProduceRequest
from kclient.record import CompressionType, RecordBatch
from tests.support.virtual.producer_parts import ProducerParts

PARTS = ProducerParts()


def batch(topic: str, partition: int, value: bytes) -> ProducerBatch:
    made = ProducerBatch(bytearray(500), PARTS.result(TopicPartition(topic, partition)), 0.0)
    made.builder.append(0, None, value, None)
    made.close()
    made.seal(CompressionType.NONE, None)
    return made


def builder(batches: Sequence[ProducerBatch], **ids: bytes) -> ProduceRequestBuilder:
    return ProduceRequestBuilder(1, 30_000, batches, ids)


def test_batches_are_grouped_by_topic() -> None:
    batches = [batch("a", 1, b"a1"), batch("b", 0, b"b0"), batch("a", 0, b"a0")]
    request = builder(batches, a=b"a" * 16, b=b"b" * 16).build(13)
    assert (request.acks, request.timeout_ms) == (1, 30_000)
    assert {
        topic.name: {data.index: data.records for data in topic.partition_data}
        for topic in request.topic_data
    } == {
        "a": {1: batches[0].sealed, 0: batches[2].sealed},
        "b": {0: batches[1].sealed},
    }


def test_topic_ids_are_used_if_all_are_known() -> None:
    batches = [batch("a", 0, b"x"), batch("b", 0, b"x")]
    known = builder(batches, a=b"a" * 16, b=b"b" * 16)
    assert known.latest_allowed_version == 13
    assert [topic.topic_id for topic in known.build(13).topic_data] == [b"a" * 16, b"b" * 16]


def test_one_unknown_topic_id_limits_the_version() -> None:
    batches = [batch("a", 0, b"x"), batch("b", 0, b"x")]
    unknown = builder(batches, a=b"a" * 16)
    assert unknown.latest_allowed_version == 12
    assert unknown.topic_ids == {"a": b"a" * 16, "b": ZERO_UUID}


def test_encoded_request_contains_the_sealed_batches() -> None:
    made = builder([batch("a", 0, b"the value")], a=b"a" * 16)
    for version in range(made.oldest_allowed_version, made.latest_allowed_version + 1):
        encoded = b"".join(cast("list[bytes]", made.build(version).encode(version)))
        decoded = ProduceRequest.decode(encoded, version)
        (topic,) = decoded.topic_data
        assert (topic.name == "a") is (version < 13)
        records = topic.partition_data[0].records
        assert isinstance(records, bytes | memoryview)
        assert [record.value for record in RecordBatch(records).records()] == [b"the value"]
