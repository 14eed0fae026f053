"""Objects of the application that see every record returned and every commit."""

from collections.abc import Mapping, Sequence

from kclient.common.interceptors import notify, transformed
from kclient.common.log_context import LogContext
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.collected_records import CollectedRecords
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.drive_lock import RunUserCode
from kclient.record import ConsumerRecord


class ConsumerInterceptor:
    """What ``interceptor.classes`` of a consumer takes (Kafka: ConsumerInterceptor, KIP-42).

    A class may derive from it and override what it needs, or just have the same methods. What they
    raise is logged and stops nothing.
    """

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        """Return the records that the application gets: those given, or others made of them.

        Runs inside `Consumer.poll` and the iteration, once for each record that is returned; not
        for `Consumer.poll_columns`. Where it raises, the records given are returned.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """See the offsets of a commit that has succeeded."""
        return

    def close(self) -> None:
        """Release resources; the consumer is being closed."""
        return


class ConsumerInterceptors:
    """A chain of interceptors."""

    def __init__(
        self,
        interceptors: Sequence[ConsumerInterceptor],
        run_user_code: RunUserCode,
        log_context: LogContext,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._interceptors = tuple(interceptors)
        self._run_user_code = run_user_code

    def __len__(self) -> int:
        return len(self._interceptors)

    def on_consume(self, collected: CollectedRecords) -> ConsumerRecords:
        """Return records as the chain changes them, each of which it sees once."""
        if not collected.again:
            return self._changed(collected.by_partition)
        merged = {
            partition: collected.by_partition[partition][:count]
            for partition, count in collected.again.items()
        }
        new = {
            partition: records[collected.again.get(partition, 0) :]
            for partition, records in collected.by_partition.items()
        }
        changed = self._changed({key: records for key, records in new.items() if records})
        for partition in changed.partitions():
            merged[partition] = merged.get(partition, []) + changed.records(partition)
        return ConsumerRecords(merged)

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Show a commit to each."""
        if self._interceptors:
            stages = [each.on_commit for each in self._interceptors]
            self._run_user_code(lambda: notify(self._log, stages, offsets))

    def close(self) -> None:
        """Close each."""
        notify(self._log, (each.close for each in self._interceptors))

    def _changed(
        self, by_partition: Mapping[TopicPartition, list[ConsumerRecord]]
    ) -> ConsumerRecords:
        records = ConsumerRecords(by_partition)
        if not by_partition:
            return records
        stages = [each.on_consume for each in self._interceptors]
        return self._run_user_code(lambda: transformed(self._log, records, stages, ConsumerRecords))
