import threading

import pytest

from kclient.common.types import TopicPartition
from kclient.producer.topic_info import PartitionQueue, SlowNodes
from tests.support.virtual.producer_parts import ProducerParts

PARTS = ProducerParts()


def queue(leader: int) -> PartitionQueue:
    made = PartitionQueue(TopicPartition("t", 0), threading.RLock())
    made.leader_id = leader
    return made


def test_node_lags_after_the_availability_timeout() -> None:
    slow = SlowNodes(100)
    slow.record(1, 1_000, drained=False)
    assert not slow.lags(queue(1))
    slow.record(1, 1_101, drained=False)
    assert slow.lags(queue(1))
    assert not slow.lags(queue(2))
    slow.record(1, 1_200, drained=True)
    assert not slow.lags(queue(1))


def test_no_node_lags_without_a_limit() -> None:
    slow = SlowNodes(0)
    slow.record(1, 0, drained=False)
    slow.record(1, 1e9, drained=False)
    assert not slow.lags(queue(1))


@pytest.mark.parametrize(("used", "following"), [(4_000, 8_192), (2_100, 8_192), (2_000, 4_096)])
def test_next_buffer_is_as_large_as_the_last_batch_needed(used: int, following: int) -> None:
    owner = PARTS.queue()
    batch = PARTS.batch(bytes(used - 80), size=8_192)
    owner.open(batch)
    owner.take(batch, 0.0)
    assert owner.buffer_size == following
