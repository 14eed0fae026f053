"""The consumer as a context and as an iterator, and its columns."""

import gc
import sys

import pyarrow as pa
import pytest

from kclient.common.errors import (
    ClosedError,
    ConfigError,
    WakeupError,
)
from kclient.consumer import Consumer
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def test_iteration_returns_records_one_by_one(world: ConsumerWorld) -> None:
    world.fill(*[7] * 10)
    consumer = world.assigned(max_poll_records=5)
    seen = []
    for record in consumer:
        seen.append(record.offset)
        assert consumer.position(ORDERS_0) == record.offset + 1
        if len(seen) == 70:
            break
    assert seen == list(range(70))


def test_commit_in_iteration_covers_returned_records(world: ConsumerWorld) -> None:
    world.fill(20)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    for record in consumer:
        if record.offset == 6:
            consumer.commit()
            break
    assert world.broker.group.committed[ORDERS_0][0] == 7
    assert offsets(list(consumer.poll(1.0))) == list(range(7, 20))


def test_auto_commit_during_slow_iteration(world: ConsumerWorld) -> None:
    world.fill(100)
    consumer = world.assigned(group_id="g", auto_commit_interval_ms=1000)
    for record in consumer:
        committed = world.broker.group.committed.get(ORDERS_0, (0, "", 0))[0]
        assert record.offset - 12 <= committed <= record.offset or record.offset < 14
        world.sleep(200)  # a second is five records
        if record.offset == 60:
            break


@pytest.mark.fault("R23")
def test_slow_iteration_stays_in_the_group(world: ConsumerWorld) -> None:
    consumer = world.subscribed(max_poll_interval_ms=10_000)
    world.fill(50)
    for record in consumer:
        world.background(1000)
        if record.offset == 30:
            break
    assert world.broker.group.left == []


def test_seek_during_iteration_takes_effect_at_once(world: ConsumerWorld) -> None:
    world.fill(20)
    consumer = world.assigned()
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if record.offset == 3 and len(seen) == 4:
            consumer.seek(ORDERS_0, 15)
        if len(seen) == 9:
            break
    assert seen == [0, 1, 2, 3, 15, 16, 17, 18, 19]


def test_pause_during_iteration_takes_effect_at_once(world: ConsumerWorld) -> None:
    world.fill(10)
    world.fill(10, number=1)
    consumer = world.assigned(0, 1)
    first = next(consumer)
    paused = ORDERS_0 if first.partition == 0 else ORDERS_1
    consumer.pause(paused)
    assert {next(consumer).partition for _ in range(10)} == {1 - paused.partition}
    consumer.resume(paused)
    assert offsets([next(consumer) for _ in range(9)]) == list(range(1, 10))


def test_iteration_stops_when_closed(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned()
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if len(seen) == 2:
            consumer.close()
    assert seen == [0, 1]


def test_iteration_waits_for_records(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    world.clock.after(30_000, lambda: world.fill(1))
    world.clock.after(30_001, world.broker.arrived)
    assert next(consumer).offset == 0
    world.clock.after(5_000, consumer.wakeup)
    with pytest.raises(WakeupError):
        next(consumer)


def test_columns_equal_records(world: ConsumerWorld) -> None:
    world.fill(3)
    world.log().append(b"x", offsets=[7])
    batch = world.assigned().poll_columns(1.0)
    assert batch.schema.names == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "value",
        "headers",
    ]
    assert batch.column("offset").to_pylist() == [0, 1, 2, 7]
    assert batch.column("topic").to_pylist() == ["orders"] * 4
    assert batch.column("key").to_pylist() == [b"k0", b"k1", b"k2", b"k7"]
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [1000, 1001, 1002, 1007]


def test_empty_columns_have_the_schema(world: ConsumerWorld) -> None:
    world.fill(1)
    consumer = world.assigned()
    full = consumer.poll_columns(1.0)
    empty = consumer.poll_columns(0.1)
    assert empty.num_rows == 0
    assert empty.schema == full.schema


def test_columns_and_records_alternate(world: ConsumerWorld) -> None:
    world.fill(*[10] * 3)
    consumer = world.assigned()
    assert offsets(list(consumer.poll(1.0, max_records=4))) == [0, 1, 2, 3]
    assert consumer.poll_columns(1.0, max_records=3).column("offset").to_pylist() == [4, 5, 6]
    assert consumer.position(ORDERS_0) == 7
    assert next(consumer).offset == 7
    assert consumer.poll_columns(1.0, max_records=8).column("offset").to_pylist() == list(
        range(8, 16)
    )
    assert [next(consumer).offset for _ in range(6)] == list(range(16, 22))
    assert offsets(list(consumer.poll(1.0))) == list(range(22, 30))


def test_columns_of_several_partitions(world: ConsumerWorld) -> None:
    world.fill(5)
    world.fill(5, number=1)
    consumer = world.assigned(0, 1)
    first = consumer.poll_columns(1.0)
    assert first.num_rows == 5  # one response of one partition
    consumer.seek_to_beginning()
    world.poll_until(consumer, lambda: len(world.broker.fetches) > 3)
    consumer.seek_to_beginning()
    rows = 0
    while rows < 10:
        batch = consumer.poll_columns(1.0, max_records=100)
        rows += batch.num_rows
    assert rows == 10


def test_columns_without_pyarrow_raise(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill(1)
    consumer = world.assigned()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match="extra 'arrow' of kclient-kafka"):
        consumer.poll_columns(1.0)
    assert offsets(world.read(consumer, 1)) == [0]


@pytest.mark.parametrize("failing", [False, True])
def test_exception_in_block_skips_commit_at_close(world: ConsumerWorld, failing: bool) -> None:
    world.fill(10)

    def process() -> None:
        with world.assigned(group_id="g", auto_commit_interval_ms=60_000) as consumer:
            world.read(consumer, 10)
            if failing:
                raise LookupError("the application's own")

    if failing:
        with pytest.raises(LookupError):
            process()
    else:
        process()
    assert world.broker.group.committed == ({} if failing else {ORDERS_0: (10, "", 1)})


def test_calls_on_closed_consumer_raise(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.close()
    consumer.close()
    for call in (
        consumer.assignment,
        consumer.unsubscribe,
        consumer.metrics,
        lambda: consumer.poll(0.0),
        lambda: consumer.seek(ORDERS_0, 0),
    ):
        with pytest.raises(ClosedError):
            call()


def test_end_of_block_closes_consumer(world: ConsumerWorld) -> None:
    with world.assigned() as consumer:
        pass
    with pytest.raises(ClosedError):
        consumer.poll(0.0)


def test_missing_close_warns(world: ConsumerWorld) -> None:
    consumer = Consumer(runtime=world.runtime, bootstrap_servers="10.0.0.1:9092", group_id="g")
    with pytest.warns(ResourceWarning, match="group 'g'.* was never closed"):
        consumer.__del__()
    consumer.close()
    del consumer
    gc.collect()
