"""Batches with unknown outcome are retried with their sequences, not written again."""

import random
from typing import Any

import pytest

from kclient.common.broker_errors import (
    KafkaStorageError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    UnknownProducerIdError,
    UnknownServerError,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.producer.batch_state import BatchState
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import DeliveryTimeoutError
from kclient.record import CompressionType
from tests.support.virtual.producer_world import ProducerWorld, WorldOptions, builder_of

UNKNOWN_TOPIC, NOT_LEADER, NOT_ENOUGH, AFTER_APPEND = 3, 6, 19, 20
OUT_OF_ORDER, UNKNOWN_PRODUCER = 45, 59


def world(**options: Any) -> ProducerWorld:
    """Returns a producer with one record acknowledged in each partition."""
    made = ProducerWorld(WorldOptions(**options))
    for partition in range(made.options.partitions):
        made.send(b"first", partition)
    made.settle()
    return made


def values(producer: ProducerWorld) -> list[bytes]:
    return producer.broker[0].values()[1:]


def epoch(producer: ProducerWorld) -> int:
    assert producer.transactions is not None
    return producer.transactions.producer.epoch


def lose_the_response(producer: ProducerWorld, *, written: int) -> None:
    """Closes the connection after the broker has processed the first few requests."""
    for sent in producer.client.requests()[:written]:
        producer.process(sent)
    producer.client.disconnect("0")
    producer.step()


def send_in_batches(
    producer: ProducerWorld, count: int, first: int = 0, size: int = 60
) -> list[DeliveryFuture]:
    """Sends batches of one record."""
    futures = []
    for number in range(first, first + count):
        futures.append(producer.send(b"%d" % number + bytes(size)))
        producer.step()
    return futures


def fails(future: DeliveryFuture, kind: type[KafkaError], *, written: bool) -> KafkaError:
    error = future.exception(0)
    assert isinstance(error, kind)
    assert error.possibly_written is written
    return error


# -- a batch that has become too large -------------------------------------------------------------


@pytest.mark.fault("W8", "W3")
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_written_batch_is_not_written_again_in_parts(codec: CompressionType) -> None:
    producer = world(compression=codec)
    sent = [b"%d" % number + random.Random(number).randbytes(100) for number in range(4)]
    futures = [producer.send(value) for value in sent]
    producer.step()
    lose_the_response(producer, written=1)
    producer.broker[0].max_batch_bytes = 250
    producer.settle()
    for future in futures:
        error = fails(future, RecordTooLargeError, written=True)
        assert "too large when it was retried" in str(error)
        assert "the broker may hold it nevertheless" in str(error)
    assert values(producer) == sent
    after = producer.send(b"after")
    producer.settle()
    assert after.result(0).offset == 5
    assert values(producer) == [*sent, b"after"]
    assert producer.pool.available() == producer.pool.total


@pytest.mark.fault("W8", "W3")
def test_unwritten_batch_is_written_in_parts() -> None:
    producer = world()
    sent = [b"%d" % number + bytes(100) for number in range(5)]
    futures = [producer.send(value) for value in sent]
    producer.step()
    lose_the_response(producer, written=0)
    producer.broker[0].max_batch_bytes = 200
    producer.settle()
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]
    assert values(producer) == sent
    assert epoch(producer) == 0


@pytest.mark.fault("W8", "W3")
@pytest.mark.parametrize("written", range(4))
def test_batches_after_one_that_became_too_large_keep_their_order(written: int) -> None:
    producer = world(batch_size=200)
    large = [producer.send(b"a" + bytes(60)), producer.send(b"b" + bytes(60))]
    producer.step()
    behind = send_in_batches(producer, 2, size=120)
    assert len(producer.client.requests()) == 3
    lose_the_response(producer, written=written)
    producer.broker[0].max_batch_bytes = 195
    producer.settle()
    for future in large:
        if written:
            fails(future, RecordTooLargeError, written=True)
        else:
            assert future.exception(0) is None
    assert [future.exception(0) for future in behind] == [None, None]
    assert [value[:1] for value in values(producer)] == [b"a", b"b", b"0", b"1"]


@pytest.mark.fault("W8", "W3")
def test_single_record_that_became_too_large_is_possibly_written() -> None:
    producer = world()
    future = producer.send(bytes(300))
    producer.step()
    lose_the_response(producer, written=1)
    producer.broker[0].max_batch_bytes = 200
    producer.settle()
    fails(future, RecordTooLargeError, written=True)
    after = producer.send(b"after")
    producer.settle()
    assert after.result(0).offset == 2
    assert values(producer) == [bytes(300), b"after"]


@pytest.mark.fault("W8")
def test_without_idempotence_records_are_rather_duplicated_than_lost() -> None:
    producer = world(idempotence=False, acks=1)
    futures = [producer.send(bytes(100)) for _ in range(4)]
    producer.step()
    lose_the_response(producer, written=1)
    producer.broker[0].max_batch_bytes = 250
    producer.settle()
    assert [future.result(0).offset for future in futures] == [5, 6, 7, 8]


# -- renumbering -----------------------------------------------------------------------------------


@pytest.mark.fault("W5", "W3")
@pytest.mark.parametrize("has_them", [True, False])
def test_unknown_outcomes_are_resolved_before_a_new_epoch(has_them: bool) -> None:
    producer = world(batch_size=100)
    futures = send_in_batches(producer, 3)
    # The first is retriable; a broker that lost its state accepts the others, or does not.
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_ENOUGH}))
    if has_them:
        producer.broker[0].states.clear()
    lose_the_response(producer, written=2 if has_them else 0)
    assert values(producer) == ([b"1" + bytes(60), b"2" + bytes(60)] if has_them else [])
    if not has_them:  # a gap in place of the next sequence
        producer.step(200)
        producer.respond_with_error(OUT_OF_ORDER)
    producer.settle()
    numbers = [value[:1] for value in values(producer)]
    if has_them:
        assert numbers == [b"1", b"2"]
        fails(futures[0], OutOfOrderSequenceError, written=False)
        assert [future.exception(0) for future in futures[1:]] == [None, None]
    else:
        assert numbers == [b"0", b"1", b"2"]
        assert [future.exception(0) for future in futures] == [None, None, None]


@pytest.mark.fault("W6", "W3")
def test_possibly_written_batch_is_not_renumbered_after_lost_producer_state() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    lose_the_response(producer, written=1)
    producer.broker[0].states.clear()
    producer.step(200)
    producer.respond_with_error(UNKNOWN_PRODUCER)
    fails(future, UnknownProducerIdError, written=True)
    after = producer.send(b"y")
    producer.settle()
    assert after.exception(0) is None
    assert values(producer) == [b"x", b"y"]


@pytest.mark.fault("W2", "W3")
def test_no_more_batches_in_flight_than_a_broker_remembers() -> None:
    producer = world(batch_size=100, nodes=2)
    futures = send_in_batches(producer, 5)
    for sent in producer.client.requests():
        producer.process(sent)  # and their responses are late
    producer.leaders = {0: 1}
    producer.leader_epoch += 1
    producer.update_metadata()
    futures += send_in_batches(producer, 5, first=5)
    assert len(producer.client.wire.get("1", ())) == 0
    lose_the_response(producer, written=0)
    producer.settle()
    assert [future.result(0).offset for future in futures] == list(range(1, 11))
    assert [value[:1] for value in values(producer)] == [b"%d" % number for number in range(10)]


# -- error codes -----------------------------------------------------------------------------------


# Codes that Apache Kafka returns only before it has appended anything.
REFUSED_BEFORE_APPEND = {
    2, 10, 17, 18, 19, 21, 29, 31, 32, 35, 43, 45, 47, 48, 49, 51, 53, 59, 76, 87, 90, 100, 120,
}  # fmt: skip
# Codes that a leader also returns after the append, while it waits for the followers of acks=all.
REFUSED_BEFORE_OR_AFTER_APPEND = {UNKNOWN_TOPIC, NOT_LEADER}
DUPLICATE_SEQUENCE = 46
NO_KAFKA_CODE = 9999
EVERY_CODE = [*(code for code in range(-1, 134) if code), NO_KAFKA_CODE]


@pytest.mark.fault("W10", "W13")
@pytest.mark.parametrize("code", EVERY_CODE)
@pytest.mark.parametrize(("acks", "idempotence"), [(1, False), (-1, False), (-1, True)])
def test_every_error_code_determines_possibly_written(
    code: int, acks: int, idempotence: bool
) -> None:
    producer = world(idempotence=idempotence, acks=acks, retries=0)
    future = producer.send(b"x")
    producer.step()
    producer.respond_with_error(code)
    if code == DUPLICATE_SEQUENCE:
        assert future.exception(0) is None
        return
    certain = REFUSED_BEFORE_APPEND | (REFUSED_BEFORE_OR_AFTER_APPEND if acks == 1 else set())
    error = fails(future, KafkaError, written=code not in certain)
    assert ("may hold it nevertheless" in str(error)) is error.possibly_written


@pytest.mark.fault("W10")
@pytest.mark.parametrize("code", [7, AFTER_APPEND, 56, -1, UNKNOWN_TOPIC, NOT_LEADER])
def test_timeout_after_the_append_is_possibly_written(code: int) -> None:
    producer = world(delivery_timeout_ms=1_000)
    future = producer.send(b"x")
    producer.step()
    producer.process(producer.client.requests()[0])  # the leader appends, then loses leadership
    producer.respond_with_error(code)
    producer.client.down.add(0)
    producer.step(1_000)
    fails(future, UnknownServerError if code == -1 else DeliveryTimeoutError, written=True)
    assert values(producer) == [b"x"]


@pytest.mark.fault("W3", "W5")
@pytest.mark.parametrize("in_doubt", [2, 3, 5])
def test_earlier_batches_of_a_restarted_broker_are_possibly_written(in_doubt: int) -> None:
    """Apache Kafka stores only the last batch of a producer at shutdown (ProducerStateManager)."""
    producer = world(batch_size=100)
    futures = send_in_batches(producer, in_doubt)
    lose_the_response(producer, written=in_doubt)
    for known in producer.broker[0].states.values():
        last = known[-1]
        known.clear()
        known.append(last)
    producer.settle()
    for future in futures[:-1]:
        fails(future, OutOfOrderSequenceError, written=True)
    assert futures[-1].exception(0) is None
    after = producer.send(b"after")
    producer.settle()
    assert after.exception(0) is None
    expected = [*(b"%d" % number for number in range(in_doubt)), b"a"]
    assert [value[:1] for value in values(producer)] == expected


@pytest.mark.fault("W5", "W10")
@pytest.mark.parametrize("code", sorted(REFUSED_BEFORE_OR_AFTER_APPEND))
def test_batch_appended_by_a_former_leader_is_not_renumbered(code: int) -> None:
    producer = world(batch_size=100)
    refused, appended = send_in_batches(producer, 2)
    first, second = producer.client.requests()
    producer.client.end("0", producer.process(first, {0: NOT_ENOUGH}))
    producer.broker[0].states.clear()  # so that the second batch is accepted before the first
    producer.process(second)
    producer.respond_with_error(code)
    producer.settle()
    fails(refused, OutOfOrderSequenceError, written=False)
    assert appended.exception(0) is None
    assert [value[:1] for value in values(producer)] == [b"1"]


@pytest.mark.fault("W4", "W10")
def test_lost_connection_is_possibly_written() -> None:
    producer = world(idempotence=False, acks=1, retries=0)
    future = producer.send(b"x")
    producer.step()
    producer.client.disconnect("0")
    producer.step()
    fails(future, DisconnectedError, written=True)


@pytest.mark.fault("W3", "W10")
def test_rejection_does_not_cover_an_earlier_attempt() -> None:
    producer = world()
    future = producer.send(b"x")
    producer.step()
    lose_the_response(producer, written=1)
    producer.step(200)
    producer.respond_with_error(29)
    error = fails(future, KafkaError, written=True)
    assert "not authorized to write to topic 't'; an ACL" in str(error)
    assert "; the record was sent" in str(error)


@pytest.mark.fault("W10", "W11")
@pytest.mark.parametrize("code", [56, -1])
def test_failed_batch_starts_a_new_epoch_only_if_it_left_a_gap(code: int) -> None:
    for appended in (True, False):
        producer = world(delivery_timeout_ms=1_000)
        lost = producer.send(b"x")
        producer.step()
        if appended:
            producer.process(producer.client.requests()[0])
        producer.respond_with_error(code)
        if code == 56:
            producer.step(1_000)
        fails(lost, DeliveryTimeoutError if code == 56 else UnknownServerError, written=True)
        assert KafkaStorageError.retriable
        after = producer.send(b"y")
        producer.settle()
        assert after.exception(0) is None
        assert values(producer) == ([b"x", b"y"] if appended else [b"y"])


@pytest.mark.fault("W16", "W10")
def test_forced_close_distinguishes_sent_from_unsent_records() -> None:
    producer = world()
    on_wire = producer.send(b"x")
    producer.step()
    queued = producer.send(b"y")
    assert builder_of(producer.client.requests()[0]).batches[0].state is BatchState.IN_FLIGHT
    producer.sender.force_close()
    assert not producer.step()
    assert "may hold it nevertheless" in str(fails(on_wire, KafkaError, written=True))
    assert "may hold" not in str(fails(queued, KafkaError, written=False))
