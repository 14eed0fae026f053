"""Buffer of fetched data (Kafka: FetchBuffer)."""

from collections import deque

from kclient.common.types import TopicPartition
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState


class FetchBuffer:
    """Completed fetches in order of arrival.

    The fetches of a partition form a chain: each starts where the previous one ends. A fetch that
    does not continue its chain, because the position has changed, is stale and is dropped.
    """

    def __init__(self) -> None:
        self._queue: deque[CompletedFetch] = deque()
        self._chains: dict[TopicPartition, list[CompletedFetch]] = {}

    def add(self, fetch: CompletedFetch) -> bool:
        """Queue a fetch; return False and drop it if it is stale."""
        expected = self.next_position(fetch.state)
        if expected is None or expected.offset != fetch.fetch_offset:
            fetch.drop()
            return False
        self._chains.setdefault(fetch.state.partition, []).append(fetch)
        self._queue.append(fetch)
        return True

    def next_position(self, state: TopicPartitionState) -> FetchPosition | None:
        """Return the position of the next fetch of a partition: the end of its buffered data.

        None if the buffered data ends with an error, so that nothing may be fetched now.
        """
        chain = self._chains.get(state.partition)
        position = state.position
        if not chain or position is None:
            return position
        head = chain[0]
        if head.state is not state or head.next_fetch_offset != position.offset:
            self.drop(state.partition)
            return position
        end = chain[-1].end
        return None if end is None else end._replace(leader=position.leader)

    def first(self) -> CompletedFetch | None:
        """Return the first fetch whose partition is not paused."""
        for fetch in self._queue:
            if not fetch.follow_pause():
                return fetch
        return None

    def remove(self, fetch: CompletedFetch) -> None:
        """Remove a fetch that is exhausted or stale."""
        fetch.drop()
        self._queue.remove(fetch)
        chain = self._chains[fetch.state.partition]
        chain.remove(fetch)
        if not chain:
            del self._chains[fetch.state.partition]

    def drop(self, partition: TopicPartition) -> None:
        """Remove all fetches of a partition."""
        for fetch in list(self._chains.get(partition, ())):
            self.remove(fetch)

    def retain(self, assigned: dict[TopicPartition, TopicPartitionState]) -> None:
        """Remove all fetches that belong to no current assignment."""
        for fetch in list(self._queue):
            if assigned.get(fetch.state.partition) is not fetch.state:
                self.remove(fetch)

    def clear(self) -> None:
        """Remove all fetches."""
        for fetch in list(self._queue):
            self.remove(fetch)

    def is_empty(self) -> bool:
        """Return whether there are no fetches."""
        return not self._queue

    def __len__(self) -> int:
        return len(self._queue)
