"""Delayed fetches and produces, with partitions that the test controls."""

import threading
from typing import cast

import pytest

from kclient.broker.replication.delayed_requests import (
    AppendResults,
    DelayedFetch,
    DelayedProduce,
)
from kclient.broker.replication.fetch_params import (
    AppendResult,
    FetchIsolation,
    FetchParams,
    FetchPartition,
    FetchPosition,
)
from kclient.broker.replication.partition import Partition
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Replica:
    """A partition as delayed operations see it."""

    def __init__(self) -> None:
        self.log = self
        self.size = 0
        self.end = 10
        self.stable_end = 10
        self.committed = 10
        self.leader_epoch = 5
        self.failure: KafkaError | None = None

    def check_leader_epoch(self, epoch: int, *, only_leader: bool) -> None:
        assert only_leader
        if 0 <= epoch < self.leader_epoch:
            raise FencedLeaderEpochError
        if self.failure is not None:
            raise self.failure

    def readable_end(self, isolation: FetchIsolation) -> int:
        return self.stable_end if isolation is FetchIsolation.TXN_COMMITTED else self.end

    def is_committed(self, end_offset: int, leader_epoch: int) -> bool:
        assert leader_epoch == self.leader_epoch
        if self.failure is not None:
            raise self.failure
        return self.committed >= end_offset

    def append(self, size: int) -> None:
        self.size += size
        self.end += 1

    def size_between(self, offset: int, end: int) -> int:
        assert (offset, end) == (10, self.end)
        return self.size


class Cluster:
    """Two partitions, and the outcome of one delayed operation."""

    def __init__(self) -> None:
        self.replicas = {T0: Replica(), T1: Replica()}
        self.fetched = 0
        self.produced: list[AppendResults] = []

    def lookup(self, topic_partition: TopicPartition) -> Partition:
        if topic_partition not in self.replicas:
            raise UnknownTopicOrPartitionError
        return cast("Partition", self.replicas[topic_partition])

    def fetch(
        self,
        min_bytes: int,
        *,
        max_bytes: int = 1_000,
        epoch: int = -1,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    ) -> DelayedFetch:
        def on_done() -> None:
            self.fetched += 1

        wanted = FetchPartition(bytes(16), 10, max_bytes, epoch)
        positions = [FetchPosition(key, wanted) for key in self.replicas]
        params = FetchParams(500, min_bytes, 1 << 20, isolation)
        return DelayedFetch(
            threading.Condition(),
            500.0,
            params,
            lambda: positions,
            self.lookup,
            on_done,
        )

    def produce(self, **results: AppendResult) -> DelayedProduce:
        named = {TopicPartition("t", int(name[1:])): each for name, each in results.items()}
        return DelayedProduce(
            threading.Condition(), 500.0, named, self.lookup, self.produced.append
        )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_fetch_completes_with_min_bytes_of_all_partitions(cluster: Cluster) -> None:
    fetch = cluster.fetch(100)
    assert not fetch.try_complete()
    cluster.replicas[T0].append(70)
    assert not fetch.try_complete()
    cluster.replicas[T1].append(29)
    assert (fetch.try_complete(), cluster.fetched) == (False, 0)
    cluster.replicas[T1].append(1)
    assert (fetch.try_complete(), cluster.fetched) == (True, 1)
    assert (fetch.try_complete(), cluster.fetched) == (False, 1)


def test_bytes_of_a_partition_count_up_to_its_limit(cluster: Cluster) -> None:
    fetch = cluster.fetch(100, max_bytes=60)
    cluster.replicas[T0].append(1_000)
    assert not fetch.try_complete()
    cluster.replicas[T1].append(40)
    assert fetch.try_complete()


def test_records_of_open_transaction_do_not_complete_a_read_committed_fetch(
    cluster: Cluster,
) -> None:
    fetch = cluster.fetch(1, isolation=FetchIsolation.TXN_COMMITTED)
    cluster.replicas[T0].append(50)
    assert not fetch.try_complete()
    cluster.replicas[T0].stable_end = 11
    assert fetch.try_complete()


@pytest.mark.parametrize("how", ["new epoch", "not leader", "deleted"])
def test_error_of_a_partition_completes_the_fetch(cluster: Cluster, how: str) -> None:
    fetch = cluster.fetch(1_000, epoch=5)
    assert not fetch.try_complete()
    if how == "new epoch":
        cluster.replicas[T1].leader_epoch = 6
    elif how == "not leader":
        cluster.replicas[T1].failure = NotLeaderOrFollowerError()
    else:
        del cluster.replicas[T1]
    assert (fetch.try_complete(), cluster.fetched) == (True, 1)


def test_expired_fetch_returns_what_there_is(cluster: Cluster) -> None:
    fetch = cluster.fetch(1_000)
    fetch.expire()
    assert (cluster.fetched, fetch.is_completed) == (1, True)


def test_produce_completes_when_every_partition_is_committed(cluster: Cluster) -> None:
    first, second = (
        AppendResult(leader_epoch=5, end_offset=11),
        AppendResult(leader_epoch=5, end_offset=12),
    )
    produce = cluster.produce(p0=first, p1=second)
    assert not produce.try_complete()
    cluster.replicas[T0].committed = 11
    assert (produce.try_complete(), cluster.produced) == (False, [])
    cluster.replicas[T1].committed = 12
    assert produce.try_complete()
    assert cluster.produced == [{T0: first, T1: second}]


def test_failed_append_is_not_waited_for(cluster: Cluster) -> None:
    failed = AppendResult(error=UnknownTopicOrPartitionError())
    cluster.replicas[T0].committed = -2
    produce = cluster.produce(p0=failed, p1=AppendResult(leader_epoch=5, end_offset=10))
    assert produce.try_complete()
    assert cluster.produced[0][T0] is failed


@pytest.mark.parametrize("deleted", [True, False])
def test_lost_partition_fails_its_append_alone(cluster: Cluster, *, deleted: bool) -> None:
    second = AppendResult(leader_epoch=5, end_offset=10)
    produce = cluster.produce(
        p0=AppendResult(leader_epoch=5, end_offset=11, log_start_offset=3), p1=second
    )
    if deleted:
        del cluster.replicas[T0]
    else:
        cluster.replicas[T0].failure = NotLeaderOrFollowerError()
    assert produce.try_complete()
    (results,) = cluster.produced
    expected = UnknownTopicOrPartitionError if deleted else NotLeaderOrFollowerError
    assert isinstance(results[T0].error, expected)
    assert (results[T0].base_offset, results[T0].log_start_offset) == (-1, 3)
    assert results[T1] is second


def test_expired_produce_reports_the_partitions_that_are_not_committed(cluster: Cluster) -> None:
    produce = cluster.produce(
        p0=AppendResult(leader_epoch=5, end_offset=10),
        p1=AppendResult(leader_epoch=5, end_offset=11),
    )
    produce.expire()
    (results,) = cluster.produced
    assert results[T0].error is None
    assert isinstance(results[T1].error, RequestTimedOutError)
    assert "t-1: not replicated in time" in str(results[T1].error)
