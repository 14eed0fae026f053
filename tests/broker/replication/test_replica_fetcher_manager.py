"""Fetchers by leader: one per partition, moved when the leader changes, stopped when idle."""

import threading
from collections.abc import Iterable
from typing import cast

from kclient.broker.replication.hosted_partitions import FollowedPartition
from kclient.broker.replication.partition import Partition
from kclient.broker.replication.replica_fetcher import ReplicaFetcher
from kclient.broker.replication.replica_fetcher_manager import (
    ReplicaFetcherManager,
    fetcher_number,
)
from kclient.common.types import TopicPartition

T = [TopicPartition("t", number) for number in range(4)]


class Named:
    """A partition as the manager sees it."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition


class Fetcher:
    def __init__(self) -> None:
        self.fetched: dict[TopicPartition, int] = {}

    def add(self, partitions: Iterable[FollowedPartition]) -> None:
        for partition, _, epoch in partitions:
            self.fetched[partition.topic_partition] = epoch

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            del self.fetched[partition]


class Bench:
    def __init__(self, num_fetchers: int = 1) -> None:
        self.made: dict[tuple[int, int], Fetcher] = {}
        self.stopped: list[object] = []
        self.manager = ReplicaFetcherManager(
            self.create, self.stopped.append, threading.Condition(), num_fetchers
        )

    def create(self, leader: int, number: int) -> ReplicaFetcher:
        self.made[leader, number] = fetcher = Fetcher()
        return cast("ReplicaFetcher", fetcher)

    def add(self, leader: int, epoch: int, *partitions: TopicPartition) -> None:
        self.manager.add(
            [
                FollowedPartition(cast("Partition", Named(each)), leader, epoch)
                for each in partitions
            ]
        )


def test_partition_moves_to_the_fetcher_of_its_leader() -> None:
    bench = Bench()
    bench.add(2, 5, T[0], T[1])
    bench.add(3, 6, T[0])
    assert bench.made[2, 0].fetched == {T[1]: 5}
    assert bench.made[3, 0].fetched == {T[0]: 6}
    bench.add(3, 7, T[0])
    assert bench.made[3, 0].fetched == {T[0]: 7}


def test_fetcher_without_partitions_is_stopped() -> None:
    bench = Bench()
    bench.add(2, 5, T[0])
    bench.add(3, 5, T[1])
    bench.manager.stop_idle()
    bench.manager.remove([T[0], T[2]])
    assert bench.stopped == []
    bench.manager.stop_idle()
    assert bench.stopped == [bench.made[2, 0]]
    bench.add(2, 6, T[0])
    bench.manager.close()
    assert bench.manager.fetchers() == []
    assert len(bench.stopped) == 3


def test_partitions_of_a_leader_are_spread_over_its_fetchers() -> None:
    bench = Bench(num_fetchers=2)
    bench.add(2, 5, *T)
    assert {key: len(fetcher.fetched) for key, fetcher in bench.made.items()} == {
        (2, 0): 2,
        (2, 1): 2,
    }
    for partition in T:
        assert partition in bench.made[2, fetcher_number(partition, 2)].fetched
