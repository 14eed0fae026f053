"""Ctrl-C wherever a call waits: no record is lost or repeated, no lock stays acquired."""

from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest

from kclient.common.errors import ClosedError, KafkaError
from kclient.consumer import Consumer
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
    free = lock.acquire_in_background(0.0)
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
