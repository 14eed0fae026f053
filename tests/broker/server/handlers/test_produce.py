"""Produce requests."""

import time

import pytest

from kclient.common.broker_errors import (
    CorruptRecordError,
    InvalidPidMappingError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TransactionalIdAuthorizationError,
    UnknownTopicIdError,
    UnsupportedCompressionTypeError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kclient.record import CompressionType
from kclient.record.batch_header import ATTRIBUTES_AT, MAGIC_AT, TRANSACTIONAL_FLAG
from kclient.testing import EmbeddedCluster
from tests.support.clients.transactions import transactional_batch
from tests.support.clients.wire import Wire, batch, records_of

GOOD = batch([b"a" * 100])


def test_acks_0_has_no_response(wire: Wire, topic: str) -> None:
    request = ProduceRequest(
        acks=0,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=batch([b"a"]))]
            )
        ],
    )
    wire.send(request, 9)
    after = wire.send(ApiVersionsRequest(), 0)
    assert wire.receive(ApiVersionsResponse, 0)[0] == after
    assert [record.value for record in records_of(wire.fetch(topic, 0).records)] == [b"a"]


def test_failed_acks_0_closes_the_connection(wire: Wire, other: Wire, topic: str) -> None:
    request = ProduceRequest(
        acks=0,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name="absent", partition_data=[PartitionProduceData(index=0, records=batch([b"a"]))]
            )
        ],
    )
    wire.send(request, 9)
    assert wire.is_closed_by_peer()


def test_produce_by_topic_id_and_response_fields(wire: Wire, cluster: EmbeddedCluster) -> None:
    topic_id = wire.create_topic("by-id")
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                topic_id=chosen,
                partition_data=[PartitionProduceData(index=0, records=batch([b"a", b"b"]))],
            )
            for chosen in (topic_id, b"\7" * 16)
        ],
    )
    response = wire.ask(request, 13, ProduceResponse)
    known, unknown = (topic.partition_responses[0] for topic in response.responses)
    assert (known.error_code, known.base_offset, known.log_append_time_ms) == (0, 0, -1)
    assert known.log_start_offset == 0
    assert unknown.error_code == code_of(UnknownTopicIdError())


@pytest.mark.parametrize("version", range(3, 14))
def test_response_to_a_single_append_has_the_fields_of_each_version(
    wire: Wire, version: int
) -> None:
    topic = f"single-{version}"
    topic_id = wire.create_topic(topic, 3)
    by_id = version >= 13
    for base_offset in (0, 2):
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="" if by_id else topic,
                    topic_id=topic_id if by_id else bytes(16),
                    partition_data=[PartitionProduceData(index=2, records=batch([b"a", b"b"]))],
                )
            ],
        )
        appended = PartitionProduceResponse(
            index=2,
            base_offset=base_offset,
            log_start_offset=0 if version >= 5 else -1,
        )
        assert wire.ask(request, version, ProduceResponse) == ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name="" if by_id else topic,
                    topic_id=topic_id if by_id else bytes(16),
                    partition_responses=[appended],
                )
            ]
        )


def test_log_append_time_is_returned_and_stored(wire: Wire) -> None:
    wire.create_topic("stamped", message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    response = wire.produce("stamped", batch([b"a"], timestamp=5))
    assert before_ms <= response.log_append_time_ms <= time.time_ns() // 1_000_000
    (record,) = records_of(wire.fetch("stamped", 0).records)
    assert record.timestamp == response.log_append_time_ms


@pytest.mark.fault("B18")
@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), CorruptRecordError),
        (GOOD[:17] + b"\0\0\0\0" + GOOD[21:], CorruptRecordError),
        (batch([b"a" * 1_100_000]), RecordTooLargeError),
    ],
    ids=["flipped bit", "wrong checksum", "too large"],
)
def test_invalid_batches_do_not_change_log(
    wire: Wire, topic: str, invalid: bytes, error: type[KafkaError]
) -> None:
    assert wire.produce(topic, invalid).error_code == code_of(error())
    assert wire.produce(topic, GOOD).base_offset == 0


def test_duplicate_partition_is_rejected(wire: Wire, topic: str) -> None:
    part = PartitionProduceData(index=0, records=batch([b"a"]))
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[part, part])],
    )
    response = wire.ask(request, 9, ProduceResponse)
    assert [p.error_code for p in response.responses[0].partition_responses] == [42, 42]
    assert wire.fetch(topic, 0).high_watermark == 0


def test_invalid_acks(wire: Wire, topic: str) -> None:
    assert wire.produce(topic, batch([b"a"]), acks=2).error_code == code_of(
        InvalidRequiredAcksError()
    )


def test_produce_to_internal_topic_fails(wire: Wire) -> None:
    wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
    response = wire.produce("__consumer_offsets", batch([b"a"]))
    assert response.error_code == code_of(InvalidTopicError())


@pytest.mark.fault("B18")
@pytest.mark.parametrize("plain_first", [False, True])
def test_transactional_batch_without_transactional_id_is_rejected(
    wire: Wire, topic: str, plain_first: bool
) -> None:
    """Nothing could end the transaction, and read_committed consumers would wait forever."""
    opening = batch([b"x"], producer_id=77, producer_epoch=0, base_sequence=0, transactional=True)
    records = (batch([b"plain"]) if plain_first else b"") + opening
    refused = wire.produce(topic, records)
    assert refused.error_code == code_of(TransactionalIdAuthorizationError)
    wire.produce(topic, batch([b"committed"]))
    read = wire.fetch(topic, 0, isolation=1)
    assert (read.last_stable_offset, [record.value for record in records_of(read.records)]) == (
        1,
        [b"committed"],
    )


def test_corrupt_transactional_batch_is_rejected_as_corrupt(wire: Wire, topic: str) -> None:
    """The producer can retry it; a transaction error would be fatal."""
    damaged = bytearray(batch([b"x"]))
    damaged[ATTRIBUTES_AT + 1] ^= TRANSACTIONAL_FLAG
    assert wire.produce(topic, bytes(damaged)).error_code == code_of(CorruptRecordError)


@pytest.mark.parametrize("opening_first", [False, True])
def test_transactional_batch_is_rejected_next_to_corrupt_data(
    wire: Wire, opening_first: bool
) -> None:
    topic = f"two-{opening_first}"
    wire.create_topic(topic, 2)
    opening = batch([b"x"], producer_id=77, producer_epoch=0, base_sequence=0, transactional=True)
    broken = batch([b"x"])[:MAGIC_AT] + bytes(50)
    parts = [(0, broken), (1, opening)]
    if opening_first:
        parts.reverse()
    data = [PartitionProduceData(index=index, records=records) for index, records in parts]
    topic_data = [TopicProduceData(name=topic, partition_data=data)]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data)
    wire.ask(request, 9, ProduceResponse)
    assert wire.fetch(topic, 0, partition=1).high_watermark == 0


def test_batches_of_two_producers_in_a_transaction_are_rejected(wire: Wire) -> None:
    wire.create_topic("two-producers", 2)
    data = [
        PartitionProduceData(index=index, records=transactional_batch([b"x"], 70 + index))
        for index in (0, 1)
    ]
    request = ProduceRequest(
        transactional_id="id",
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="two-producers", partition_data=data)],
    )
    response = wire.ask(request, 9, ProduceResponse)
    codes = [part.error_code for part in response.responses[0].partition_responses]
    assert codes == [code_of(InvalidPidMappingError)] * 2
    assert wire.fetch("two-producers", 0).high_watermark == 0


def test_plain_batch_with_transactional_id_is_appended(wire: Wire, topic: str) -> None:
    assert wire.produce(topic, GOOD, transactional_id="id").error_code == 0


def test_duplicate_batch_of_idempotent_producer_is_not_appended(wire: Wire, topic: str) -> None:
    given = wire.ask(InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse)
    assert given.error_code == 0
    producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    first = batch([b"a", b"b"], base_sequence=0, **producer)
    assert wire.produce(topic, first).base_offset == 0
    assert wire.produce(topic, first).base_offset == 0
    assert wire.produce(topic, batch([b"d"], base_sequence=3, **producer)).error_code == 45
    assert wire.produce(topic, batch([b"c"], base_sequence=2, **producer)).base_offset == 2


def test_zstd_requires_version_7(wire: Wire, topic: str) -> None:
    records = batch([b"a" * 100], compression=CompressionType.ZSTD)
    codes = [wire.produce(topic, records, version=version).error_code for version in (6, 7)]
    assert codes == [code_of(UnsupportedCompressionTypeError()), 0]


@pytest.mark.parametrize("version", [3, 9])
def test_request_with_two_batches_per_partition_is_rejected(
    wire: Wire, topic: str, version: int
) -> None:
    records = batch([b"a"])
    refused = wire.produce(topic, records + records, version=version)
    assert refused.error_code == code_of(InvalidRecordError())
    assert wire.produce(topic, records + records[:-1], version=version).base_offset == 0


def test_responses_to_rejected_and_duplicate_batches_match_apache_kafka(
    wire: Wire, topic: str
) -> None:
    producer = {"producer_id": 4711, "producer_epoch": 0}
    first = batch([b"a"], timestamp=1234, base_sequence=0, **producer)
    assert wire.produce(topic, first).log_append_time_ms == -1
    assert wire.produce(topic, first).log_append_time_ms == 1234
    gap = wire.produce(topic, batch([b"b"], base_sequence=7, **producer))
    assert gap.error_code == code_of(OutOfOrderSequenceError())
    assert gap.log_start_offset == 0
    damaged = wire.produce(topic, first[:-1] + b"x")
    assert damaged.error_code == code_of(CorruptRecordError())
    assert damaged.log_start_offset == -1
