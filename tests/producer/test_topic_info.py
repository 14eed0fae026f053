import itertools
import threading
from collections.abc import Sequence

import pytest

from kclient.client.cluster import Cluster, PartitionInfo
from kclient.common.types import Node
from kclient.producer.partitioner import BuiltInPartitioner
from kclient.producer.topic_info import PartitionQueue, SlowNodes, TopicInfo
from tests.support.virtual.producer_parts import TOPIC, ProducerParts, cluster

PARTS = ProducerParts()


def test_node_lags_after_the_availability_timeout() -> None:
    slow = SlowNodes(100)
    slow.record(1, 1_000, drained=False)
    assert slow.lagging == set()
    slow.record(1, 1_101, drained=False)
    assert slow.lagging == {1}
    slow.record(1, 1_200, drained=True)
    assert slow.lagging == set()


def test_no_node_lags_without_a_limit() -> None:
    slow = SlowNodes(0)
    slow.record(1, 0, drained=False)
    slow.record(1, 1e9, drained=False)
    assert slow.lagging == set()


@pytest.mark.parametrize(("used", "following"), [(4_000, 8_192), (2_100, 8_192), (2_000, 4_096)])
def test_next_buffer_is_as_large_as_the_last_batch_needed(used: int, following: int) -> None:
    owner = PARTS.queue()
    batch = PARTS.batch(bytes(used - 80), size=8_192)
    owner.open(batch)
    owner.take(batch, 0.0)
    assert owner.buffer_size == following


def cluster_in_racks(*racks: str | None) -> Cluster:
    """Return a cluster whose partition N is led by broker N, in the rack of that position."""
    nodes = [Node(index, "host", 9092, rack) for index, rack in enumerate(racks)]
    partitions = [PartitionInfo(TOPIC, node.id, node) for node in nodes]
    return Cluster(nodes, partitions)


def drawn_partitions(info: TopicInfo, partitioner: BuiltInPartitioner) -> set[int]:
    """Return the partitions of all draws, over the range of random numbers."""
    found = set()
    for _ in range(40):
        info.sticky_queue = None
        partitioner.current = -1
        found.add(info.choose_sticky_queue().topic_partition.partition)
    return found


@pytest.mark.parametrize(
    ("rack", "drawn"),
    [("b", {1, 3}), (None, {0, 1, 2, 3}), ("elsewhere", {0, 1, 2, 3})],
)
def test_partitions_with_a_leader_in_the_rack_are_drawn(rack: str | None, drawn: set[int]) -> None:
    numbers = itertools.cycle(step / 10 for step in range(10))
    partitioner = BuiltInPartitioner(1_000, lambda: next(numbers))
    info = TopicInfo(TOPIC, partitioner, threading.RLock, SlowNodes(0), rack)
    info.refresh(cluster_in_racks("a", "b", None, "b"))
    assert drawn_partitions(info, partitioner) == drawn


def test_partitions_of_other_racks_are_drawn_if_those_of_the_rack_are_slow() -> None:
    slow_nodes = SlowNodes(100)
    partitioner = CountingPartitioner(1_000, lambda: 0.0)
    info = TopicInfo(TOPIC, partitioner, threading.RLock, slow_nodes, "a")
    info.refresh(cluster_in_racks("a", "b", "b"))
    for queue in info.queues:
        queue.leader_id = queue.topic_partition.partition
    slow_nodes.lagging = frozenset({0})
    batch = PARTS.batch(bytes(1_000), size=2_000)
    before = info.choose_sticky_queue()
    info.sticky_batch_opened(batch)
    info.switch_partition(before, 2_000, 0.0)
    assert partitioner.usable == [1, 2]


class CountingPartitioner(BuiltInPartitioner):
    """Counts the queues inspected, and has the partitions that could be drawn last."""

    inspected = 0
    usable: Sequence[int] = ()

    def update_load(
        self, queue_sizes: Sequence[int], partitions: Sequence[int], total: int
    ) -> None:
        self.inspected += len(queue_sizes)
        self.usable = partitions
        super().update_load(queue_sizes, partitions, total)


class Drawing:
    """A topic whose sticky partition is drawn for each batch."""

    def __init__(self, partitions: int) -> None:
        self.partitioner = CountingPartitioner(1_000, lambda: 0.0)
        self.slow_nodes = SlowNodes(100)
        self.info = TopicInfo(TOPIC, self.partitioner, threading.RLock, self.slow_nodes)
        self.info.refresh(cluster(partitions))

    @property
    def inspected(self) -> int:
        return self.partitioner.inspected

    def draw(self, now_ms: float, times: int = 1) -> PartitionQueue:
        drawn = self.info.choose_sticky_queue()
        for _ in range(times):
            batch = PARTS.batch(bytes(1_000), size=2_000)
            self.info.sticky_batch_opened(batch)
            drawn = self.info.switch_partition(drawn, 1_000, now_ms)
        return drawn


def test_few_records_change_the_sticky_partition_after_a_while() -> None:
    draws = iter([0.0, 0.6, 0.1, 0.9])
    info = TopicInfo(
        TOPIC, BuiltInPartitioner(1_000_000, lambda: next(draws)), threading.RLock, None
    )
    info.refresh(cluster(2))
    queue = info.choose_sticky_queue()
    drawn = []
    for now_ms in (0.0, 50.0, 99.0, 100.0, 199.0, 200.0):
        info.sticky_batch_opened(PARTS.batch(bytes(10), size=200))
        queue = info.switch_partition(queue, 1_000_000, now_ms)
        drawn.append(queue.topic_partition.partition)
    assert drawn == [1, 1, 1, 0, 0, 1]


def test_partitions_of_a_lagging_leader_are_not_drawn() -> None:
    drawing = Drawing(4)
    for partition in drawing.info.queues:
        partition.leader_id = partition.topic_partition.partition % 2
    for now_ms in (0.0, 101.0):
        drawing.slow_nodes.record(1, now_ms, drained=False)
    drawing.draw(102.0)
    assert drawing.partitioner.usable == [0, 2]


def test_each_draw_inspects_few_partitions() -> None:
    drawing = Drawing(64)
    drawing.draw(1.0, times=10)
    assert drawing.inspected == 10 * 64


def test_draws_inspect_a_limited_number_of_many_partitions() -> None:
    drawing = Drawing(6_400)
    drawing.draw(1.0)
    assert drawing.inspected == 6_400
    drawing.draw(2.0, times=99)
    assert drawing.inspected == 6_400
    drawing.draw(2.0)
    assert drawing.inspected == 2 * 6_400


def test_queues_of_many_partitions_are_inspected_again_after_a_while() -> None:
    drawing = Drawing(1_000)
    drawing.draw(1.0)
    drawing.draw(100.9)
    assert drawing.inspected == 1_000
    drawing.draw(101.0)
    assert drawing.inspected == 2_000


def test_changed_cluster_is_inspected_at_once() -> None:
    drawing = Drawing(1_000)
    drawing.draw(1.0)
    drawing.info.refresh(cluster(1_000, leaderless=(0,)))
    assert drawing.draw(2.0).topic_partition.partition == 1
    assert drawing.inspected == 1_999
