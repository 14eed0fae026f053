"""Produce requests with the batches of a node."""

import itertools
from collections.abc import Sequence
from typing import Any, cast

import pytest

from kclient.common.files import WirePart
from kclient.common.types import TopicPartition
from kclient.common.uuids import ZERO_UUID
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.single_batch_codec import decode_single
from kclient.protocol.headers import decode_response_body, encode_request, encode_response
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import CompressionType, RecordBatch
from tests.support.virtual.producer_parts import ProducerParts

PARTS = ProducerParts()


def batch(topic: str, partition: int, value: bytes) -> ProducerBatch:
    made = ProducerBatch(bytearray(500), PARTS.result(TopicPartition(topic, partition)), 0.0)
    made.builder.append(0, None, value, None)
    made.close()
    made.seal(CompressionType.NONE, None)
    return made


def bytes_of(part: WirePart) -> bytes:
    assert isinstance(part, bytes | bytearray | memoryview)
    return bytes(part)


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


@pytest.mark.parametrize("client_id", [None, "", "a client"])
@pytest.mark.parametrize("size", [0, 10, 200, 3_000, 5_000, 20_000])
def test_single_batch_is_encoded_as_any_request(size: int, client_id: str | None) -> None:
    made = builder([batch("a", 7, b"v" * size)], a=b"i" * 16)
    expected = encode_request(made.build(13), 13, 4_711, client_id)
    assert list(map(bytes_of, made.encode(13, 4_711, client_id))) == list(map(bytes_of, expected))


@pytest.mark.parametrize("version", [7, 9, 12, 13])
def test_other_requests_are_encoded_by_their_fields(version: int) -> None:
    made = builder([batch("a", 0, b"x"), batch("a", 1, b"y")], a=b"i" * 16)
    expected = encode_request(made.build(version), version, 5, "id")
    assert list(map(bytes_of, made.encode(version, 5, "id"))) == list(map(bytes_of, expected))


def acknowledgement(**changed: Any) -> PartitionProduceResponse:
    partition = PartitionProduceResponse(index=3, base_offset=2**40, log_start_offset=17)
    for name, value in changed.items():
        setattr(partition, name, value)
    return partition


def response(*partitions: PartitionProduceResponse, throttle_ms: int = 0) -> ProduceResponse:
    topic = TopicProduceResponse(topic_id=b"i" * 16, partition_responses=list(partitions))
    return ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms)


RESPONSES = {
    "usual": response(acknowledgement()),
    "throttled": response(acknowledgement(), throttle_ms=250),
    "log append time": response(acknowledgement(log_append_time_ms=1_700_000_000_000)),
    "two partitions": response(acknowledgement(), acknowledgement(index=4)),
    "no partition": response(),
    "no topic": ProduceResponse(responses=[]),
    "error": response(acknowledgement(error_code=6, base_offset=-1)),
    "message": response(acknowledgement(error_code=87, error_message="no")),
    "leader": response(
        acknowledgement(error_code=6, current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2))
    ),
    "record errors": response(
        acknowledgement(
            error_code=87, record_errors=[BatchIndexAndErrorMessage(batch_index_error_message="no")]
        )
    ),
}


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("name", RESPONSES)
def test_response_is_decoded_as_any_response(name: str, version: int) -> None:
    payload = b"".join(map(bytes_of, encode_response(RESPONSES[name], version, 4_711)))
    made = builder([batch("a", 3, b"x")], a=b"i" * 16)
    expected = decode_response_body(payload, ProduceResponse, version)
    assert made.decode(memoryview(payload), version) == expected
    is_single = name in {"usual", "throttled", "log append time"} and version == 13
    assert (decode_single(payload) is not None) is is_single


def test_any_byte_of_a_response_is_decoded_as_in_any_response() -> None:
    payload = b"".join(map(bytes_of, encode_response(RESPONSES["usual"], 13, 4_711)))
    for position, byte in itertools.product(range(4, len(payload)), (0, 1, 2, 3, 128, 255)):
        changed = payload[:position] + bytes([byte]) + payload[position + 1 :]
        single = decode_single(changed)
        if single is not None:
            assert single == decode_response_body(changed, ProduceResponse, 13), position
