"""Buffer of fetched data (Kafka: FetchBuffer)."""

from collections import OrderedDict

from kclient.common.types import TopicPartition
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState


class FetchBuffer:
    """Completed fetches in order of arrival.

    The fetches of a partition form a chain: each starts where the previous one ends. A fetch that
    does not continue its chain, because the position has changed, is stale and is dropped.

    Fetches of paused partitions are not in the queue: however many these are, `first` looks at one.
    """

    def __init__(self) -> None:
        # A dict, so that a fetch is removed in the same time wherever it is.
        self._queue: OrderedDict[CompletedFetch, None] = OrderedDict()
        self._chains: dict[TopicPartition, list[CompletedFetch]] = {}
        self._count = 0

    def add(self, fetch: CompletedFetch) -> bool:
        """Queue a fetch; return False and drop it if it is stale."""
        expected = self.next_position(fetch.state)
        if expected is None or expected.offset != fetch.fetch_offset:
            fetch.drop()
            return False
        self._chains.setdefault(fetch.state.partition, []).append(fetch)
        fetch.set_aside(paused=fetch.state.paused)
        if not fetch.is_aside:
            self._queue[fetch] = None
        self._count += 1
        fetch.state.mark_changed()
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
        if end is None or end.leader is position.leader:
            return end
        return FetchPosition(end.offset, end.offset_epoch, position.leader)

    def first(self) -> CompletedFetch | None:
        """Return the first fetch whose partition is not paused."""
        return next(iter(self._queue), None)

    def follow_pause(self, state: TopicPartitionState) -> None:
        """Keep the fetches of a paused partition back, or queue them first once it is resumed."""
        chain = self._chains.get(state.partition, ())
        if not chain or chain[0].is_aside is state.paused:
            return
        for fetch in reversed(chain):
            fetch.set_aside(paused=state.paused)
            if state.paused:
                del self._queue[fetch]
            else:
                self._queue[fetch] = None
                self._queue.move_to_end(fetch, last=False)

    def remove(self, fetch: CompletedFetch) -> None:
        """Remove a fetch that is exhausted or stale."""
        fetch.drop()
        if not fetch.is_aside:
            del self._queue[fetch]
        self._count -= 1
        chain = self._chains[fetch.state.partition]
        chain.remove(fetch)
        if not chain:
            del self._chains[fetch.state.partition]
        if fetch.end is None or fetch.end.offset != fetch.next_fetch_offset:
            fetch.state.mark_changed()

    def drop(self, partition: TopicPartition) -> None:
        """Remove all fetches of a partition."""
        for fetch in list(self._chains.get(partition, ())):
            self.remove(fetch)

    def retain(self, assigned: dict[TopicPartition, TopicPartitionState]) -> None:
        """Remove all fetches that belong to no current assignment."""
        for partition, chain in list(self._chains.items()):
            if assigned.get(partition) is not chain[0].state:
                self.drop(partition)

    def clear(self) -> None:
        """Remove all fetches."""
        for partition in list(self._chains):
            self.drop(partition)

    def is_empty(self) -> bool:
        """Return whether there are no fetches."""
        return not self._count

    def __len__(self) -> int:
        return self._count
