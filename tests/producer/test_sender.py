"""The sender with a scripted client: what it sends, when, and how it handles responses."""

import pytest

from kclient.common.broker_errors import (
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import RecordMetadata
from kclient.producer.buffer_pool import _Waiter
from kclient.producer.errors import ProducerFatalError
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import CompressionType
from tests.support.virtual.producer_world import (
    TOPIC,
    builder_of,
    noting,
    sent_sequences,
    tp,
    world,
)

NOT_LEADER, UNKNOWN_TOPIC, TIMED_OUT, TOO_LARGE, STORAGE, CORRUPT = 6, 3, 7, 10, 56, 2
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_AFTER_APPEND = 19, 20


# -- sending ---------------------------------------------------------------------------------------


def test_acknowledged_record_has_its_offset() -> None:
    producer = world()
    first = producer.send(b"one", key=b"k")
    second = producer.send(b"two!")
    assert not first.done()
    producer.step()
    producer.respond_to_all()
    assert first.result(0) == RecordMetadata(TOPIC, 0, 0, 1_700_000_000_000, 1, 3)
    assert second.result(0) == RecordMetadata(TOPIC, 0, 1, 1_700_000_000_000, -1, 4)
    assert producer.broker[0].values() == [b"one", b"two!"]
    assert producer.pool.available() == producer.pool.total


def test_batch_waits_for_linger_unless_full() -> None:
    producer = world(linger_ms=50, batch_size=1_000)
    producer.send(b"small")
    producer.step()
    assert producer.client.requests() == []
    assert producer.client.polled_ms[-1] == 50
    producer.step(30)
    assert producer.client.polled_ms[-1] == 20
    producer.step(20)
    assert len(producer.client.requests()) == 1
    producer.respond_to_all()
    for _ in range(2):
        producer.send(bytes(600))
    producer.step()
    assert len(producer.client.requests()) == 1


def test_batch_that_a_record_did_not_fit_is_due() -> None:
    producer = world(partitions=50, linger_ms=60_000, batch_size=1_000)
    first = producer.send(bytes(600), None)
    before = producer.accumulator.topic_info(TOPIC).sticky_queue
    producer.step()
    assert producer.client.requests() == []
    producer.send(bytes(600), None)
    assert producer.accumulator.topic_info(TOPIC).sticky_queue is not before
    producer.step()
    (request,) = producer.client.requests()
    assert first.segment().result in [each.result for each in builder_of(request).batches]


def test_flush_skips_linger() -> None:
    producer = world(linger_ms=60_000)
    future = producer.send(b"x")
    producer.client.on_poll = lambda: None
    producer.accumulator._flushes.add("a flush")
    producer.step()
    assert len(producer.client.requests()) == 1
    producer.respond_to_all()
    assert future.done()


def test_callers_waiting_for_memory_skip_linger() -> None:
    producer = world(linger_ms=60_000, batch_size=500, buffer_memory=1_000)
    producer.send(b"a", 0)
    producer.pool._waiters.append(_Waiter(1))
    producer.step()
    producer.pool._waiters.clear()
    assert len(producer.client.requests()) == 1


def test_one_request_per_node_carries_a_batch_of_each_partition() -> None:
    producer = world(partitions=4, nodes=2)
    for partition in range(4):
        producer.send(b"%d" % partition, partition)
        producer.send(b"%d again" % partition, partition)
    producer.step()
    carried = {
        sent.request.destination: [batch.topic_partition for batch in builder_of(sent).batches]
        for sent in producer.client.requests()
    }
    assert carried == {"0": [tp(0), tp(2)], "1": [tp(1), tp(3)]}


def test_requests_stay_within_their_size_and_no_partition_starves() -> None:
    producer = world(partitions=4, batch_size=400, max_request_size=900)
    for partition in range(4):
        producer.send(bytes(300), partition)
    producer.step()
    producer.step()
    requests = [
        [batch.topic_partition.partition for batch in builder_of(sent).batches]
        for sent in producer.client.requests()
    ]
    assert requests == [[0, 1], [2, 3]]


def test_sender_waits_after_it_sent_all_batches() -> None:
    producer = world(delivery_timeout_ms=5_000, partitions=4, batch_size=400, max_request_size=900)
    for partition in range(4):
        producer.send(bytes(300), partition)
    producer.step()
    assert producer.client.polled_ms[-1] == 0
    producer.step()
    assert len(producer.client.requests()) == 2
    assert producer.client.polled_ms[-1] == 5_000


def test_at_most_five_requests_in_flight() -> None:
    producer = world(batch_size=200)
    producer.send(bytes(150))
    producer.step()
    producer.respond_to_all()
    for _ in range(8):
        producer.send(bytes(150))
    for _ in range(8):
        producer.step()
    assert len(producer.client.requests()) == 5
    assert sent_sequences(producer) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_records_of_each_codec_are_delivered(codec: CompressionType) -> None:
    producer = world(compression=codec)
    futures = [producer.send(b"value %d" % number) for number in range(50)]
    producer.step()
    producer.respond_to_all()
    assert [future.result(0).offset for future in futures] == list(range(50))
    assert producer.broker[0].values() == [b"value %d" % number for number in range(50)]


def test_acks_0_completes_without_a_response() -> None:
    producer = world(acks=0, idempotence=False)
    future = producer.send(b"x")
    producer.step()
    assert future.result(0).offset == -1
    assert producer.pool.available() == producer.pool.total


def test_topics_without_an_id_are_sent_by_name() -> None:
    known, unknown = world(), world(topic_id=bytes(16))
    for producer in (known, unknown):
        producer.send(b"x")
        producer.step()
    assert builder_of(known.client.requests()[0]).latest_allowed_version == 13
    assert builder_of(unknown.client.requests()[0]).latest_allowed_version == 12
    assert builder_of(known.client.requests()[0]).oldest_allowed_version == 7


def test_batches_wait_for_a_node_that_is_down() -> None:
    producer = world()
    producer.send(b"x")
    producer.client.down.add(0)
    producer.step()
    assert producer.client.requests() == []
    assert producer.client.polled_ms[-1] == 50
    producer.client.down.clear()
    producer.step()
    assert len(producer.client.requests()) == 1


def test_partitions_without_a_leader_request_metadata() -> None:
    producer = world(partitions=2)
    producer.leaders = {0: 0, 1: -1}
    producer.leader_epoch += 1
    producer.update_metadata()
    producer.send(b"x", 1)
    assert producer.metadata.time_to_next_update(producer.clock.now_ms + 5_000) > 0
    producer.step()
    assert producer.metadata.time_to_next_update(producer.clock.now_ms + 5_000) == 0


# -- responses: W1, W13, W14, P10 ------------------------------------------------------------------


@pytest.mark.fault("W1", "W13")
@pytest.mark.parametrize(
    "code", [NOT_LEADER, UNKNOWN_TOPIC, STORAGE, 5, CORRUPT, TIMED_OUT, 19, 20]
)
def test_retriable_errors_are_retried_after_a_backoff(code: int) -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.respond_with_error(code)
    producer.step(50)
    assert producer.client.requests() == []
    producer.step(60)
    assert len(producer.client.requests()) == 1
    producer.respond_to_all()
    assert future.result(0).offset == 0
    assert producer.broker[0].values() == [b"x"]
    assert producer.metrics.snapshot()["record-retry-total"] == 1


@pytest.mark.fault("W1", "W13")
def test_backoff_grows_with_each_failure() -> None:
    producer = world()
    producer.send(b"x")
    waits = []
    producer.step()
    for _ in range(6):
        producer.respond_with_error(NOT_ENOUGH_REPLICAS)
        failed_ms = producer.clock.now_ms
        while not producer.client.requests():
            producer.step(10)
        waits.append(producer.clock.now_ms - failed_ms)
    assert waits == [100, 200, 400, 800, 1000, 1000]


@pytest.mark.fault("W1")
def test_moved_partition_is_sent_to_its_new_leader_at_once() -> None:
    producer = world(nodes=2)
    future = producer.send(b"x")
    producer.step()
    producer.respond_with_error(NOT_LEADER, new_leader=1)
    producer.step()
    assert [sent.request.destination for sent in producer.client.requests()] == ["1"]
    producer.respond_to_all("1")
    assert future.result(0).offset == 0


@pytest.mark.fault("W1")
def test_stale_metadata_is_refreshed() -> None:
    producer = world()
    producer.send(b"x")
    producer.step()
    producer.respond_with_error(NOT_LEADER)
    assert producer.metadata.time_to_next_update(producer.clock.now_ms + 1_000) == 0


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (17, InvalidTopicError, "INVALID_TOPIC"),
        (
            29,
            TopicAuthorizationError,
            "not authorized to write to topic 't'; an ACL has to allow WRITE",
        ),
        (10, RecordTooLargeError, r"t-0: a record makes a batch of \d+ bytes.*max\.message\.bytes"),
        (87, InvalidRecordError, "INVALID_RECORD"),
    ],
)
def test_permanent_errors_fail_at_once(code: int, kind: type[KafkaError], text: str) -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.respond_with_error(code)
    with pytest.raises(kind, match=text):
        future.result(0)
    assert isinstance(future.exception(0), kind)
    assert producer.pool.available() == producer.pool.total
    later = producer.send(b"y")
    producer.step()
    producer.respond_to_all()
    assert later.result(0).offset == 0


@pytest.mark.fault("W14", "P4")
def test_unknown_error_code_fails_only_its_partition() -> None:
    producer = world(partitions=2)
    bad, good = producer.send(b"x", 0), producer.send(b"y", 1)
    producer.step()
    producer.respond_to_all(errors={0: 9999})
    assert good.result(0).offset == 0
    with pytest.raises(KafkaError, match="9999"):
        bad.result(0)


@pytest.mark.fault("W14")
@pytest.mark.parametrize("idempotence", [True, False])
def test_rejected_records_fail_and_the_others_are_retried(
    idempotence: bool,
) -> None:
    producer = world(idempotence=idempotence)
    seen: list[int] = []
    futures = [
        producer.send(b"%d" % number, on_delivery=noting(seen, number)) for number in range(3)
    ]
    producer.step()
    response = PartitionProduceResponse(
        error_code=87,
        error_message="bad batch",
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
        ],
    )
    producer.client.end(
        "0",
        ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, partition_responses=[response])]
        ),
    )
    producer.step()
    (rejected,) = [future.exception(0) for future in futures if future.done()]
    assert rejected is not None
    assert (str(rejected), rejected.topic, rejected.batch_index) == ("no key", TOPIC, 1)
    assert seen == [1]
    producer.settle()
    assert [futures[index].result(0).offset for index in (0, 2)] == [0, 1]
    assert producer.broker[0].values() == [b"0", b"2"]
    assert seen == [1, 0, 2]
    assert producer.metrics.snapshot()["record-error-total"] == 1
    assert producer.pool.available() == producer.pool.total


@pytest.mark.fault("W14")
@pytest.mark.parametrize(
    ("code", "named", "kind"),
    [
        (32, [1], InvalidTimestampError),  # the code must be that of the only rejected record
        (87, [1], InvalidRecordError),
        (9999, [1], UnknownServerError),
        (32, [0, 1], InvalidRecordError),  # the record of the code is unknown
    ],
)
def test_error_of_the_only_rejected_record_has_the_class_of_the_code(
    code: int, named: list[int], kind: type[KafkaError]
) -> None:
    producer = world()
    futures = [producer.send(b"x"), producer.send(b"y")]
    producer.step()
    response = PartitionProduceResponse(
        error_code=code,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message="its own text")
            for index in named
        ],
    )
    producer.client.end(
        "0",
        ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, partition_responses=[response])]
        ),
    )
    producer.step()
    for index in named:
        error = futures[index].exception(0)
        assert type(error) is kind
        assert str(error).startswith("its own text")


@pytest.mark.fault("W14")
def test_missing_partitions_are_retried_and_unknown_ones_ignored() -> None:
    producer = world(partitions=2)
    futures = [producer.send(b"x", 0), producer.send(b"y", 1)]
    producer.step()
    producer.client.end(
        "0",
        ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=TOPIC,
                    partition_responses=[
                        PartitionProduceResponse(index=1, base_offset=4),
                        PartitionProduceResponse(index=1, error_code=17),
                        PartitionProduceResponse(index=9, base_offset=1),
                    ],
                )
            ]
        ),
    )
    producer.step()
    assert futures[1].result(0).offset == 4
    assert not futures[0].done()
    producer.settle()
    assert futures[0].result(0).offset == 0


def test_broker_without_idempotence_is_a_fatal_error() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", mismatch=UnsupportedVersionError("node 0: PRODUCE 0 to 2"))
    producer.step()
    with pytest.raises(UnsupportedVersionError, match="PRODUCE 0 to 2"):
        future.result(0)
    producer.step()
    assert isinstance(producer.sender.failure, ProducerFatalError)


def test_log_append_time_is_the_timestamp() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    response = PartitionProduceResponse(base_offset=3, log_append_time_ms=1234)
    producer.client.end(
        "0",
        ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, partition_responses=[response])]
        ),
    )
    producer.step()
    assert future.result(0) == RecordMetadata(TOPIC, 0, 3, 1234, -1, 1)


def test_retries_limits_the_attempts() -> None:
    producer = world(retries=1, idempotence=False, acks=1)
    future = producer.send(b"x")
    producer.step()
    producer.respond_with_error(NOT_LEADER)
    assert not future.done()
    producer.step(200)
    producer.respond_with_error(NOT_LEADER)
    with pytest.raises(NotLeaderOrFollowerError):
        future.result(0)


@pytest.mark.fault("W1")
def test_one_request_in_flight_keeps_the_order() -> None:
    producer = world(idempotence=False, acks=1, max_in_flight=1, batch_size=200, nodes=2)
    for number in range(3):
        producer.send(b"%03d" % number + bytes(150))
    producer.step()
    producer.step()
    assert len(producer.client.requests()) == 1
    producer.respond_with_error(NOT_LEADER)
    producer.settle()
    assert [value[:3] for value in producer.broker[0].values()] == [b"000", b"001", b"002"]
