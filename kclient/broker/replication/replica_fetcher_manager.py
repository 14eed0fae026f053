"""Fetchers by leader (Kafka: ReplicaFetcherManager)."""

from collections.abc import Callable, Iterable
from zlib import crc32

from kclient.broker.replication.hosted_partitions import FollowedPartition
from kclient.broker.replication.replica_fetcher import ReplicaFetcher
from kclient.common.runtime import Condition
from kclient.common.types import TopicPartition

_Key = tuple[int, int]
"""Broker id of the leader, and number of the fetcher."""


class ReplicaFetcherManager:
    """Assigns the partitions that this broker follows to fetchers of their leaders.

    The lock guards the table of fetchers, and makes a partition have at most one fetcher. It is
    held while a fetcher is created, changed or stopped.
    """

    def __init__(
        self,
        create: Callable[[int, int], ReplicaFetcher],
        stop: Callable[[ReplicaFetcher], None],
        lock: Condition,
        num_fetchers: int = 1,
    ) -> None:
        """Create a manager without fetchers.

        Args:
            create: Returns a new fetcher, from the leader's broker id and the fetcher's number.
            stop: Ends the thread of a fetcher without partitions.
            lock: The lock.
            num_fetchers: ``num.replica.fetchers``: fetchers for each leader.
        """
        self._create = create
        self._stop = stop
        self._lock = lock
        self._num_fetchers = num_fetchers
        self._fetchers: dict[_Key, ReplicaFetcher] = {}
        self._by_partition: dict[TopicPartition, _Key] = {}

    def add(self, partitions: Iterable[FollowedPartition]) -> None:
        """Fetch partitions from their leaders, instead of earlier ones."""
        by_fetcher: dict[_Key, list[FollowedPartition]] = {}
        for followed in partitions:
            topic_partition = followed.partition.topic_partition
            number = fetcher_number(topic_partition, self._num_fetchers)
            by_fetcher.setdefault((followed.leader, number), []).append(followed)
        with self._lock:
            for key, added in by_fetcher.items():
                fetcher = self._fetchers.get(key)
                if fetcher is None:
                    fetcher = self._fetchers[key] = self._create(*key)
                for followed in added:
                    topic_partition = followed.partition.topic_partition
                    earlier = self._by_partition.get(topic_partition)
                    if earlier is not None:
                        self._fetchers[earlier].remove([topic_partition])
                    self._by_partition[topic_partition] = key
                fetcher.add(added)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching partitions; nothing of them is appended after that."""
        with self._lock:
            by_fetcher: dict[_Key, list[TopicPartition]] = {}
            for topic_partition in partitions:
                key = self._by_partition.pop(topic_partition, None)
                if key is not None:
                    by_fetcher.setdefault(key, []).append(topic_partition)
            for key, removed in by_fetcher.items():
                self._fetchers[key].remove(removed)

    def stop_idle(self) -> None:
        """Stop the fetchers without partitions."""
        with self._lock:
            used = set(self._by_partition.values())
            for key in [each for each in self._fetchers if each not in used]:
                self._stop(self._fetchers.pop(key))

    def close(self) -> None:
        """Stop all fetchers."""
        self.remove(list(self._by_partition))
        self.stop_idle()

    def fetchers(self) -> list[ReplicaFetcher]:
        """Return the fetchers."""
        with self._lock:
            return list(self._fetchers.values())


def fetcher_number(topic_partition: TopicPartition, num_fetchers: int) -> int:
    """Return the number of the fetcher of a partition, among those of its leader."""
    return (crc32(topic_partition.topic.encode()) + topic_partition.partition) % num_fetchers
