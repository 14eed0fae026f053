"""Records of one poll: access by partition and as a sequence."""

from typing import Any

import pytest

from kclient.common.errors import InvalidTypeError
from kclient.consumer import ConsumerRecords
from kclient.record import ConsumerRecord
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld


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
