"""The sender with a scripted client: timeouts, splits, callbacks and close."""

import logging

import pytest

from kclient.common.broker_errors import (
    NetworkError,
    NotLeaderOrFollowerError,
    ProducerFencedError,
    RecordTooLargeError,
)
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.waiting import run_steps
from kclient.producer.errors import DeliveryTimeoutError, ProducerFatalError
from kclient.producer.sequence_manager import SequenceManager
from kclient.protocol.messages.produce import ProduceResponse
from kclient.record import CompressionType
from tests.support.virtual.producer_world import builder_of, noting, world

NOT_LEADER, UNKNOWN_TOPIC, TIMED_OUT, TOO_LARGE, STORAGE, CORRUPT = 6, 3, 7, 10, 56, 2
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_AFTER_APPEND = 19, 20


# -- timeouts: W4, W10, W11 ------------------------------------------------------------------------


@pytest.mark.fault("W10")
def test_unsent_record_expires_once() -> None:
    producer = world(delivery_timeout_ms=1_000)
    producer.client.down.add(0)
    seen: list[KafkaError | None] = []
    future = producer.send(b"x", on_delivery=lambda metadata, error: seen.append(error))
    producer.step(999)
    assert not future.done()
    assert producer.client.polled_ms[-1] == 1
    producer.step(1)
    with pytest.raises(DeliveryTimeoutError, match=r"1 record\(s\) for t-0.*were not written"):
        future.result(0)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.possibly_written
    assert seen == [error]
    assert producer.pool.available() == producer.pool.total


@pytest.mark.fault("W10")
def test_memory_of_an_expired_batch_in_flight_is_not_reused() -> None:
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
    producer.respond_to_all()
    producer.step()
    assert len(producer.client.requests()) == 1
    producer.respond_to_all()
    assert producer.pool.available() == producer.pool.total


@pytest.mark.fault("W10")
def test_batch_that_expires_when_drained_delays_no_other() -> None:
    producer = world(max_in_flight=1, delivery_timeout_ms=1_000)
    producer.client.down.add(0)
    late = producer.send(b"late")
    producer.step()
    producer.client.down.clear()
    producer.step(5_000)  # the machine was suspended meanwhile
    assert isinstance(late.exception(0), DeliveryTimeoutError)
    assert producer.client.requests() == []
    after = producer.send(b"after")
    producer.settle()
    assert after.result(0).offset == 0


@pytest.mark.fault("W10")
def test_expired_batch_that_was_rejected_before_was_not_written() -> None:
    producer = world(delivery_timeout_ms=1_000, idempotence=False, acks=1)
    future = producer.send(b"x")
    producer.step()
    producer.respond_with_error(NOT_LEADER)
    producer.client.down.add(0)
    producer.step(1_000)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.possibly_written
    assert "were not written; the last error was: NOT_LEADER_OR_FOLLOWER" in str(error)
    assert isinstance(error.__cause__, NotLeaderOrFollowerError)


@pytest.mark.fault("W12")
def test_records_for_a_deleted_topic_expire() -> None:
    producer = world(delivery_timeout_ms=1_000)
    future = producer.send(b"x")
    producer.update_metadata(error_code=UNKNOWN_TOPIC)
    producer.step()
    assert producer.client.requests() == []
    producer.step(1_000)
    assert isinstance(future.exception(0), DeliveryTimeoutError)


@pytest.mark.fault("W10")
def test_expired_batch_without_response_is_possibly_written() -> None:
    producer = world(delivery_timeout_ms=1_000)
    future = producer.send(b"x")
    producer.step()
    producer.client.disconnect("0")
    producer.client.down.add(0)
    producer.step(1_000)
    error = future.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.possibly_written


@pytest.mark.fault("W3")
def test_lost_response_is_retried_without_duplicates() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.process(producer.client.requests()[0])
    producer.client.disconnect("0")
    producer.step()
    producer.settle()
    assert future.result(0).offset == 0
    assert producer.broker[0].values() == [b"x"]


def test_disconnect_without_idempotence_may_write_twice() -> None:
    producer = world(idempotence=False, acks=1)
    future = producer.send(b"x")
    producer.step()
    producer.process(producer.client.requests()[0])
    producer.client.disconnect("0")
    producer.step()
    producer.settle()
    assert future.result(0).offset == 1
    assert producer.broker[0].values() == [b"x", b"x"]


# -- splits: W8 ------------------------------------------------------------------------------------


@pytest.mark.fault("W8")
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("idempotence", [True, False])
def test_batch_that_is_too_large_is_split_in_order(
    codec: CompressionType, idempotence: bool
) -> None:
    producer = world(compression=codec, idempotence=idempotence, acks=-1)
    seen: list[bytes] = []
    values = [b"%02d" % number + bytes(range(100)) for number in range(16)]
    futures = [producer.send(value, on_delivery=noting(seen, value)) for value in values]
    done: list[int] = []
    for number, future in enumerate(futures):
        future.add_done_callback(noting(done, number))
    producer.broker[0].max_batch_bytes = 600
    producer.settle()
    assert [future.result(0).offset for future in futures] == list(range(16))
    assert producer.broker[0].values() == values
    assert seen == values
    assert done == list(range(16))
    assert producer.pool.available() == producer.pool.total


@pytest.mark.fault("W8")
def test_single_record_that_is_too_large_fails() -> None:
    producer = world()
    values = [bytes(10), bytes(900), bytes(20), bytes(30)]
    futures = [producer.send(value) for value in values]
    producer.broker[0].max_batch_bytes = 400
    producer.settle()
    assert isinstance(futures[1].exception(0), RecordTooLargeError)
    assert [futures[index].result(0).offset for index in (0, 2, 3)] == [0, 1, 2]
    assert producer.broker[0].values() == [values[0], values[2], values[3]]


@pytest.mark.fault("W8")
def test_wait_continues_after_a_split() -> None:
    producer = world()
    futures = [producer.send(bytes(300)) for _ in range(4)]
    producer.broker[0].max_batch_bytes = 700
    producer.step()
    producer.respond_to_all()
    assert not any(future.done() for future in futures)
    assert producer.accumulator.incomplete.all()
    producer.settle()
    assert futures[3].result(0).offset == 3


# -- callbacks: W15 --------------------------------------------------------------------------------


@pytest.mark.fault("W15")
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
    assert producer.metrics.snapshot()["callback-error-total"] == 1


@pytest.mark.fault("W15")
def test_callbacks_may_send_but_not_wait() -> None:
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
        run_steps(producer.accumulator.flush(producer.clock.now_ms + 1_000), producer.clock)

    producer.send(b"a", on_delivery=again)
    producer.settle()
    assert len(errors) == 3
    assert sent_again[0].result(0).offset == 1


def test_done_callbacks_run_at_once_if_the_outcome_is_known() -> None:
    producer = world()
    future = producer.send(b"a")
    seen: list[object] = []
    future.add_done_callback(seen.append)
    producer.settle()
    future.add_done_callback(seen.append)
    assert seen == [future, future]


# -- close: W7, W16, W20 ---------------------------------------------------------------------------


@pytest.mark.fault("W16")
def test_close_sends_queued_records() -> None:
    producer = world(linger_ms=10_000)
    future = producer.send(b"x")
    producer.sender.initiate_close()
    assert producer.step()
    producer.respond_to_all()
    assert future.result(0).offset == 0
    assert not producer.step()
    assert producer.client.closed
    assert producer.sender.lost_records() == 0


@pytest.mark.fault("W16")
def test_forced_close_fails_incomplete_records_once() -> None:
    producer = world()
    seen: list[object] = []
    on_wire = producer.send(b"x", on_delivery=lambda *outcome: seen.append(outcome))
    producer.step()
    queued = producer.send(b"y")
    producer.sender.force_close()
    assert not producer.step()
    for future in (on_wire, queued):
        with pytest.raises(KafkaError, match="closed before"):
            future.result(0)
    assert producer.sender.lost_records() == 2
    assert len(seen) == 1
    assert producer.pool.available() == producer.pool.total
    assert producer.client.closed


@pytest.mark.fault("W20")
def test_unexpected_error_fails_all_records_with_its_cause() -> None:
    producer = world()
    futures = [producer.send(b"x")]
    producer.step()
    futures.append(producer.send(b"y"))

    def explode() -> None:
        raise ZeroDivisionError("surprise")

    producer.client.on_poll = explode
    assert not producer.step()
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, ProducerFatalError)
        assert isinstance(error.__cause__, ZeroDivisionError)
    assert str(producer.sender.failure) == str(futures[1].exception(0))
    assert [getattr(each.exception(0), "possibly_written", None) for each in futures] == [
        True,
        False,
    ]
    assert producer.client.closed


@pytest.mark.fault("W20")
def test_error_while_handling_a_response_stops_the_sender() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", ProduceResponse(responses=[None]))  # type: ignore[list-item]  # nonsense
    producer.step()
    assert not producer.step()
    assert isinstance(future.exception(0), ProducerFatalError)


@pytest.mark.fault("W7")
def test_fenced_producer_fails_permanently() -> None:
    producer = world(partitions=2)
    future, other = producer.send(b"x", 0), producer.send(b"y", 1)
    producer.step()
    queued = producer.send(b"z", 1)
    producer.respond_with_error(90)
    for each in (future, other, queued):
        producer.step()
        assert isinstance(each.exception(0), KafkaError)
    assert isinstance(producer.sender.failure, ProducerFencedError)
    assert "PRODUCER_FENCED" in str(producer.sender.failure)


def test_response_without_a_body_is_a_network_error() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    producer.client.end("0", ProduceResponse())
    producer.step()
    assert not future.done()
    assert NetworkError.retriable
    producer.settle()
    assert producer.broker[0].values() == [b"x"]


@pytest.mark.fault("W20")
@pytest.mark.parametrize(
    ("code", "step", "written"),
    [(0, "completed", [True, True]), (NOT_ENOUGH_REPLICAS, "may_retry", [False, True])],
)
def test_error_within_a_response_leaves_the_other_outcomes_unknown(
    code: int, step: str, written: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(SequenceManager, step, explode)
    producer = world(partitions=2)
    futures = [producer.send(b"x", partition) for partition in range(2)]
    producer.step()
    assert producer.respond_to_all(errors={0: code, 1: code} if code else None) == 1
    assert not producer.step()
    errors = [future.exception(0) for future in futures]
    assert [error is not None and error.possibly_written for error in errors] == written
