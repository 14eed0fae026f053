"""Produce with acks=all that waits for the high watermark."""

from collections.abc import Callable

from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.broker.replication.fetch_params import AppendResult
from kclient.broker.replication.partition import Partition
from kclient.common.broker_errors import RequestTimedOutError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition
from kclient.common.types import TopicPartition

AppendResults = dict[TopicPartition, AppendResult]


class DelayedProduce(DelayedOperation):
    """Appends to several partitions, complete when each is committed (Kafka: DelayedProduce)."""

    def __init__(
        self,
        lock: Condition,
        deadline_ms: float,
        results: AppendResults,
        lookup: Callable[[TopicPartition], Partition],
        on_done: Callable[[AppendResults], None],
    ) -> None:
        super().__init__(lock, deadline_ms)
        self._results = results
        self._lookup = lookup
        self._on_done = on_done

    def try_complete(self) -> bool:
        """Complete if every append is committed or failed."""
        for topic_partition, result in self._results.items():
            if result.error is None and self._is_pending(topic_partition, result.end_offset):
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

    def _is_pending(self, topic_partition: TopicPartition, end_offset: int) -> bool:
        try:
            return not self._lookup(topic_partition).is_committed(end_offset)
        except KafkaError:
            return False

    def _final(self, topic_partition: TopicPartition, result: AppendResult) -> AppendResult:
        error: KafkaError
        try:
            if self._lookup(topic_partition).is_committed(result.end_offset):
                return result
        except KafkaError as failure:
            error = failure
        else:
            error = RequestTimedOutError(f"{topic_partition}: not replicated in time")
        return AppendResult(error=error, log_start_offset=result.log_start_offset)
