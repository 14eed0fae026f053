"""The sender against a scripted client: what it sends, when, and what it makes of answers."""

import logging
from collections.abc import Callable
from typing import TypeVar

import pytest

from kclient.common.broker_errors import (
    InvalidRecordError,
    InvalidTopicError,
    NetworkError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kclient.common.errors import DisconnectedError, IllegalStateError, KafkaError
from kclient.common.types import RecordMetadata
from kclient.producer.deadline import Deadline
from kclient.producer.errors import DeliveryTimeoutError, ProducerFatalError
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import CompressionType, RecordBatch
from tests.support.producer_world import TOPIC, ProducerWorld, WorldOptions, builder_of, tp

NOT_LEADER, UNKNOWN_TOPIC, TIMED_OUT, TOO_LARGE, STORAGE, CORRUPT = 6, 3, 7, 10, 56, 2
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_AFTER_APPEND = 19, 20


def world(**options: object) -> ProducerWorld:
    return ProducerWorld(WorldOptions(**options))  # type: ignore[arg-type]  # by name


T = TypeVar("T")


def noting(seen: list[T], what: T) -> Callable[..., None]:
    """Returns a callback that notes what it was made with."""
    return lambda *_: seen.append(what)


def sent_sequences(of: ProducerWorld) -> list[int]:
    return [
        RecordBatch(data.records).base_sequence
        for sent in of.client.requests()
        if isinstance(sent.body, ProduceRequest)
        for topic in sent.body.topic_data
        for data in topic.partition_data
        if isinstance(data.records, memoryview)
    ]


# -- sending ---------------------------------------------------------------------------------------


def test_a_record_comes_back_with_its_place() -> None:
    producer = world()
    first = producer.send(b"one", key=b"k")
    second = producer.send(b"two!")
    assert not first.done()
    producer.step()
    producer.answer_all()
    assert first.result(0) == RecordMetadata(TOPIC, 0, 0, 1_700_000_000_000, 1, 3)
    assert second.result(0) == RecordMetadata(TOPIC, 0, 1, 1_700_000_000_000, -1, 4)
    assert producer.broker[0].values() == [b"one", b"two!"]
    assert producer.pool.available() == producer.pool.total


def test_a_batch_waits_for_linger_unless_it_is_full() -> None:
    producer = world(linger_ms=50, batch_size=1_000)
    producer.send(b"small")
    producer.step()
    assert producer.client.requests() == []
    assert producer.client.polled_ms[-1] == 50
    producer.step(30)
    assert producer.client.polled_ms[-1] == 20
    producer.step(20)
    assert len(producer.client.requests()) == 1
    producer.answer_all()
    for _ in range(2):
        producer.send(bytes(600))
    producer.step()
    assert len(producer.client.requests()) == 1


def test_a_flush_does_not_wait_for_linger() -> None:
    producer = world(linger_ms=60_000)
    future = producer.send(b"x")
    producer.client.on_poll = lambda: None
    producer.accumulator._flushes += 1
    producer.step()
    assert len(producer.client.requests()) == 1
    producer.answer_all()
    assert future.done()


def test_callers_who_wait_for_memory_hurry_the_rest() -> None:
    producer = world(linger_ms=60_000, batch_size=500, buffer_memory=1_000)
    producer.send(b"a", 0)
    producer.pool._waiters.append(producer.pool)  # type: ignore[arg-type]  # somebody
    producer.step()
    producer.pool._waiters.clear()
    assert len(producer.client.requests()) == 1


def test_one_request_a_node_carries_a_batch_of_each_partition() -> None:
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


def test_five_requests_in_flight_and_no_more() -> None:
    producer = world(batch_size=200)
    producer.send(bytes(150))
    producer.step()
    producer.answer_all()
    for _ in range(8):
        producer.send(bytes(150))
    for _ in range(8):
        producer.step()
    assert len(producer.client.requests()) == 5
    assert sent_sequences(producer) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_every_codec(codec: CompressionType) -> None:
    producer = world(compression=codec)
    futures = [producer.send(b"value %d" % number) for number in range(50)]
    producer.step()
    producer.answer_all()
    assert [future.result(0).offset for future in futures] == list(range(50))
    assert producer.broker[0].values() == [b"value %d" % number for number in range(50)]


def test_without_acks_nobody_answers() -> None:
    producer = world(acks=0, idempotence=False)
    future = producer.send(b"x")
    producer.step()
    assert future.result(0).offset == -1
    assert producer.pool.available() == producer.pool.total


def test_topics_without_an_id_are_named() -> None:
    known, unknown = world(), world(topic_id=bytes(16))
    for producer in (known, unknown):
        producer.send(b"x")
        producer.step()
    assert builder_of(known.client.requests()[0]).latest_allowed_version == 13
    assert builder_of(unknown.client.requests()[0]).latest_allowed_version == 12
    assert builder_of(known.client.requests()[0]).oldest_allowed_version == 7


def test_a_node_that_is_down_is_waited_for() -> None:
    producer = world()
    producer.send(b"x")
    producer.client.down.add(0)
    producer.step()
    assert producer.client.requests() == []
    assert producer.client.polled_ms[-1] == 50
    producer.client.down.clear()
    producer.step()
    assert len(producer.client.requests()) == 1


def test_partitions_without_a_leader_ask_for_metadata() -> None:
    producer = world(partitions=2)
    producer.leaders = {0: 0, 1: -1}
    producer.leader_epoch += 1
    producer.update_metadata()
    producer.send(b"x", 1)
    assert producer.metadata.time_to_next_update(producer.clock.now_ms + 5_000) > 0
    producer.step()
    assert producer.metadata.time_to_next_update(producer.clock.now_ms + 5_000) == 0


# -- answers: W1, W13, W14, P10 --------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", [NOT_LEADER, UNKNOWN_TOPIC, STORAGE, 5, CORRUPT, TIMED_OUT, 19, 20]
)
def test_passing_errors_are_retried_after_a_wait(code: int) -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.answer_one(code)
    producer.step(50)
    assert producer.client.requests() == []
    producer.step(60)
    assert len(producer.client.requests()) == 1
    producer.answer_all()
    assert future.result(0).offset == 0
    assert producer.broker[0].values() == [b"x"]
    assert producer.metrics.registry.snapshot()["record-retry-total"] == 1


def test_waits_grow_with_each_failure() -> None:
    producer = world()
    producer.send(b"x")
    waits = []
    producer.step()
    for _ in range(6):
        producer.answer_one(NOT_ENOUGH_REPLICAS)
        failed_ms = producer.clock.now_ms
        while not producer.client.requests():
            producer.step(10)
        waits.append(producer.clock.now_ms - failed_ms)
    assert waits == [100, 200, 400, 800, 1000, 1000]


def test_a_moved_partition_is_sent_to_its_new_leader_at_once() -> None:
    producer = world(nodes=2)
    future = producer.send(b"x")
    producer.step()
    producer.answer_one(NOT_LEADER, new_leader=1)
    producer.step()
    assert [sent.request.destination for sent in producer.client.requests()] == ["1"]
    producer.answer_all("1")
    assert future.result(0).offset == 0


def test_stale_metadata_is_refreshed() -> None:
    producer = world()
    producer.send(b"x")
    producer.step()
    producer.answer_one(NOT_LEADER)
    assert producer.metadata.time_to_next_update(producer.clock.now_ms + 1_000) == 0


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (17, InvalidTopicError, "INVALID_TOPIC"),
        (29, TopicAuthorizationError, "not allowed to write to topic 't'"),
        (10, RecordTooLargeError, r"t-0: a record makes a batch of \d+ bytes.*max\.message\.bytes"),
        (87, InvalidRecordError, "INVALID_RECORD"),
    ],
)
def test_lasting_errors_fail_at_once(code: int, kind: type[KafkaError], text: str) -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.answer_one(code)
    with pytest.raises(kind, match=text):
        future.result(0)
    assert isinstance(future.exception(0), kind)
    assert producer.pool.available() == producer.pool.total
    later = producer.send(b"y")
    producer.step()
    producer.answer_all()
    assert later.result(0).offset == 0


def test_an_unknown_code_fails_only_its_partition() -> None:
    producer = world(partitions=2)
    bad, good = producer.send(b"x", 0), producer.send(b"y", 1)
    producer.step()
    producer.answer_all(errors={0: 9999})
    assert good.result(0).offset == 0
    with pytest.raises(KafkaError, match="9999"):
        bad.result(0)


def test_records_that_the_broker_names_fail_with_its_words() -> None:
    producer = world()
    futures = [producer.send(b"%d" % number) for number in range(3)]
    producer.step()
    answer = PartitionProduceResponse(
        error_code=87,
        error_message="bad batch",
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
        ],
    )
    producer.client.end(
        "0",
        ProduceResponse(responses=[TopicProduceResponse(name=TOPIC, partition_responses=[answer])]),
    )
    producer.step()
    texts = [str(future.exception(0)) for future in futures]
    assert texts[1] == "no key"
    assert texts[0] == texts[2]
    assert "in a batch with 1 that the broker refused: INVALID_RECORD: bad batch" in texts[0]


def test_partitions_left_out_are_retried_and_strangers_ignored() -> None:
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


def test_a_broker_that_is_too_old_ends_a_producer_that_needs_sequences() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", mismatch=UnsupportedVersionError("node 0: PRODUCE 0 to 2"))
    producer.step()
    with pytest.raises(UnsupportedVersionError, match="PRODUCE 0 to 2"):
        future.result(0)
    producer.step()
    assert isinstance(producer.sender.failure, ProducerFatalError)


def test_the_brokers_append_time_is_the_records() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    answer = PartitionProduceResponse(base_offset=3, log_append_time_ms=1234)
    producer.client.end(
        "0",
        ProduceResponse(responses=[TopicProduceResponse(name=TOPIC, partition_responses=[answer])]),
    )
    producer.step()
    assert future.result(0) == RecordMetadata(TOPIC, 0, 3, 1234, -1, 1)


def test_retries_are_limited_where_the_user_says_so() -> None:
    producer = world(retries=1, idempotence=False, acks=1)
    future = producer.send(b"x")
    producer.step()
    producer.answer_one(NOT_LEADER)
    assert not future.done()
    producer.step(200)
    producer.answer_one(NOT_LEADER)
    with pytest.raises(NotLeaderOrFollowerError):
        future.result(0)


def test_one_in_flight_keeps_the_order_without_sequences() -> None:
    producer = world(idempotence=False, acks=1, max_in_flight=1, batch_size=200, nodes=2)
    for number in range(3):
        producer.send(b"%03d" % number + bytes(150))
    producer.step()
    producer.step()
    assert len(producer.client.requests()) == 1
    producer.answer_one(NOT_LEADER)
    producer.settle()
    assert [value[:3] for value in producer.broker[0].values()] == [b"000", b"001", b"002"]


# -- time: W4, W10, W11 ----------------------------------------------------------------------------


def test_a_record_that_waits_too_long_fails_once_and_was_not_written() -> None:
    producer = world(delivery_timeout_ms=1_000)
    producer.client.down.add(0)
    told: list[KafkaError | None] = []
    future = producer.send(b"x", on_delivery=lambda metadata, error: told.append(error))
    producer.step(999)
    assert not future.done()
    assert producer.client.polled_ms[-1] == 1
    producer.step(1)
    with pytest.raises(DeliveryTimeoutError, match=r"1 record\(s\) for t-0.*were not written"):
        future.result(0)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.possibly_written
    assert told == [error]
    assert producer.pool.available() == producer.pool.total


def test_memory_of_a_batch_on_the_wire_is_not_used_again_before_it_returns() -> None:
    producer = world(delivery_timeout_ms=1_000, idempotence=False, acks=1)
    future = producer.send(b"precious")
    producer.step()
    (sent,) = producer.client.requests()
    buffer = builder_of(sent).batches[0].buffer
    producer.step(1_000)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.possibly_written
    assert buffer is not None
    assert producer.pool.available() < producer.pool.total
    producer.send(b"other")
    assert b"precious" in bytes(buffer)
    producer.answer_all()
    producer.step()
    assert len(producer.client.requests()) == 1
    producer.answer_all()
    assert producer.pool.available() == producer.pool.total


def test_a_batch_that_expires_when_its_turn_comes_holds_up_no_other() -> None:
    producer = world(max_in_flight=1, delivery_timeout_ms=1_000)
    producer.client.down.add(0)
    late = producer.send(b"late")
    producer.step()
    producer.client.down.clear()
    producer.step(5_000)  # the machine slept meanwhile
    assert isinstance(late.exception(0), DeliveryTimeoutError)
    assert producer.client.requests() == []
    after = producer.send(b"after")
    producer.settle()
    assert after.result(0).offset == 0


def test_an_expired_batch_that_was_refused_before_was_not_written() -> None:
    producer = world(delivery_timeout_ms=1_000)
    future = producer.send(b"x")
    producer.step()
    producer.answer_one(NOT_LEADER)
    producer.client.down.add(0)
    producer.step(1_000)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.possibly_written
    assert "were not written; the last error was: NOT_LEADER_OR_FOLLOWER" in str(error)
    assert isinstance(error.__cause__, NotLeaderOrFollowerError)


def test_a_topic_that_was_deleted_is_waited_for_and_given_up() -> None:
    producer = world(delivery_timeout_ms=1_000)
    future = producer.send(b"x")
    producer.update_metadata(error_code=UNKNOWN_TOPIC)
    producer.step()
    assert producer.client.requests() == []
    producer.step(1_000)
    assert isinstance(future.exception(0), DeliveryTimeoutError)


def test_an_expired_batch_whose_answer_was_lost_may_be_written() -> None:
    producer = world(delivery_timeout_ms=1_000)
    future = producer.send(b"x")
    producer.step()
    producer.client.disconnect("0")
    producer.client.down.add(0)
    producer.step(1_000)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.possibly_written


def test_a_lost_answer_is_asked_for_again_and_nothing_is_written_twice() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.process(producer.client.requests()[0])
    producer.client.disconnect("0")
    producer.step()
    producer.settle()
    assert future.result(0).offset == 0
    assert producer.broker[0].values() == [b"x"]


def test_a_disconnect_without_sequences_may_write_twice() -> None:
    producer = world(idempotence=False, acks=1)
    future = producer.send(b"x")
    producer.step()
    producer.process(producer.client.requests()[0])
    producer.client.disconnect("0")
    producer.step()
    producer.settle()
    assert future.result(0).offset == 1
    assert producer.broker[0].values() == [b"x", b"x"]


# -- splitting: W8 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("idempotence", [True, False])
def test_a_batch_too_large_is_split_and_keeps_its_order(
    codec: CompressionType, idempotence: bool
) -> None:
    producer = world(compression=codec, idempotence=idempotence, acks=-1)
    told: list[bytes] = []
    values = [b"%02d" % number + bytes(range(100)) for number in range(16)]
    futures = [producer.send(value, on_delivery=noting(told, value)) for value in values]
    done: list[int] = []
    for number, future in enumerate(futures):
        future.add_done_callback(noting(done, number))
    producer.broker[0].max_batch_bytes = 600
    producer.settle()
    assert [future.result(0).offset for future in futures] == list(range(16))
    assert producer.broker[0].values() == values
    assert told == values
    assert done == list(range(16))
    assert producer.pool.available() == producer.pool.total


def test_a_single_record_too_large_fails_alone() -> None:
    producer = world()
    values = [bytes(10), bytes(900), bytes(20), bytes(30)]
    futures = [producer.send(value) for value in values]
    producer.broker[0].max_batch_bytes = 400
    producer.settle()
    assert isinstance(futures[1].exception(0), RecordTooLargeError)
    assert [futures[index].result(0).offset for index in (0, 2, 3)] == [0, 1, 2]
    assert producer.broker[0].values() == [values[0], values[2], values[3]]


def test_waiting_goes_on_over_a_split() -> None:
    producer = world()
    futures = [producer.send(bytes(300)) for _ in range(4)]
    producer.broker[0].max_batch_bytes = 700
    producer.step()
    producer.answer_all()
    assert not any(future.done() for future in futures)
    assert producer.accumulator.incomplete.all()
    producer.settle()
    assert futures[3].result(0).offset == 3


# -- callbacks: W15 --------------------------------------------------------------------------------


def test_callbacks_that_raise_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    producer = world()

    def fail(metadata: object, error: object) -> None:
        raise ValueError("mine")

    seen: list[int] = []
    producer.send(b"a", on_delivery=fail)
    future = producer.send(b"b", on_delivery=lambda metadata, error: seen.append(1))
    with caplog.at_level(logging.ERROR):
        producer.settle()
    assert seen == [1]
    assert future.result(0).offset == 1
    assert "mine" in caplog.text
    assert producer.metrics.registry.snapshot()["callback-error-total"] == 1


def test_callbacks_may_send_and_may_not_wait() -> None:
    producer = world(buffer_memory=40_000)
    errors: list[BaseException] = []
    sent_again = []

    def again(metadata: object, error: object) -> None:
        future = producer.send(b"again", max_wait_ms=60_000)
        sent_again.append(future)
        for wait in (future.result, future.exception, flush):
            try:
                wait()
            except IllegalStateError as refused:
                errors.append(refused)

    def flush() -> None:
        producer.accumulator.flush(Deadline(producer.clock, 1))

    producer.send(b"a", on_delivery=again)
    producer.settle()
    assert len(errors) == 3
    assert sent_again[0].result(0).offset == 1


def test_done_callbacks_run_at_once_where_the_outcome_is_known() -> None:
    producer = world()
    future = producer.send(b"a")
    seen: list[object] = []
    future.add_done_callback(seen.append)
    producer.settle()
    future.add_done_callback(seen.append)
    assert seen == [future, future]


# -- the end: W7, W16, W20 -------------------------------------------------------------------------


def test_closing_sends_the_rest_and_ends() -> None:
    producer = world(linger_ms=10_000)
    future = producer.send(b"x")
    producer.sender.initiate_close()
    assert producer.sender.step()
    producer.answer_all()
    assert future.result(0).offset == 0
    assert not producer.sender.step()
    assert producer.client.closed
    assert producer.sender.lost_records() == 0


def test_a_forced_close_fails_what_is_left_once() -> None:
    producer = world()
    told: list[object] = []
    on_wire = producer.send(b"x", on_delivery=lambda *outcome: told.append(outcome))
    producer.step()
    queued = producer.send(b"y")
    producer.sender.force_close()
    assert not producer.sender.step()
    for future in (on_wire, queued):
        with pytest.raises(KafkaError, match="closed before"):
            future.result(0)
    assert producer.sender.lost_records() == 2
    assert len(told) == 1
    assert producer.pool.available() == producer.pool.total
    assert producer.client.closed


def test_an_unexpected_error_fails_everything_with_its_cause() -> None:
    producer = world()
    futures = [producer.send(b"x")]
    producer.step()
    futures.append(producer.send(b"y"))

    def explode() -> None:
        raise ZeroDivisionError("surprise")

    producer.client.on_poll = explode
    assert not producer.sender.step()
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, ProducerFatalError)
        assert isinstance(error.__cause__, ZeroDivisionError)
    assert producer.sender.failure is futures[0].exception(0)
    assert producer.client.closed


def test_an_error_while_handling_an_answer_is_not_lost_in_the_client() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", ProduceResponse(responses=[None]))  # type: ignore[list-item]  # nonsense
    assert not producer.sender.step()
    assert isinstance(future.exception(0), ProducerFatalError)


def test_a_fenced_producer_fails_for_good() -> None:
    producer = world(partitions=2)
    future, other = producer.send(b"x", 0), producer.send(b"y", 1)
    producer.step()
    queued = producer.send(b"z", 1)
    producer.answer_one(90)
    for each in (future, other, queued):
        producer.step()
        assert isinstance(each.exception(0), KafkaError)
    assert isinstance(producer.sender.failure, ProducerFatalError)
    assert "PRODUCER_FENCED" in str(producer.sender.failure)


# -- producer ids ----------------------------------------------------------------------------------


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    producer = ProducerWorld(WorldOptions(idempotence=False))
    fresh = ProducerWorld(WorldOptions())
    assert producer.transactions is None
    transactions = fresh.transactions
    assert transactions is not None
    transactions.producer = transactions.producer._replace(producer_id=-1)
    transactions.state = type(transactions.state).UNINITIALIZED
    fresh.send(b"x")
    fresh.step()
    assert fresh.client.requests() == []
    (asked,) = fresh.client.requests(InitProducerIdRequest)
    assert asked.body == InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=2**31 - 1
    )
    fresh.step()
    assert len(fresh.client.requests(InitProducerIdRequest)) == 1
    assert fresh.client.polled_ms[-1] == 100


@pytest.mark.parametrize("code", [14, 15, 7])
def test_asking_for_an_id_is_tried_again(code: int) -> None:
    producer = ProducerWorld.__new__(ProducerWorld)
    ProducerWorld.__init__(producer, WorldOptions())
    transactions = producer.transactions
    assert transactions is not None
    transactions.state = type(transactions.state).UNINITIALIZED
    producer.step()
    producer.client.end("0", InitProducerIdResponse(error_code=code))
    producer.step()
    producer.step(50)
    assert producer.client.requests(InitProducerIdRequest) == []
    producer.step(60)
    producer.client.end("0", error=DisconnectedError("gone"))
    producer.step()
    producer.step(250)
    producer.client.end("0", InitProducerIdResponse(producer_id=9, producer_epoch=0))
    producer.send(b"x")
    producer.settle()
    assert producer.broker[0].log[0].producer_id == 9


def test_being_refused_an_id_is_final() -> None:
    producer = world()
    transactions = producer.transactions
    assert transactions is not None
    transactions.state = type(transactions.state).UNINITIALIZED
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", InitProducerIdResponse(error_code=31))
    producer.step()
    producer.step()
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        future.result(0)
    assert isinstance(producer.sender.failure, ProducerFatalError)


def test_a_missing_answer_counts_as_a_network_error() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", ProduceResponse())
    producer.step()
    assert not future.done()
    assert NetworkError.retriable
    producer.settle()
    assert producer.broker[0].values() == [b"x"]
