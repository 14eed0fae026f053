import random
from collections import Counter

import pytest

from kclient.producer.partitioner import (
    BuiltInPartitioner,
    murmur2_partition,
    murmur3_partition,
)


# From the Java client: Utils.toPositive(Utils.murmur2(key)) % partitions.
@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_have_the_partitions_of_the_java_client(key: bytes, hashed: int) -> None:
    assert murmur2_partition("t", key, 17) == (hashed & 0x7FFFFFFF) % 17


def test_murmur3_matches_the_published_hash() -> None:
    assert murmur3_partition("t", b"hello", 1 << 32) == 613153351
    assert murmur3_partition("t", None, 3) == -1
    assert murmur2_partition("t", None, 3) == -1


NOW_MS = 1_000.0


def partitioner(batch_size: int = 100) -> BuiltInPartitioner:
    return BuiltInPartitioner(batch_size, random.Random(4).random)


def test_partitioner_sticks_until_a_batch_was_produced() -> None:
    sticky = partitioner()
    assert sticky.count(100, NOW_MS)
    first = sticky.choose([0, 1, 2], 3)
    assert sticky.choose([0, 1, 2], 3) == first
    assert not sticky.count(40, NOW_MS)
    assert not sticky.count(59, NOW_MS)
    assert sticky.choose([0, 1, 2], 3) == first
    assert sticky.count(1, NOW_MS)
    assert not sticky.count(99, NOW_MS)
    assert {sticky.draw([0, 1, 2], 3) for _ in range(50)} == {0, 1, 2}


def test_few_records_stick_for_a_limited_time() -> None:
    sticky = partitioner(batch_size=1_000_000)
    drawn = Counter[int]()
    for batch in range(3_000):
        if sticky.count(10, 50.0 * batch):
            sticky.draw([0, 1, 2], 3)
        drawn[sticky.choose([0, 1, 2], 3)] += 1
    assert set(drawn) == {0, 1, 2}
    assert min(drawn.values()) > 800


def test_partition_without_a_record_is_kept() -> None:
    sticky = partitioner()
    assert sticky.count(100, NOW_MS)
    assert not any(sticky.count(0, NOW_MS + 1_000.0 * i) for i in range(50))


def test_partitions_without_a_leader_are_avoided() -> None:
    sticky = partitioner()
    chosen = {sticky.choose([1], 3)}
    for _ in range(20):
        chosen.add(sticky.draw([1], 3))
    assert chosen == {1}
    for _ in range(50):
        chosen.add(sticky.draw([], 3))
    assert chosen == {0, 1, 2}


def test_long_queues_are_drawn_less_often() -> None:
    sticky = partitioner()
    sticky.update_load([0, 3, 1], [0, 1, 2], 3)
    drawn = Counter[int]()
    for _ in range(8_000):
        drawn[sticky.draw([0, 1, 2], 3)] += 1
    # weights 4 : 1 : 3, as longest + 1 - length
    assert drawn[0] == pytest.approx(4_000, rel=0.1)
    assert drawn[1] == pytest.approx(1_000, rel=0.2)
    assert drawn[2] == pytest.approx(3_000, rel=0.1)


def test_equal_queues_are_drawn_equally() -> None:
    sticky = partitioner()
    sticky.update_load([2, 2], [0, 1], 2)
    drawn = Counter[int]()
    for _ in range(4_000):
        drawn[sticky.draw([0, 1], 2)] += 1
    assert drawn[0] == pytest.approx(2_000, rel=0.1)


def test_topic_with_fewer_partitions_is_drawn_again() -> None:
    sticky = partitioner()
    sticky.update_load([0, 9], [3, 4], 5)
    sticky.choose([3, 4], 5)
    assert sticky.choose([0, 1], 2) in {0, 1}
