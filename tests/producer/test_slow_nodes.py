import threading

from kclient.common.types import TopicPartition
from kclient.producer.partition_queue import PartitionQueue
from kclient.producer.slow_nodes import SlowNodes


def queue(leader: int) -> PartitionQueue:
    made = PartitionQueue(TopicPartition("t", 0), threading.RLock())
    made.leader_id = leader
    return made


def test_a_node_lags_when_it_has_not_taken_anything_for_too_long() -> None:
    slow = SlowNodes(100)
    slow.note(1, 1_000, drained=False)
    assert not slow.lags(queue(1))
    slow.note(1, 1_101, drained=False)
    assert slow.lags(queue(1))
    assert not slow.lags(queue(2))
    slow.note(1, 1_200, drained=True)
    assert not slow.lags(queue(1))


def test_without_a_limit_nobody_lags() -> None:
    slow = SlowNodes(0)
    slow.note(1, 0, drained=False)
    slow.note(1, 1e9, drained=False)
    assert not slow.lags(queue(1))
