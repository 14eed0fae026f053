"""Collected records and columns: limits, parts of several fetches, and records put back."""

import pytest

from kclient.consumer.collected import Collected, CollectedColumns, CollectedRecords
from kclient.consumer.completed_fetch import CompletedFetch, NodeBacklog
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.messages.fetch import PartitionData
from tests.consumer.conftest import ORDERS_0, ORDERS_1, offsets
from tests.support.virtual.virtual_log_broker import VirtualLog

CONFIG = CONSUMER_CONFIG.parse({"bootstrap_servers": "h:1"})


def fetch(number: int, count: int, start: int = 0) -> CompletedFetch:
    log = VirtualLog(end_offset=start)
    log.append(*[b"v"] * count)
    return CompletedFetch(
        TopicPartitionState((ORDERS_0, ORDERS_1)[number], {}),
        PartitionData(records=log.read(start, 1 << 20, 0)),
        FetchPosition(start),
        NodeBacklog(1, {}),
        CONFIG,
        deserializes=False,
    )


@pytest.mark.parametrize("kind", [CollectedRecords, CollectedColumns])
def test_target_accepts_records_up_to_its_limit(
    kind: type[CollectedRecords | CollectedColumns],
) -> None:
    target = kind(5)
    assert (len(target), target.remaining, target.count) == (0, 5, 0)
    target.take_from(fetch(0, 3))
    assert (len(target), target.remaining, target.count) == (1, 2, 3)
    last = fetch(1, 4)
    target.take_from(last)
    assert (len(target), target.remaining, target.count) == (2, 0, 5)
    assert last.next_fetch_offset == 2
    target.clear()
    assert (len(target), target.remaining, target.count) == (0, 5, 0)


@pytest.mark.parametrize("kind", [CollectedRecords, CollectedColumns])
def test_single_target_is_full_after_one_fetch(
    kind: type[CollectedRecords | CollectedColumns],
) -> None:
    target = kind(5, single=True)
    empty = fetch(0, 1)
    empty.drop()
    target.take_from(empty)
    assert target.remaining == 5
    target.take_from(fetch(0, 3))
    assert (target.remaining, target.count) == (0, 3)


def test_records_of_a_partition_are_joined_in_order() -> None:
    target = CollectedRecords(10)
    target.take_from(fetch(0, 2))
    target.take_from(fetch(1, 1))
    target.take_from(fetch(0, 2, start=2))
    assert list(target.by_partition) == [ORDERS_0, ORDERS_1]
    assert offsets(target.by_partition[ORDERS_0]) == [0, 1, 2, 3]
    assert target.again == {}


def test_records_that_were_put_back_are_counted_as_seen() -> None:
    source = fetch(0, 5)
    taken = source.take(3)
    source.put_back(taken, 1)
    target = CollectedRecords(10)
    target.take_from(source)
    target.take_from(source)
    assert offsets(target.by_partition[ORDERS_0]) == [1, 2, 3, 4]
    assert target.again == {ORDERS_0: 2}


def test_columns_are_a_piece_per_fetch() -> None:
    target = CollectedColumns(10)
    target.take_from(fetch(0, 2))
    target.take_from(fetch(1, 1))
    target.take_from(fetch(0, 2, start=2))
    assert [(topic, number, columns.length) for topic, number, columns in target.pieces] == [
        ("orders", 0, 2),
        ("orders", 1, 1),
        ("orders", 0, 2),
    ]


def test_both_targets_are_accepted_by_the_collector() -> None:
    targets: list[Collected] = [CollectedRecords(1), CollectedColumns(1)]
    assert [target.remaining for target in targets] == [1, 1]
