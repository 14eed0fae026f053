"""Iteration, columns and interceptors."""

import sys
from typing import Any

import pyarrow as pa
import pytest

from kclient.common.errors import ConfigError, WakeupError
from kclient.consumer import ConsumerInterceptor, ConsumerRecords
from kclient.record import ConsumerRecord
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
    with pytest.raises(ConfigError, match=r"kclient\[arrow\]"):
        consumer.poll_columns(1.0)
    assert offsets(world.read(consumer, 1)) == [0]


class CountingInterceptor(ConsumerInterceptor):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        self.seen += offsets(list(records))
        changed = [
            ConsumerRecord(record.topic, record.partition, record.offset, value=record.value + b"!")
            for record in records.records(ORDERS_0)
        ]
        return ConsumerRecords({ORDERS_0: changed})


def test_slow_iteration_decodes_and_intercepts_once(
    world: ConsumerWorld,
) -> None:
    world.fill(10, 10)
    interceptor, deserialized = CountingInterceptor(), list[bytes]()

    def deserialize(_topic: str, _headers: object, data: bytes) -> bytes:
        deserialized.append(data)
        return data

    consumer = world.assigned(
        interceptor_classes=[interceptor], value_deserializer=deserialize, max_poll_records=15
    )
    values: list[bytes] = []
    for record in consumer:
        values.append(record.value)
        world.sleep(60)
        if len(values) == 20:
            break
    assert values == [b"%d!" % number for number in range(20)]
    assert interceptor.seen == list(range(20))
    assert deserialized == [b"%d" % number for number in range(20)]


def test_records_put_back_are_not_intercepted_again(
    world: ConsumerWorld,
) -> None:
    world.fill(*[5] * 4)
    interceptor = CountingInterceptor()
    consumer = world.assigned(interceptor_classes=[interceptor], max_poll_records=12)
    assert next(consumer).value == b"0!"
    assert consumer.poll_columns(1.0, max_records=6).column("offset").to_pylist() == [*range(1, 7)]
    assert consumer.position(ORDERS_0) == 7
    read = [next(consumer) for _ in range(8)]
    assert offsets(read) == list(range(7, 15))
    assert [record.value for record in read] == [b"%d!" % number for number in range(7, 15)]
    assert len(set(interceptor.seen)) == len(interceptor.seen)
    assert consumer.poll_columns(1.0, max_records=9).column("offset").to_pylist() == [
        *range(15, 20)
    ]


def test_returned_record_is_counted_once(world: ConsumerWorld) -> None:
    world.fill(20)
    consumer = world.assigned()
    for record in consumer:
        world.sleep(60)
        consumer.position(ORDERS_0)
        assert consumer.metrics()["records-consumed-total"] == record.offset + 1
        if record.offset == 9:
            break
    consumer.poll_columns(1.0, max_records=4)
    assert len(consumer.poll(1.0)) == 6
    assert consumer.metrics()["records-consumed-total"] == 20


def test_position_put_back_has_the_previous_epoch(world: ConsumerWorld) -> None:
    world.broker.epoch = 3
    for epoch in (1, 2, 3):
        first = world.log().end_offset
        world.log().append(*(b"%d" % number for number in range(first, first + 4)), epoch=epoch)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    for record in consumer:
        consumer.commit()
        committed = world.broker.group.committed[ORDERS_0]
        assert committed[0] == record.offset + 1
        assert committed[2] == record.leader_epoch == record.offset // 4 + 1
        if record.offset == 10:
            break


class Breaking(ConsumerInterceptor):
    def on_consume(self, records: ConsumerRecords) -> Any:
        return None


class Raising(ConsumerInterceptor):
    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        raise RuntimeError("goes no further")


def test_failing_interceptor_is_ignored(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.fill(3)
    counting = CountingInterceptor()
    consumer = world.assigned(interceptor_classes=[Breaking, counting, Raising])
    assert [record.value for record in world.read(consumer, 3)] == [b"0!", b"1!", b"2!"]
    assert counting.seen == [0, 1, 2]
    assert (
        "returned NoneType, expected a ConsumerRecords; return the argument to leave it"
        in caplog.text
    )
    assert "Raising.on_consume" in caplog.text
    assert "goes no further" in caplog.text


class Interceptor:
    def __init__(self) -> None:
        self.seen: list[int] = []
        self.commits: list[object] = []
        self.closed = 0

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        self.seen += offsets(list(records))
        kept = [record for record in records.records(ORDERS_0) if record.offset % 2 == 0]
        return ConsumerRecords({ORDERS_0: kept})

    def on_commit(self, offsets: object) -> None:
        self.commits.append(offsets)

    def close(self) -> None:
        self.closed += 1
        raise RuntimeError("goes no further")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_interceptors_see_records_and_commits(world: ConsumerWorld, one_by_one: bool) -> None:
    world.fill(6)
    interceptor = Interceptor()
    consumer = world.assigned(group_id="g", interceptor_classes=[interceptor])
    if one_by_one:
        assert [next(consumer).offset for _ in range(3)] == [0, 2, 4]
    else:
        assert offsets(world.read(consumer, 3)) == [0, 2, 4]
    assert interceptor.seen == list(range(6))
    consumer.commit({ORDERS_0: 5})
    assert len(interceptor.commits) == 1
    consumer.close()
    consumer.close()
    assert interceptor.closed == 1
