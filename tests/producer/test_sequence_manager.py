"""Sequences over failures: no record is duplicated, reordered or lost."""

from functools import partial
from random import Random

import pytest

from kclient.common.broker_errors import OutOfOrderSequenceError
from kclient.common.errors import KafkaError
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import DeliveryTimeoutError
from kclient.producer.sequence_manager import MAX_EPOCH, SequenceManager
from kclient.producer.transaction_state import State
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.record import ProducerIdAndEpoch, increment_sequence
from tests.support.virtual.producer_world import (
    ModelPartition,
    ProducerWorld,
    WorldOptions,
    builder_of,
)

NOT_LEADER, OUT_OF_ORDER, DUPLICATE, UNKNOWN_PRODUCER, INVALID = 6, 45, 46, 59, 87


def world(**options: object) -> ProducerWorld:
    made = ProducerWorld(WorldOptions(batch_size=100, **options))  # type: ignore[arg-type]  # by name
    for partition in range(made.options.partitions):
        made.send(b"first", partition)
    made.settle()
    return made


def managed(of: ProducerWorld) -> SequenceManager:
    assert of.transactions is not None
    return of.transactions


def send_five(producer: ProducerWorld) -> list[DeliveryFuture]:
    """Sends five batches."""
    futures = [producer.send(b"%d" % number + bytes(60)) for number in range(5)]
    for _ in range(5):
        producer.step()
    assert len(producer.client.requests()) == 5
    return futures


def numbers(producer: ProducerWorld, partition: int = 0) -> list[bytes]:
    return [value[:1] for value in producer.broker[partition].values()][1:]


def sequences(producer: ProducerWorld) -> list[tuple[int, int]]:
    return [
        (batch.producer.epoch, batch.base_sequence)
        for sent in producer.client.requests()
        for batch in builder_of(sent).batches
    ]


def test_sequences_wrap() -> None:
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 3, 5) == 2
    assert increment_sequence(0, -1) == 2**31 - 1


def test_first_batch_of_a_partition_is_sent_alone() -> None:
    producer = ProducerWorld(WorldOptions(batch_size=100))
    for number in range(3):
        producer.send(b"%d" % number + bytes(60))
    for _ in range(3):
        producer.step()
    assert sequences(producer) == [(0, 0)]
    producer.respond_with_error(NOT_LEADER)
    producer.settle()
    assert [value[:1] for value in producer.broker[0].values()] == [b"0", b"1", b"2"]


@pytest.mark.fault("W1", "W2")
def test_five_in_flight_keep_their_order_if_the_first_fails() -> None:
    producer = world()
    futures = send_five(producer)
    assert sequences(producer) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_LEADER}))
    producer.respond_to_all()  # the others are out of order
    producer.settle()
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert managed(producer).producer.epoch == 0


@pytest.mark.fault("W1", "W2")
def test_new_batches_wait_for_the_responses_of_the_former_leader() -> None:
    producer = world(nodes=2)
    futures = [producer.send(b"%d" % number + bytes(60)) for number in range(3)]
    for _ in futures:
        producer.step()
    producer.respond_with_error(NOT_LEADER, new_leader=1)
    futures.append(producer.send(b"3" + bytes(60)))
    for _ in range(3):
        producer.step()
    assert 4 not in sequences_to(producer, "1")  # 2 and 3 are still on their way
    while producer.client.wire.get("0"):
        producer.respond_with_error(NOT_LEADER)
        producer.step()
    seen = list[int]()
    while producer.client.wire.get("1"):
        seen += sequences_to(producer, "1")
        producer.respond_to_all("1")
        producer.step(1_500)
        producer.step()
    assert seen == [1, 2, 3, 4]
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4]


def sequences_to(producer: ProducerWorld, node: str) -> list[int]:
    """Return the sequences of the batches in flight to a node."""
    return [
        batch.base_sequence
        for sent in producer.client.wire.get(node, ())
        for batch in builder_of(sent).batches
    ]


@pytest.mark.fault("W2")
def test_retried_batches_are_sent_one_by_one() -> None:
    producer = world()
    send_five(producer)
    producer.client.disconnect("0")
    producer.step()
    for expected in range(1, 6):
        producer.step(1_500)
        producer.step()
        assert sequences(producer) == [(0, expected)]
        producer.respond_to_all()


def _note(seen: list[int], number: int, _: object) -> None:
    seen.append(number)


@pytest.mark.fault("W3")
def test_duplicate_sequence_completes_the_batch() -> None:
    producer = world()
    futures = send_five(producer)
    producer.respond_with_error(DUPLICATE)
    assert futures[0].result(0).offset == -1
    producer.client.disconnect("0")
    producer.step()
    assert not any(future.done() for future in futures[1:])


@pytest.mark.fault("W3", "W4")
def test_responses_lost_after_all_five_were_written() -> None:
    producer = world()
    seen: list[int] = []
    futures = send_five(producer)
    for number, future in enumerate(futures):
        future.add_done_callback(partial(_note, seen, number))
    for sent in producer.client.requests():
        producer.process(sent)
    producer.client.disconnect("0")
    producer.step()
    producer.settle()
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert seen == [0, 1, 2, 3, 4]
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]


@pytest.mark.fault("W5")
def test_gap_is_closed_by_a_new_epoch_when_nothing_is_in_flight() -> None:
    producer = world()
    futures = send_five(producer)
    producer.respond_with_error(OUT_OF_ORDER)  # the next batch, and rejected nevertheless
    producer.step(200)
    assert managed(producer).producer.epoch == 0
    assert len(producer.client.requests()) == 4
    for _ in range(4):
        producer.respond_with_error(OUT_OF_ORDER)
    producer.step()
    assert managed(producer).producer == ProducerIdAndEpoch(7, 1)
    producer.settle()
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert [held.epoch for held in producer.broker[0].log] == [0, 1, 1, 1, 1, 1]
    assert [held.first_sequence for held in producer.broker[0].log] == [0, 0, 1, 2, 3, 4]
    assert all(future.result(0).offset >= 0 for future in futures)


@pytest.mark.fault("W5")
def test_other_partitions_complete_in_the_old_epoch_first() -> None:
    producer = world(partitions=2)
    producer.send(b"a" + bytes(60), 0)
    producer.send(b"b" + bytes(60), 1)
    producer.step()
    producer.client.end(
        "0", producer.process(producer.client.requests()[0], {0: OUT_OF_ORDER, 1: NOT_LEADER})
    )
    producer.step()
    producer.step()
    assert managed(producer).producer.epoch == 1
    producer.send(b"c" + bytes(60), 1)
    producer.settle()
    assert [(held.epoch, held.first_sequence) for held in producer.broker[1].log] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    assert numbers(producer, 1) == [b"b", b"c"]


@pytest.mark.fault("W6")
def test_broker_that_lost_the_producer_state() -> None:
    producer = world()
    futures = send_five(producer)
    producer.broker[0].states.clear()
    for _ in range(5):
        producer.respond_with_error(UNKNOWN_PRODUCER)
    producer.settle()
    assert managed(producer).producer.epoch == 1
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]


def test_rejected_batch_leaves_no_gap() -> None:
    producer = world()
    futures = send_five(producer)
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: INVALID}))
    producer.respond_to_all()
    producer.settle()
    assert isinstance(futures[0].exception(0), KafkaError)
    assert numbers(producer) == [b"1", b"2", b"3", b"4"]
    assert managed(producer).producer.epoch == 1


@pytest.mark.fault("W11")
def test_expired_batch_that_was_written_needs_no_new_epoch() -> None:
    producer = world(delivery_timeout_ms=5_000)
    lost = producer.send(b"0" + bytes(60))
    producer.step()
    producer.step(5_000)
    error = lost.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.possibly_written
    later = producer.send(b"1" + bytes(60))
    producer.step()
    assert len(producer.client.requests()) == 1  # nothing new before the outcome is known
    producer.respond_to_all()
    producer.settle()
    assert numbers(producer) == [b"0", b"1"]
    assert later.result(0).offset == 2
    assert managed(producer).producer.epoch == 0


@pytest.mark.fault("W11")
def test_expired_batch_that_was_lost_needs_a_new_epoch() -> None:
    producer = world(delivery_timeout_ms=5_000)
    lost = producer.send(b"0" + bytes(60))
    producer.step()
    producer.client.disconnect("0")
    producer.client.down.add(0)
    producer.step(5_000)
    assert isinstance(lost.exception(0), DeliveryTimeoutError)
    producer.client.down.clear()
    later = producer.send(b"1" + bytes(60))
    producer.settle()
    assert later.result(0).offset == 1
    assert [(held.epoch, held.first_sequence) for held in producer.broker[0].log] == [
        (0, 0),
        (1, 0),
    ]


@pytest.mark.fault("W11")
def test_gap_of_an_expired_batch_is_resolved_in_the_same_step() -> None:
    producer = world(delivery_timeout_ms=5_000)
    lost = producer.send(b"0" + bytes(60))
    producer.step()
    producer.client.disconnect("0")
    producer.client.down.add(0)
    producer.step()  # the batch is queued again
    producer.step(5_000)
    assert isinstance(lost.exception(0), DeliveryTimeoutError)
    assert managed(producer).producer.epoch == 1


@pytest.mark.fault("W11")
def test_batch_after_an_expired_one_proves_the_gap() -> None:
    producer = world(delivery_timeout_ms=5_000)
    producer.send(b"0" + bytes(60))
    producer.step()
    producer.clock.now_ms += 3_000
    behind = producer.send(b"1" + bytes(60))
    producer.step()
    producer.step(2_000)
    first = producer.client.requests()[0]
    assert not first.processed
    producer.client.end("0", error=None, response=producer.process(first, {0: NOT_LEADER}))
    producer.respond_to_all()
    producer.settle()
    assert behind.result(0).offset == 1
    assert numbers(producer) == [b"1"]
    assert managed(producer).producer.epoch == 1


@pytest.mark.fault("W5")
def test_overtaken_batches_fail() -> None:
    producer = world()
    futures = send_five(producer)
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_LEADER}))
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_LEADER}))
    producer.broker[0].states.clear()  # it accepts any sequence now
    producer.respond_to_all()
    producer.settle()
    for overtaken in futures[:2]:
        with pytest.raises(OutOfOrderSequenceError, match="would break the order"):
            overtaken.result(0)
    assert numbers(producer) == [b"2", b"3", b"4"]


@pytest.mark.fault("W12")
def test_recreated_topic_starts_at_sequence_zero() -> None:
    producer = world()
    producer.leader_epoch += 1
    producer.update_metadata(topic_id=b"n" * 16)
    producer.broker[0].log.clear()
    producer.broker[0].states.clear()
    producer.broker[0].next_offset = 0
    producer.send(b"x")
    producer.settle()
    assert [held.first_sequence for held in producer.broker[0].log] == [0]


@pytest.mark.fault("W12")
def test_topic_briefly_missing_from_metadata_keeps_its_sequences() -> None:
    producer = world()
    producer.update_metadata(error_code=3)
    assert producer.cluster().partition_count("t") is None
    producer.leader_epoch += 1
    producer.update_metadata()
    producer.send(b"x")
    producer.settle()
    assert [held.first_sequence for held in producer.broker[0].log] == [0, 1]


@pytest.mark.parametrize("seed", range(30))
def test_dropped_sequences_lose_duplicate_and_reorder_no_record(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.producer.sequence_manager.MAX_IDLE_SEQUENCES", 2)
    random = Random(seed)
    producer = world(partitions=6)
    transactions = managed(producer)
    sent: dict[int, list[bytes]] = {partition: [b"first"] for partition in range(6)}
    futures, dropped = [], 0
    for number in range(150):
        partition = random.choice([0, 0, 0, *range(6)])
        sent[partition].append(b"%d" % number)
        futures.append(producer.send(sent[partition][-1] + bytes(60), partition))
        producer.step(random.choice([0, 0, 1, 1000]))
        action = random.random()
        if action < 0.2:
            before = len(transactions._partitions)
            transactions.forget_idle(set())
            dropped += before - len(transactions._partitions)
        elif action < 0.3 and producer.client.wire.get("0"):
            producer.respond_with_error(NOT_LEADER)
            producer.update_metadata()
        elif action < 0.7:
            producer.respond_to_all()
    producer.settle()
    assert dropped
    assert all(future.exception(0) is None for future in futures)
    for partition, values in sent.items():
        stored = [value.rstrip(b"\0") for value in producer.broker[partition].values()]
        assert stored == values


def test_few_or_used_sequences_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = world(partitions=4)
    transactions = managed(producer)
    transactions.forget_idle(set())  # few
    monkeypatch.setattr("kclient.producer.sequence_manager.MAX_IDLE_SEQUENCES", 2)
    transactions.forget_idle({"t"})  # used
    assert (len(transactions._partitions), transactions.producer.epoch) == (4, 0)
    transactions.forget_idle(set())
    assert (len(transactions._partitions), transactions.producer.epoch) == (0, 1)


def test_exhausted_epochs_request_a_new_producer_id() -> None:
    producer = world()
    transactions = managed(producer)
    transactions.producer = ProducerIdAndEpoch(7, MAX_EPOCH)
    producer.send(b"0")
    producer.step()
    producer.respond_with_error(OUT_OF_ORDER)
    producer.step(200)
    assert transactions.state is State.INITIALIZING
    producer.client.end("0", InitProducerIdResponse(producer_id=8, producer_epoch=0))
    producer.settle()
    assert [(held.producer_id, held.epoch) for held in producer.broker[0].log] == [(7, 0), (8, 0)]


@pytest.mark.fault("W12")
@pytest.mark.parametrize("acknowledged", [0, 1])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_topic_recreated_with_batches_in_flight_loses_none(
    acknowledged: int, in_flight: int
) -> None:
    producer = world() if acknowledged else ProducerWorld(WorldOptions(batch_size=100))
    for number in range(in_flight):
        producer.send(b"%d" % number + bytes(60))
        producer.step()
    producer.client.disconnect("0")
    producer.leader_epoch += 1
    producer.update_metadata(topic_id=b"n" * 16)
    producer.broker[0] = ModelPartition()
    producer.settle()
    for number in range(in_flight, in_flight + 3):
        producer.send(b"%d" % number + bytes(60))
        producer.settle()
    expected = [b"%d" % number for number in range(in_flight + 3)]
    assert [value[:1] for value in producer.broker[0].values()] == expected


@pytest.mark.fault("W12")
def test_batches_for_a_removed_partition_expire() -> None:
    producer = world(partitions=2, delivery_timeout_ms=1_000)
    producer.client.down.add(0)
    lost, kept = producer.send(b"x", 1), producer.send(b"y", 0)
    producer.leaders = {0: 0}
    producer.leader_epoch += 1
    producer.update_metadata(topic_id=b"n" * 16)
    producer.client.down.clear()
    producer.step()
    producer.respond_to_all()
    assert kept.exception(0) is None
    assert not lost.done()
    producer.step(1_000)
    error = lost.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.possibly_written
    assert "t-1 has no leader" in str(error)
    assert producer.pool.available() == producer.pool.total
