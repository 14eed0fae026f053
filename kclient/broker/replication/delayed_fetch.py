"""A fetch that waits for more data."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.broker.replication.fetch_params import FetchParams, FetchPartition
from kclient.broker.replication.partition import Partition
from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition
from kclient.common.types import TopicPartition

PartitionLookup = Callable[[TopicPartition], Partition]
"""Returns a partition, or raises KafkaError."""


class FetchWatch(NamedTuple):
    """What a waiting fetch remembers of one partition.

    Attributes:
        wanted: What was asked for.
        appended_before: The partition's count of appended bytes when it was read, or before that.
    """

    wanted: FetchPartition
    appended_before: int


class DelayedFetch(DelayedOperation):
    """Waits until its partitions have `min_bytes` together, or are not what they were.

    What has been appended since the first read is told from the partitions' byte counts, so that
    a try costs the same however long the log is (Kafka: DelayedFetch, which compares positions).
    """

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        params: FetchParams,
        watches: Mapping[TopicPartition, FetchWatch],
        found_bytes: int,
        lookup: PartitionLookup,
        answer: Callable[[], None],
    ) -> None:
        super().__init__(lock, deadline_ms)
        self._isolation = params.isolation
        self._missing_bytes = params.min_bytes - found_bytes
        self._watches = watches
        self._lookup = lookup
        self._answer = answer

    def try_complete(self) -> bool:
        """Answer if there is enough, or if some partition is in a state to be told of."""
        gained = 0
        try:
            for topic_partition, watch in self._watches.items():
                gained += self._gained(self._lookup(topic_partition), watch)
        except KafkaError:
            return self.force_complete()
        return gained >= self._missing_bytes and self.force_complete()

    def on_complete(self) -> None:
        """Read again and answer."""
        self._answer()

    def _gained(self, partition: Partition, watch: FetchWatch) -> int:
        wanted = watch.wanted
        partition.check_leader_epoch(wanted.current_leader_epoch)
        # Appended is not enough for everybody: the transaction may have to end first.
        if partition.readable_end(self._isolation) <= wanted.fetch_offset:
            return 0
        return min(partition.appended_bytes - watch.appended_before, wanted.max_bytes)
