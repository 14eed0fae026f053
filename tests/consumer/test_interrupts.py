"""Ctrl-C takes effect where a call waits or runs code of the application, else at its end.

No record is lost or repeated, no lock stays acquired.
"""

import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType

import pyarrow as pa
import pytest

from kclient.common.errors import ClosedError, KafkaError
from kclient.consumer import Consumer, ConsumerRecords
from kclient.consumer.assignors import Assignment, MemberSubscription, RangeAssignor
from kclient.consumer.interceptors import ConsumerInterceptor
from kclient.record import ConsumerRecord
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld
from tests.support.checks.interrupts import Interruption, at_every_place

_CLOSE_MS = 200


class Reader:
    """Reads all of two partitions, and checks that each record comes once."""

    def __init__(self, world: ConsumerWorld, consumer: Consumer) -> None:
        self.world = world
        self.consumer = consumer
        self.next = {0: 0, 1: 0}
        self.got: Iterable[ConsumerRecord] = ()

    def fill(self) -> None:
        for number, reached in self.next.items():  # what was read only makes the broker slow
            log = self.world.log(number)
            log.batches = [batch for batch in log.batches if batch[1] > reached]
        self.world.fill(3, 2)
        self.world.fill(4, number=1)
        self.world.broker.arrived()

    def take(self, records: list[ConsumerRecord]) -> None:
        for record in records:
            assert record.offset == self.next[record.partition]
            self.next[record.partition] += 1

    def take_what_came(self) -> None:
        self.take(list(self.got))
        self.got = ()

    def read_all(self, place: str) -> None:
        deadline_ms = self.world.clock.now_ms + 5_000
        while any(self.next[n] < self.world.log(n).end_offset for n in (0, 1)):
            assert self.world.clock.now_ms < deadline_ms, f"no more records after {place}"
            self.take(list(self.consumer.poll(0.1)))

    def positions(self) -> dict[int, int]:
        return {
            0: self.consumer.position(ORDERS_0, timeout=5),
            1: self.consumer.position(ORDERS_1, timeout=5),
        }


def lock_is_free(consumer: Consumer) -> bool:
    """Return whether the next call releases the lock to the heartbeat task."""
    consumer.resume()  # a call that acquires the lock
    lock = consumer._core.lock
    free = lock.acquire_in_background()
    if free:
        lock.release_in_background()
    return free


def poll(reader: Reader) -> None:
    reader.got = reader.consumer.poll(0.3, max_records=4)


def iterate(reader: Reader) -> None:
    for _ in range(3):
        record = next(reader.consumer)
        reader.take([record])  # which is code of the application


def columns(reader: Reader) -> None:
    batch: pa.RecordBatch = reader.consumer.poll_columns(0.3, max_records=4)
    for partition, offset in zip(batch["partition"], batch["offset"], strict=True):
        assert offset.as_py() == reader.next[partition.as_py()]
        reader.next[partition.as_py()] += 1


@pytest.mark.fault("R21")
@pytest.mark.parametrize("read", [poll, iterate, columns])
@pytest.mark.parametrize("group", [False, True])
def test_reading(world: ConsumerWorld, read: Callable[[Reader], None], group: bool) -> None:
    options: dict[str, object] = {"max_partition_fetch_bytes": 400}
    consumer = world.subscribed(**options) if group else world.assigned(0, 1, **options)
    reader = Reader(world, consumer)

    def attempt(interruption: Interruption) -> bool:
        reader.fill()
        struck = interruption.during(lambda: read(reader))
        reader.take_what_came()
        assert reader.positions() == reader.next, interruption.place
        assert lock_is_free(consumer), interruption.place
        reader.read_all(interruption.place)
        return struck

    assert at_every_place(attempt) >= 4


@pytest.mark.fault("R21")
def test_committing(world: ConsumerWorld) -> None:
    consumer = world.subscribed(enable_auto_commit=False)
    reader = Reader(world, consumer)
    committed = world.broker.group.committed
    events: list[KafkaError | None] = []

    def commit() -> None:
        consumer.commit_async(None, lambda _, error: events.append(error))
        consumer.commit()

    def attempt(interruption: Interruption) -> bool:
        reader.fill()
        reader.read_all("the beginning")
        events.clear()
        struck = interruption.during(commit)
        assert lock_is_free(consumer), interruption.place
        assert reader.positions() == reader.next, interruption.place
        consumer.commit(timeout=5)
        assert {key: position[0] for key, position in committed.items()} == {
            ORDERS_0: reader.next[0],
            ORDERS_1: reader.next[1],
        }
        group = consumer._core.group
        assert group is not None
        assert not group.commits.has_pending(), interruption.place
        assert len(events) <= 1
        return struck

    assert at_every_place(attempt) >= 4


@pytest.mark.fault("R11", "R21")
def test_rebalancing(world: ConsumerWorld) -> None:
    """Callbacks come in pairs, and after the interruption the member is a member again."""
    events: list[str] = []
    consumer = world.consumer(group_id="g", heartbeat_interval_ms=50)
    consumer.subscribe(
        "orders",
        on_assigned=lambda _: events.append("assigned"),
        on_revoked=lambda _: events.append("revoked"),
        on_lost=lambda _: events.append("lost"),
    )
    reader = Reader(world, consumer)
    world.join(consumer)

    def rebalance() -> None:
        generation = world.broker.group.generation
        while world.broker.group.generation == generation or not consumer.assignment():
            reader.got = consumer.poll(0.2, max_records=2)
            for record in reader.got:
                reader.take([record])
            reader.got = ()

    def attempt(interruption: Interruption) -> bool:
        reader.fill()
        events.clear()
        world.broker.group.rebalancing = True
        struck = interruption.during(rebalance)
        reader.take_what_came()  # where the application's own loop was struck before it began
        assert lock_is_free(consumer), interruption.place
        rebalance_ends(interruption.place)
        reader.read_all(interruption.place)
        assert events[0] in {"revoked", "lost"}, (events, interruption.place)
        return struck

    def rebalance_ends(place: str) -> None:
        deadline_ms = world.clock.now_ms + 5_000
        while world.broker.group.rebalancing or not events or events[-1] != "assigned":
            assert world.clock.now_ms < deadline_ms, f"no member any more after {place}"
            reader.take(list(consumer.poll(0.1)))

    assert at_every_place(attempt) >= 4


@pytest.mark.fault("R21")
@pytest.mark.parametrize("what", ["poll", "close"])
def test_closing(what: str) -> None:
    """Close ends in time and leaves nothing open, after Ctrl-C and during it."""

    def attempt(interruption: Interruption) -> bool:
        world = ConsumerWorld()
        consumer = world.subscribed()
        reader = Reader(world, consumer)
        reader.fill()
        reader.read_all("the beginning")
        reader.fill()
        call = consumer.close if what == "close" else lambda: poll(reader)
        struck = interruption.during(call)
        reader.take_what_came()
        before_ms = world.clock.now_ms
        consumer.close(timeout=5)
        assert world.clock.now_ms - before_ms <= _CLOSE_MS, interruption.place
        with pytest.raises(ClosedError):
            consumer.poll(0)
        if what == "poll":
            assert world.broker.group.left == ["member-1"], interruption.place
            assert world.broker.group.committed[ORDERS_0][0] == reader.next[0]
            assert world.broker.group.committed[ORDERS_1][0] == reader.next[1]
        world.sleep(5)
        assert world.net.open_sockets == 0, interruption.place
        return struck

    assert at_every_place(attempt) >= 4


# --- calls that do not wait, and code of the application


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


class InCall:
    """Sends SIGINT at the first call of a function that the consumer makes in a call."""

    def __init__(self, function: str) -> None:
        self._function = function
        self.sent = 0

    def during(self, call: Callable[[], object]) -> None:
        before = sys.getprofile()
        sys.setprofile(self._profile)
        try:
            call()
        finally:
            sys.setprofile(before)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_qualname == self._function and not self.sent:
            self.sent = 1
            interrupt()


@pytest.mark.fault("R21")
@pytest.mark.parametrize(
    ("function", "call", "done"),
    [
        (
            "ConsumerCore._set_paused",
            lambda consumer: consumer.pause(ORDERS_0),
            lambda consumer: consumer.paused() == {ORDERS_0},
        ),
        (
            "ConsumerCore._seek",
            lambda consumer: consumer.seek(ORDERS_0, 2),
            lambda consumer: consumer.position(ORDERS_0) == 2,
        ),
        (
            "ConsumerCore._assign",
            lambda consumer: consumer.assign([ORDERS_1]),
            lambda consumer: consumer.assignment() == {ORDERS_1},
        ),
        (
            "ConsumerCore._close_in_call",
            lambda consumer: consumer.close(timeout=0),
            lambda consumer: consumer._core.closed,
        ),
    ],
)
def test_call_that_does_not_wait_completes(
    world: ConsumerWorld,
    function: str,
    call: Callable[[Consumer], object],
    done: Callable[[Consumer], bool],
) -> None:
    consumer = world.assigned()
    in_call = InCall(function)
    with pytest.raises(KeyboardInterrupt):
        in_call.during(lambda: call(consumer))
    assert in_call.sent
    assert done(consumer)


@pytest.mark.fault("R21")
def test_records_of_an_interrupted_poll_are_returned_by_the_next(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    world.fill(3)
    in_call = InCall("ConsumerCore._take_records")
    with pytest.raises(KeyboardInterrupt):
        in_call.during(lambda: world.read(consumer, 3))
    assert in_call.sent
    assert [record.offset for record in world.read(consumer, 3)] == [0, 1, 2]


def test_interrupted_constructor_returns_no_consumer(world: ConsumerWorld) -> None:
    in_call = InCall("ConsumerCore._start")
    with pytest.raises(KeyboardInterrupt):
        in_call.during(world.consumer)
    assert in_call.sent
    assert not world.consumers


class Application:
    """Code of the application, which sends SIGINT once when it runs at the chosen place."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.events: list[str] = []
        self.armed = self.was_interrupted = False

    def run(self, place: str) -> None:
        if self.armed and place == self.place:
            self.armed = False
            try:
                interrupt()
            except KeyboardInterrupt:
                self.was_interrupted = True
                raise
        self.events.append(place)

    def deserialize(self, topic: str, headers: object, data: bytes) -> bytes:
        self.run("deserializer")
        return data


class Interceptor(ConsumerInterceptor):
    def __init__(self, application: Application) -> None:
        self._application = application

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        self._application.run("on_consume")
        return records

    def on_commit(self, offsets: object) -> None:
        self._application.run("on_commit")

    def close(self) -> None:
        self._application.run("close")


class Assignor(RangeAssignor):
    def __init__(self, application: Application) -> None:
        self._application = application

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        self._application.run("subscription_user_data")
        return None

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        self._application.run("assign")
        return super().assign(partition_counts, subscriptions)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._application.run("on_assignment")


_PLACES = (
    "deserializer",
    "on_consume",
    "on_commit",
    "callback",
    "subscription_user_data",
    "assign",
    "on_assignment",
    "assigned",
    "revoked",
    "close",
)


@pytest.mark.fault("R21")
@pytest.mark.parametrize("place", _PLACES)
def test_signal_takes_effect_in_code_of_the_application(world: ConsumerWorld, place: str) -> None:
    application = Application(place)
    consumer = world.consumer(
        group_id="g",
        heartbeat_interval_ms=50,
        value_deserializer=application.deserialize,
        interceptor_classes=[Interceptor(application)],
        partition_assignment_strategy=[Assignor(application)],
    )
    consumer.subscribe(
        "orders",
        on_assigned=lambda _: application.run("assigned"),
        on_revoked=lambda _: application.run("revoked"),
        on_lost=lambda _: application.run("lost"),
    )
    reader = Reader(world, consumer)
    world.join(consumer)
    reader.fill()
    application.armed = True

    def work() -> None:
        world.broker.group.rebalancing = True
        while world.broker.group.rebalancing or not consumer.assignment():
            reader.take(list(consumer.poll(0.1)))
        consumer.commit_async(None, lambda *_: application.run("callback"))
        reader.read_all(place)
        consumer.commit()
        consumer.close()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert application.was_interrupted
    if not consumer._core.closed:
        assert lock_is_free(consumer)
        work()
    assert reader.next == {0: 5, 1: 4}
    callbacks = [each for each in application.events if each in {"assigned", "revoked", "lost"}]
    assert callbacks[0::2] == ["assigned"] * len(callbacks[0::2])
    assert "assigned" not in callbacks[1::2]
    assert len(callbacks) % 2 == 0


@pytest.mark.fault("R21")
def test_signal_takes_effect_in_deserializer_of_consumer_without_group(
    world: ConsumerWorld,
) -> None:
    application = Application("deserializer")
    consumer = world.assigned(value_deserializer=application.deserialize)
    world.fill(2, 3)
    application.armed = True
    with pytest.raises(KeyboardInterrupt):
        world.read(consumer, 5)
    assert application.was_interrupted
    assert [record.offset for record in world.read(consumer, 5)] == [0, 1, 2, 3, 4]
