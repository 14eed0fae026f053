"""No record twice, none out of order, none lost: sequences under every failure we can think of."""

from functools import partial

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kclient.common.broker_errors import OutOfOrderSequenceError
from kclient.common.errors import KafkaError
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import DeliveryTimeoutError
from kclient.producer.producer_batch import ProducerIdAndEpoch, advance_sequence
from kclient.producer.transaction_manager import MAX_EPOCH, State, TransactionManager
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.support.producer_world import ProducerWorld, WorldOptions, builder_of

NOT_LEADER, OUT_OF_ORDER, DUPLICATE, UNKNOWN_PRODUCER, INVALID = 6, 45, 46, 59, 87


def world(**options: object) -> ProducerWorld:
    made = ProducerWorld(WorldOptions(batch_size=100, **options))  # type: ignore[arg-type]  # by name
    for partition in range(made.options.partitions):
        made.send(b"first", partition)
    made.settle()
    return made


def managed(of: ProducerWorld) -> TransactionManager:
    assert of.transactions is not None
    return of.transactions


def send_five(producer: ProducerWorld) -> list[DeliveryFuture]:
    """Puts five batches on the wire."""
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
    assert advance_sequence(2**31 - 1, 1) == 0
    assert advance_sequence(2**31 - 3, 5) == 2
    assert advance_sequence(0, -1) == 2**31 - 1


def test_the_first_batch_of_a_partition_goes_alone() -> None:
    producer = ProducerWorld(WorldOptions(batch_size=100))
    for number in range(3):
        producer.send(b"%d" % number + bytes(60))
    for _ in range(3):
        producer.step()
    assert sequences(producer) == [(0, 0)]
    producer.answer_one(NOT_LEADER)
    producer.settle()
    assert [value[:1] for value in producer.broker[0].values()] == [b"0", b"1", b"2"]


# W2
def test_five_in_flight_keep_their_order_when_the_first_fails() -> None:
    producer = world()
    futures = send_five(producer)
    assert sequences(producer) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_LEADER}))
    producer.answer_all()  # the others come out of order
    producer.settle()
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert managed(producer).producer.epoch == 0


def test_batches_that_are_sent_again_go_one_by_one() -> None:
    producer = world()
    send_five(producer)
    producer.client.disconnect("0")
    producer.step()
    for expected in range(1, 6):
        producer.step(1_500)
        producer.step()
        assert sequences(producer) == [(0, expected)]
        producer.answer_all()


def _note(told: list[int], number: int, _: object) -> None:
    told.append(number)


# W3, W4
def test_a_duplicate_is_a_success() -> None:
    producer = world()
    futures = send_five(producer)
    producer.answer_one(DUPLICATE)
    assert futures[0].result(0).offset == -1
    producer.client.disconnect("0")
    producer.step()
    assert not any(future.done() for future in futures[1:])


def test_answers_lost_after_all_five_were_written() -> None:
    producer = world()
    told: list[int] = []
    futures = send_five(producer)
    for number, future in enumerate(futures):
        future.add_done_callback(partial(_note, told, number))
    for sent in producer.client.requests():
        producer.process(sent)
    producer.client.disconnect("0")
    producer.step()
    producer.settle()
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert told == [0, 1, 2, 3, 4]
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]


# W5
def test_a_gap_is_closed_by_a_new_epoch_once_nothing_is_on_the_wire() -> None:
    producer = world()
    futures = send_five(producer)
    producer.answer_one(OUT_OF_ORDER)  # next in line, and refused nevertheless
    producer.step(200)
    assert managed(producer).producer.epoch == 0
    assert len(producer.client.requests()) == 4
    for _ in range(4):
        producer.answer_one(OUT_OF_ORDER)
    producer.step()
    assert managed(producer).producer == ProducerIdAndEpoch(7, 1)
    producer.settle()
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert [held.epoch for held in producer.broker[0].log] == [0, 1, 1, 1, 1, 1]
    assert [held.first_sequence for held in producer.broker[0].log] == [0, 0, 1, 2, 3, 4]
    assert all(future.result(0).offset >= 0 for future in futures)


def test_other_partitions_finish_in_the_old_epoch_and_go_on_in_the_new() -> None:
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


# W6
def test_a_broker_that_forgot_the_producer() -> None:
    producer = world()
    futures = send_five(producer)
    producer.broker[0].states.clear()
    for _ in range(5):
        producer.answer_one(UNKNOWN_PRODUCER)
    producer.settle()
    assert managed(producer).producer.epoch == 1
    assert numbers(producer) == [b"0", b"1", b"2", b"3", b"4"]
    assert [future.result(0).offset for future in futures] == [1, 2, 3, 4, 5]


def test_a_refused_batch_leaves_no_gap_behind() -> None:
    producer = world()
    futures = send_five(producer)
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: INVALID}))
    producer.answer_all()
    producer.settle()
    assert isinstance(futures[0].exception(0), KafkaError)
    assert numbers(producer) == [b"1", b"2", b"3", b"4"]
    assert managed(producer).producer.epoch == 1


# W11
def test_an_expired_batch_that_was_written_after_all_needs_no_new_epoch() -> None:
    producer = world(delivery_timeout_ms=5_000)
    lost = producer.send(b"0" + bytes(60))
    producer.step()
    producer.step(5_000)
    error = lost.exception(0)
    assert isinstance(error, DeliveryTimeoutError)
    assert error.possibly_written
    later = producer.send(b"1" + bytes(60))
    producer.step()
    assert len(producer.client.requests()) == 1  # nothing new before it is known
    producer.answer_all()
    producer.settle()
    assert numbers(producer) == [b"0", b"1"]
    assert later.result(0).offset == 2
    assert managed(producer).producer.epoch == 0


def test_an_expired_batch_that_was_lost_needs_a_new_epoch() -> None:
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


def test_a_batch_behind_an_expired_one_proves_the_gap() -> None:
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
    producer.answer_all()
    producer.settle()
    assert behind.result(0).offset == 1
    assert numbers(producer) == [b"1"]
    assert managed(producer).producer.epoch == 1


def test_batches_that_a_broker_without_memory_let_others_overtake_fail() -> None:
    producer = world()
    futures = send_five(producer)
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_LEADER}))
    producer.client.end("0", producer.process(producer.client.requests()[0], {0: NOT_LEADER}))
    producer.broker[0].states.clear()  # it takes any sequence now
    producer.answer_all()
    producer.settle()
    for overtaken in futures[:2]:
        with pytest.raises(OutOfOrderSequenceError, match="would break the order"):
            overtaken.result(0)
    assert numbers(producer) == [b"2", b"3", b"4"]


def test_a_topic_made_anew_starts_at_zero() -> None:
    producer = world()
    producer.leader_epoch += 1
    producer.update_metadata(topic_id=b"n" * 16)
    producer.broker[0].log.clear()
    producer.broker[0].states.clear()
    producer.broker[0].next_offset = 0
    producer.send(b"x")
    producer.settle()
    assert [held.first_sequence for held in producer.broker[0].log] == [0]


def test_a_topic_that_metadata_lost_for_a_moment_keeps_its_sequences() -> None:
    producer = world()
    leaders, producer.leaders = producer.leaders, {}
    producer.update_metadata()
    producer.leaders = leaders
    producer.leader_epoch += 1
    producer.update_metadata()
    producer.send(b"x")
    producer.settle()
    assert [held.first_sequence for held in producer.broker[0].log] == [0, 1]


def test_epochs_that_are_used_up_ask_for_a_new_id() -> None:
    producer = world()
    transactions = managed(producer)
    transactions.producer = ProducerIdAndEpoch(7, MAX_EPOCH)
    producer.send(b"0")
    producer.step()
    producer.answer_one(OUT_OF_ORDER)
    producer.step(200)
    assert transactions.state is State.INITIALIZING
    producer.client.end("0", InitProducerIdResponse(producer_id=8, producer_epoch=0))
    producer.settle()
    assert [(held.producer_id, held.epoch) for held in producer.broker[0].log] == [(7, 0), (8, 0)]


class Chaos(RuleBasedStateMachine):
    """Two partitions on two nodes; everything may fail, and the log must stay right."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ProducerWorld(
            WorldOptions(partitions=2, nodes=2, batch_size=200, delivery_timeout_ms=30_000)
        )
        self.sent: dict[int, list[tuple[bytes, DeliveryFuture]]] = {0: [], 1: []}
        self.told: dict[bytes, int] = {}
        self.count = 0
        self.expiring = False

    @rule(partition=st.integers(0, 1), count=st.integers(1, 4), size=st.sampled_from([1, 45]))
    def send(self, partition: int, count: int, size: int) -> None:
        for _ in range(count):
            value = b"%06d" % self.count + bytes(size)
            self.count += 1
            self.told[value] = 0

            def tell(metadata: object, error: object, value: bytes = value) -> None:
                self.told[value] += 1

            future = self.world.send(value, partition, on_delivery=tell)
            self.sent[partition].append((value, future))

    @rule(advance_ms=st.sampled_from([0, 1, 50, 150, 1_000]))
    def step(self, advance_ms: int) -> None:
        self.world.step(advance_ms)

    @precondition(lambda self: self.world.client.in_flight_request_count())
    @rule(node=st.sampled_from("01"), code=st.sampled_from([0, 0, 0, 3, 6, 7, 19, 20, 10]))
    def answer(self, node: str, code: int) -> None:
        queue = self.world.client.wire.get(node)
        if not queue:
            return
        sent = queue[0]
        partitions = [batch.topic_partition.partition for batch in builder_of(sent).batches]
        if code == 10:
            for partition in partitions:
                self.world.broker[partition].max_batch_bytes = 130  # any single record fits
        # An error after the append is told although the batch is in the log.
        errors = {} if code in {7, 20} else dict.fromkeys(partitions, code) if code != 10 else {}
        response = sent.answer if sent.processed else self.world.process(sent, errors)
        for partition in partitions:
            self.world.broker[partition].max_batch_bytes = 1 << 30
        assert response is not None
        if code in {7, 20}:
            for each in response.responses[0].partition_responses:  # type: ignore[attr-defined]  # a ProduceResponse
                each.error_code, each.base_offset = each.error_code or code, -1
        self.world.client.end(node, response)
        self.world.step()

    @rule(node=st.sampled_from("01"), written=st.integers(0, 5))
    def disconnect(self, node: str, written: int) -> None:
        """The connection breaks; the broker has acted on the first few requests only."""
        for sent in list(self.world.client.wire.get(node, ()))[:written]:
            if not sent.processed:
                self.world.process(sent)
        self.world.client.disconnect(node)
        self.world.step()

    @rule()
    def move_leader(self) -> None:
        self.world.leaders = {0: self.world.leaders[1], 1: self.world.leaders[0]}
        self.world.leader_epoch += 1
        self.world.update_metadata()

    @rule(node=st.sampled_from([0, 1]))
    def go_down_or_come_up(self, node: int) -> None:
        self.world.client.down ^= {node}

    @rule()
    def let_everything_expire(self) -> None:
        self.expiring = True
        self.world.step(30_000)

    @invariant()
    def the_log_is_in_order_and_holds_nothing_twice(self) -> None:
        for partition, sent in self.sent.items():
            order = {value: place for place, (value, _) in enumerate(sent)}
            places = [order[value] for value in self.world.broker[partition].values()]
            assert places == sorted(set(places))

    @invariant()
    def what_was_acknowledged_is_where_it_was_said_to_be(self) -> None:
        for partition, sent in self.sent.items():
            log = self.world.broker[partition].values()
            for value, future in sent:
                if future.done() and future.exception(0) is None:
                    offset = future.result(0).offset
                    assert offset == -1 or log[offset] == value
                    assert value in log

    @invariant()
    def nobody_is_told_twice(self) -> None:
        for sent in self.sent.values():
            for value, future in sent:
                assert self.told[value] == int(future.done())

    def teardown(self) -> None:
        self.world.client.down.clear()
        self.world.settle(400)
        self.the_log_is_in_order_and_holds_nothing_twice()
        self.what_was_acknowledged_is_where_it_was_said_to_be()
        self.nobody_is_told_twice()
        for partition, sent in self.sent.items():
            log = set(self.world.broker[partition].values())
            for value, future in sent:
                assert future.done()
                error = future.exception(0)
                if error is None:
                    assert value in log
                else:
                    assert isinstance(error, DeliveryTimeoutError)
                    assert self.expiring
                    assert error.possibly_written or value not in log
        assert self.world.pool.available() == self.world.pool.total
        assert self.world.client.in_flight_request_count() == 0


Chaos.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestChaos = Chaos.TestCase
