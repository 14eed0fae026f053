"""Interceptors: what they see, and what happens if they fail."""

from typing import Any

import pytest

from kclient.consumer import ConsumerInterceptor, ConsumerRecords
from kclient.record import ConsumerRecord
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets


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
