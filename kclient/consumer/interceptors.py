"""Consumer interceptors (Kafka: ConsumerInterceptors, KIP-42)."""

from collections.abc import Mapping, Sequence

from kclient.common.interceptors import notify, transformed
from kclient.common.log_context import LogContext
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.record import ConsumerRecord


class ConsumerInterceptor:
    """Base class of interceptors for ``interceptor.classes`` (Kafka: ConsumerInterceptor, KIP-42).

    A class may derive from it, or have the same methods. Exceptions of interceptors are logged and
    ignored.
    """

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        """Return the records for the application: those given, or changed ones.

        Runs inside `Consumer.poll` and the iteration, once for each record; not for
        `Consumer.poll_columns`. If it raises, the records given are returned.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Receive the offsets of a successful commit."""
        return

    def close(self) -> None:
        """Release resources; the consumer is being closed."""
        return


class ConsumerInterceptors:
    """The configured interceptors, called in order.

    Attributes:
        any: Whether there are any.
    """

    def __init__(
        self,
        interceptors: Sequence[ConsumerInterceptor],
        run_user_code: RunUserCode,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._interceptors = tuple(interceptors)
        self.any = bool(interceptors)
        self._run_user_code = run_user_code

    def on_consume(
        self,
        by_partition: Mapping[TopicPartition, list[ConsumerRecord]],
        again: Mapping[TopicPartition, int],
    ) -> ConsumerRecords:
        """Return the records after all interceptors.

        Args:
            by_partition: The records.
            again: Number of leading records of a partition that interceptors have seen.
        """
        if not again:
            return self._changed(by_partition)
        merged = {partition: by_partition[partition][:count] for partition, count in again.items()}
        new = {
            partition: records[again.get(partition, 0) :]
            for partition, records in by_partition.items()
        }
        changed = self._changed({key: records for key, records in new.items() if records})
        for partition in changed.partitions():
            merged[partition] = merged.get(partition, []) + changed.records(partition)
        return ConsumerRecords(merged)

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Call `on_commit` of each interceptor."""
        if self._interceptors:
            stages = [each.on_commit for each in self._interceptors]
            self._run_user_code(lambda: notify(self._log, stages, offsets))

    def close(self) -> None:
        """Close each interceptor."""
        self._run_user_code(lambda: notify(self._log, [each.close for each in self._interceptors]))

    def _changed(
        self, by_partition: Mapping[TopicPartition, list[ConsumerRecord]]
    ) -> ConsumerRecords:
        records = ConsumerRecords(by_partition)
        if not by_partition:
            return records
        stages = [each.on_consume for each in self._interceptors]
        return self._run_user_code(lambda: transformed(self._log, records, stages, ConsumerRecords))
