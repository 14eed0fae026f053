"""Produce and fetch requests that wait: for the high watermark, or for `min_bytes`."""

from collections.abc import Callable, Iterable, Mapping

from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.broker.replication.fetch_params import AppendResult, FetchParams, FetchPosition
from kclient.broker.replication.partition import Partition
from kclient.common.broker_errors import RequestTimedOutError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition
from kclient.common.types import TopicPartition

PartitionLookup = Callable[[TopicPartition], Partition]
"""Returns a partition, or raises KafkaError."""

AppendResults = dict[TopicPartition, AppendResult]

DeletionResults = dict[TopicPartition, int | KafkaError]
"""Low watermark of each partition, or the error of its deletion."""


class DelayedFetch(DelayedOperation):
    """Fetch that completes when its partitions have `min_bytes`, or one of them has an error.

    The bytes of a partition are those between the fetch offset and the end that the fetch may read.
    The cost of a try does not depend on the log, and for a fetch session only on the partitions
    that changed.
    """

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        params: FetchParams,
        waiting: Callable[[], Iterable[FetchPosition]],
        lookup: PartitionLookup,
        on_done: Callable[[], None],
    ) -> None:
        super().__init__(lock, deadline_ms)
        self._isolation = params.isolation
        self._only_leader = params.only_leader
        self._min_bytes = params.min_bytes
        self._waiting = waiting
        self._lookup = lookup
        self._on_done = on_done

    def try_complete(self) -> bool:
        """Complete if there are enough bytes, or if a partition has an error."""
        readable = 0
        try:
            for position in self._waiting():
                readable += self._readable(self._lookup(position.topic_partition), position)
        except KafkaError:
            return self.force_complete()
        return readable >= self._min_bytes and self.force_complete()

    def on_complete(self) -> None:
        """Read again and return the result."""
        self._on_done()

    def _readable(self, partition: Partition, position: FetchPosition) -> int:
        wanted = position.wanted
        partition.check_leader_epoch(wanted.current_leader_epoch, only_leader=self._only_leader)
        end = partition.readable_end(self._isolation)
        if end <= wanted.fetch_offset:
            return 0
        if self._min_bytes <= 1:
            return 1  # without a look-up of positions in the file
        return min(partition.log.size_between(wanted.fetch_offset, end), wanted.max_bytes)


class DelayedProduce(DelayedOperation):
    """Appends to several partitions, complete when each is committed (Kafka: DelayedProduce)."""

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        results: AppendResults,
        lookup: PartitionLookup,
        on_done: Callable[[AppendResults], None],
    ) -> None:
        super().__init__(lock, deadline_ms)
        self._results = results
        self._lookup = lookup
        self._on_done = on_done

    def try_complete(self) -> bool:
        """Complete if every append is committed or failed."""
        for topic_partition, result in self._results.items():
            if result.error is None and self._is_pending(topic_partition, result):
                return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Return the result of each partition; those not committed have timed out."""
        self._on_done(
            {
                topic_partition: result if result.error else self._final(topic_partition, result)
                for topic_partition, result in self._results.items()
            }
        )

    def _is_pending(self, topic_partition: TopicPartition, result: AppendResult) -> bool:
        try:
            return not self._is_committed(topic_partition, result)
        except KafkaError:
            return False

    def _is_committed(self, topic_partition: TopicPartition, result: AppendResult) -> bool:
        partition = self._lookup(topic_partition)
        return partition.is_committed(result.end_offset, result.leader_epoch)

    def _final(self, topic_partition: TopicPartition, result: AppendResult) -> AppendResult:
        error: KafkaError
        try:
            if self._is_committed(topic_partition, result):
                return result
        except KafkaError as failure:
            error = failure
        else:
            error = RequestTimedOutError(f"{topic_partition}: not replicated in time")
        return AppendResult(error=error, log_start_offset=result.log_start_offset)


class DelayedDeleteRecords(DelayedOperation):
    """Deletion of records, complete when all live replicas have done it.

    (Kafka: DelayedDeleteRecords)
    """

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        targets: Mapping[TopicPartition, int],
        lookup: PartitionLookup,
        on_done: Callable[[DeletionResults], None],
    ) -> None:
        """Create the operation.

        Args:
            lock: The lock.
            deadline_ms: Time at which it is forced to complete.
            targets: Log start offset that each partition's replicas must reach.
            lookup: Returns a partition.
            on_done: Receives the results.
        """
        super().__init__(lock, deadline_ms)
        self._targets = targets
        self._lookup = lookup
        self._on_done = on_done

    def try_complete(self) -> bool:
        """Complete if every partition has reached its target, or failed."""
        for topic_partition in self._targets:
            if isinstance(self._result(topic_partition), RequestTimedOutError):
                return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Return the result of each partition; those not deleted everywhere have timed out."""
        self._on_done({each: self._result(each) for each in self._targets})

    def _result(self, topic_partition: TopicPartition) -> int | KafkaError:
        target = self._targets[topic_partition]
        try:
            partition = self._lookup(topic_partition)
            partition.check_leader_epoch(-1)
        except KafkaError as error:
            return error
        low_watermark = partition.low_watermark()
        if low_watermark < target:
            return RequestTimedOutError(f"{topic_partition}: not deleted by all replicas in time")
        return low_watermark
