"""Records of one poll: access by partition and as a sequence; those that were not received."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.errors import InvalidTypeError
from kclient.common.types import OffsetAndMetadata
from kclient.consumer import ConsumerInterceptor, ConsumerRecords
from kclient.record import ConsumerRecord
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def fetched(world: ConsumerWorld) -> ConsumerRecords[bytes, bytes]:
    world.fill(3)
    world.fill(2, number=1)
    consumer = world.assigned(0, 1)
    by_partition: dict[object, list[ConsumerRecord]] = {}
    for record in world.read(consumer, 5):
        by_partition.setdefault(record.topic_partition, []).append(record)
    return ConsumerRecords({each: by_partition[each] for each in (ORDERS_1, ORDERS_0)})


def test_records_are_grouped_by_partition(world: ConsumerWorld) -> None:
    records = fetched(world)
    assert records.partitions() == [ORDERS_1, ORDERS_0]
    assert [record.offset for record in records.records(ORDERS_0)] == [0, 1, 2]
    assert [record.offset for record in records.records(ORDERS_1)] == [0, 1]


def test_iteration_yields_the_records_of_each_partition_in_turn(world: ConsumerWorld) -> None:
    records = fetched(world)
    assert [(each.partition, each.offset) for each in records] == [
        (1, 0),
        (1, 1),
        (0, 0),
        (0, 1),
        (0, 2),
    ]
    assert len(records) == len(list(records)) == 5
    assert records


def test_partition_without_records_has_an_empty_list(world: ConsumerWorld) -> None:
    records = ConsumerRecords({ORDERS_0: []})
    assert (records.records(ORDERS_0), records.records(ORDERS_1)) == ([], [])
    assert not records
    assert len(records) == 0


def test_repr_counts_the_records_and_shows_no_content(world: ConsumerWorld) -> None:
    assert repr(fetched(world)) == "<ConsumerRecords orders-1: 2, orders-0: 3>"
    assert repr(ConsumerRecords({})) == "<ConsumerRecords none>"


def test_records_are_indexed_as_iterated(world: ConsumerWorld) -> None:
    records = fetched(world)
    whole = list(records)
    assert [records[index] for index in range(5)] == whole
    assert [records[-index] for index in range(1, 6)] == whole[::-1]
    assert records[1:4] == whole[1:4]
    for index in (5, -6):
        with pytest.raises(IndexError, match=f"got {index}, expected one of 5 records"):
            records[index]
    wrong: Any = ORDERS_0
    with pytest.raises(InvalidTypeError, match=r"records\(partition\)"):
        records[wrong]


def test_records_become_rows_of_a_table(world: ConsumerWorld) -> None:
    rows = [record._asdict() for record in fetched(world)]
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (1, 0), (1, 1), (0, 0), (0, 1), (0, 2),
    ]  # fmt: skip
    assert list(rows[0])[:5] == ["topic", "partition", "offset", "timestamp_ms", "timestamp_type"]


# --- records that were not received


@pytest.mark.parametrize(
    "use",
    [
        list,
        len,
        bool,
        lambda records: records.partitions(),
        lambda records: records.records(ORDERS_0),
        lambda records: records[0],
        lambda records: records[1:],
        lambda records: records == ConsumerRecords({}),
        pickle.dumps,
        copy.copy,
    ],
)
def test_used_records_count_as_received(
    world: ConsumerWorld, use: Callable[[ConsumerRecords[bytes, bytes]], object]
) -> None:
    world.fill(3)
    consumer = world.assigned(group_id="g")
    consumer.position(ORDERS_0)
    use(consumer.poll(1.0))
    assert consumer.position(ORDERS_0) == 3


def test_records_released_without_use_are_returned_again(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    repr(consumer.poll(1.0))
    consumer.commit()
    assert consumer.committed([ORDERS_0]) == {ORDERS_0: OffsetAndMetadata(0, "", 1)}
    assert consumer.position(ORDERS_0) == 0
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]
    assert consumer.metrics()["records-consumed-total"] == 3


def test_records_before_those_that_were_released_stay_received(world: ConsumerWorld) -> None:
    world.fill(2, 2)
    consumer = world.assigned()
    assert offsets(list(consumer.poll(1.0, max_records=2))) == [0, 1]
    consumer.poll(1.0, max_records=2)
    assert offsets(world.read(consumer, 2)) == [2, 3]


def test_held_records_count_as_received(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned(group_id="g")
    records = consumer.poll(1.0)
    consumer.commit()
    assert consumer.committed([ORDERS_0])[ORDERS_0] == OffsetAndMetadata(3, "", 1)
    del records  # committed: they stay received
    assert consumer.position(ORDERS_0) == 3


def test_commit_at_close_covers_no_released_records(world: ConsumerWorld) -> None:
    world.fill(2, 2)
    consumer = world.assigned(group_id="g")
    assert len(consumer.poll(1.0, max_records=2)) == 2
    consumer.poll(1.0, max_records=2)
    consumer.close()
    assert world.broker.group.committed[ORDERS_0][0] == 2


def test_automatic_commit_covers_no_released_records(world: ConsumerWorld) -> None:
    world.fill(2)
    consumer = world.assigned(group_id="g", auto_commit_interval_ms=100)
    consumer.position(ORDERS_0)
    for _ in range(10):
        consumer.poll(0.2)
    assert {offset for offset, *_ in world.broker.group.committed.values()} <= {0}
    assert offsets(world.read(consumer, 2)) == [0, 1]


def test_seek_overrides_the_position_of_released_records(world: ConsumerWorld) -> None:
    world.fill(5)
    consumer = world.assigned()
    consumer.poll(1.0)
    consumer.seek(ORDERS_0, 4)
    assert offsets(world.read(consumer, 1)) == [4]


def test_released_records_of_a_revoked_partition_go_to_its_new_owner(
    world: ConsumerWorld,
) -> None:
    world.fill(3)
    consumer = world.subscribed(enable_auto_commit=False)
    consumer.poll(1.0)
    consumer.unsubscribe()
    consumer.subscribe("orders")
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]


def test_paused_partition_returns_released_records_once_it_is_resumed(
    world: ConsumerWorld,
) -> None:
    world.fill(3)
    consumer = world.assigned()
    consumer.poll(1.0)
    consumer.pause(ORDERS_0)
    assert not consumer.poll(0.5)
    consumer.resume(ORDERS_0)
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]


def test_interceptor_does_not_receive_for_the_application(world: ConsumerWorld) -> None:
    class Counting(ConsumerInterceptor):
        def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
            assert list(records)
            return records

    world.fill(3)
    consumer = world.assigned(interceptor_classes=[Counting()])
    consumer.poll(1.0)
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]
