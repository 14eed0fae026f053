"""Partitions of this broker, with appends and fetches that span several of them."""

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress

from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.log_validator import RecordValidationError
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.log.transaction_verification import VerificationGuard
from kclient.broker.replication.delayed_operation import DelayedOperationPurgatory, OperationTimer
from kclient.broker.replication.delayed_requests import (
    AppendResults,
    DelayedDeleteRecords,
    DelayedFetch,
    DelayedProduce,
    DeletionResults,
)
from kclient.broker.replication.fetch_params import (
    CONSUMER,
    AppendResult,
    FetchParams,
    FetchPartition,
    FetchPosition,
    FetchResult,
    FetchResults,
    FetchSource,
)
from kclient.broker.replication.hosted_partitions import HostedPartitions, TopicConfigReader
from kclient.broker.replication.partition import ACKS_ALL, Partition
from kclient.broker.replication.replica_selector import ReplicaSelector, replica_views
from kclient.broker.replication.replication_context import ReplicationContext
from kclient.common.broker_errors import (
    CorruptRecordError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnknownTopicIdError,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition

_log = logging.getLogger(__name__)

_WITHOUT_LOG_START = (
    CorruptRecordError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
"""Errors without a log start offset in the response (Kafka: appendRecordsToLeader)."""

_RETRY_MS = 500.0


PartitionObserver = Callable[[TopicPartition], Sequence[Hashable]]


def _no_keys(_: TopicPartition) -> Sequence[Hashable]:
    return ()


class ReplicaManager:
    """Replicas of partitions on this broker (Kafka: ReplicaManager).

    `HostedPartitions` has the partitions, and applies the cluster metadata to them.

    Attributes:
        context: What the partitions use of the broker. The server sets `broker_epoch`, and
            `alter_partition` to that of the `AlterPartitionManager`.
        hosted: The partitions. The server sets `fetchers`.
        selector: Selects the replica that a consumer reads, or None for the leader.
        timer: Deadlines of delayed operations.
        fetch_purgatory: Delayed fetches.
        produce_purgatory: Delayed appends.
        delete_purgatory: Delayed deletions of records.
        changed: Called with each partition that changed; returns the keys of the delayed fetches
            that are watched for it under other keys, as those of sessions.
    """

    def __init__(
        self,
        node_id: int,
        runtime: Runtime,
        log_manager: LogManager,
        topic_config: TopicConfigReader,
        lag_time_max_ms: float = 30_000.0,
    ) -> None:
        """Create a manager without partitions.

        Args:
            node_id: Id of this broker.
            runtime: Clock and tasks.
            log_manager: The logs.
            topic_config: Returns the configuration of a topic.
            lag_time_max_ms: ``replica.lag.time.max.ms``.
        """
        self._clock = runtime.clock
        tasks = runtime.tasks
        self._log_manager = log_manager
        log_manager.on_retention = self._complete_delayed
        self.context = ReplicationContext(
            node_id,
            runtime.clock,
            lag_time_max_ms=lag_time_max_ms,
            changed=self._complete_delayed,
        )
        self.hosted = HostedPartitions(
            self.context, log_manager, topic_config, tasks, self._on_removed
        )
        self.partition, self.partitions = self.hosted.partition, self.hosted.all
        self.partition_error = self.hosted.error
        self.publish = self.hosted.publish
        self.selector: ReplicaSelector | None = None
        self._partitions = self.hosted.table
        self._lag_check_ms = lag_time_max_ms / 2
        self._lag_check_due_ms: float | None = None
        self._unflushed: set[TopicPartition] = set()
        self._operation_lock = tasks.condition()
        self.changed: PartitionObserver = _no_keys
        self.timer = OperationTimer(tasks.condition())
        self.fetch_purgatory: DelayedOperationPurgatory[DelayedFetch] = DelayedOperationPurgatory(
            tasks.condition(), self.timer
        )
        self.delete_purgatory: DelayedOperationPurgatory[DelayedDeleteRecords] = (
            DelayedOperationPurgatory(tasks.condition(), self.timer)
        )
        self.produce_purgatory: DelayedOperationPurgatory[DelayedProduce] = (
            DelayedOperationPurgatory(tasks.condition(), self.timer)
        )

    @property
    def is_offline(self) -> bool:
        """Whether the data directory is offline, which no change of a partition shows."""
        return self._log_manager.is_offline

    def volume_size(self) -> tuple[int, int]:
        """Return the bytes of the volume of the data directory: all, and those that are free.

        Raises:
            KafkaStorageError: The disk failed.
        """
        return self._log_manager.volume_size()

    def step(self, now_ms: float) -> float:
        """Run log maintenance, and finish appends whose flush failed.

        Args:
            now_ms: Monotonic time.

        Returns:
            Milliseconds until the next call.
        """
        delay_ms = self._log_manager.step(now_ms)
        if self._log_manager.is_offline:
            return delay_ms
        for topic_partition in list(self._unflushed):
            try:
                self._flush_local_replica(topic_partition)
            except KafkaStorageError as error:
                _log.warning("%s: records are not readable yet: %s", topic_partition, error)
                delay_ms = min(delay_ms, _RETRY_MS)
        return delay_ms

    def shrink_isrs(self, now_ms: float) -> float:
        """Check each half of replica.lag.time.max.ms for followers that lag.

        It writes no file, so that a busy disk does not delay the records that wait for a follower
        which has stopped.

        Returns:
            Monotonic time of the next call.
        """
        due_ms = self._lag_check_due_ms
        if due_ms is not None and now_ms >= due_ms:
            for partition in self.hosted.all():
                partition.shrink_isr()
            due_ms = None
        if due_ms is None:
            due_ms = self._lag_check_due_ms = now_ms + self._lag_check_ms
        return due_ms

    def _on_removed(self, topic_partition: TopicPartition) -> None:
        """Complete the operations of a removed partition with UNKNOWN_TOPIC_OR_PARTITION."""
        self.fetch_purgatory.complete_all(topic_partition)
        self._complete_delayed(topic_partition)

    def _flush_local_replica(self, topic_partition: TopicPartition) -> None:
        """Retry a failed flush of an append, which makes its records readable."""
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            with suppress(NotLeaderOrFollowerError):  # the log was closed
                partition.flush_local_replica()
            self._complete_delayed(topic_partition)
        self._unflushed.discard(topic_partition)

    def append_records(
        self,
        required_acks: int,
        entries: Mapping[TopicPartition, MemoryRecords],
        timeout_ms: float,
        on_done: Callable[[AppendResults], None],
        origin: AppendOrigin = "client",
        transaction_version: int = 0,
        guards: Mapping[TopicPartition, VerificationGuard] | None = None,
    ) -> None:
        """Append to several partitions; `on_done` receives the results.

        With acks 0 and 1 it is called before this returns. With acks -1 (all) it is called when the
        high watermark of each partition has passed the records, in this or another thread, and
        after `timeout_ms` at the latest, with REQUEST_TIMED_OUT for the partitions not committed.
        """
        results, waits = {}, False
        for topic_partition, records in entries.items():
            guard = guards.get(topic_partition) if guards else None
            result = self._append(
                topic_partition, records, required_acks, origin, transaction_version, guard
            )
            results[topic_partition] = result
            if result.error is None and not result.is_committed:
                waits = required_acks == ACKS_ALL
        if not waits:
            on_done(results)
        else:
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            operation = DelayedProduce(
                self._operation_lock, deadline_ms, results, self.partition, on_done
            )
            self.produce_purgatory.try_complete_else_watch(operation, list(results))
        for topic_partition, result in results.items():
            if result.error is None:
                self._complete_delayed(topic_partition)

    def _complete_delayed(self, topic_partition: TopicPartition) -> None:
        """Try to complete the operations that wait for a change of a partition.

        It is called after each change that a fetch can return: of the log end, the high watermark,
        the log start offset and the leader.
        """
        if topic_partition in self.produce_purgatory.watched_keys:
            self.produce_purgatory.check_and_complete(topic_partition)
        if topic_partition in self.delete_purgatory.watched_keys:
            self.delete_purgatory.check_and_complete(topic_partition)
        if topic_partition in self.fetch_purgatory.watched_keys:
            self.fetch_purgatory.check_and_complete(topic_partition)
        for key in self.changed(topic_partition):
            self.fetch_purgatory.check_and_complete(key)

    def fetch_records(
        self,
        params: FetchParams,
        source: FetchSource,
        on_done: Callable[[FetchResults], None],
    ) -> None:
        """Read from several partitions; `on_done` receives the results, now or once complete."""
        positions = source.take()
        results = self._read(params, positions)
        found, failed = 0, False
        for result in results.values():
            found += len(result.records)
            failed = failed or result.is_due
        if params.max_wait_ms <= 0 or found >= params.min_bytes or failed:
            on_done(results)
            return
        keys = source.watch_keys()
        if not keys:
            on_done(results)
            return
        operation = DelayedFetch(
            self._operation_lock,
            self._clock.monotonic_ms() + params.max_wait_ms,
            params,
            source.waiting,
            self.partition,
            lambda: on_done(self._read(params, source.take())),
        )
        self.fetch_purgatory.try_complete_else_watch(operation, keys)

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        timeout_ms: float,
        on_done: Callable[[DeletionResults], None],
    ) -> None:
        """Delete records before an offset of each partition; `on_done` receives the results.

        It is called, in this or another thread, when the live replicas have deleted them, and after
        `timeout_ms` at the latest. The leaders delete them at once; see `Partition.delete_records`.
        """
        results: DeletionResults = {}
        targets: dict[TopicPartition, int] = {}
        for topic_partition, offset in offsets.items():
            try:
                partition = self.partition(topic_partition)
                targets[topic_partition] = partition.delete_records(offset)
            except KafkaError as error:
                results[topic_partition] = error
            else:
                self._complete_delayed(topic_partition)
        operation = DelayedDeleteRecords(
            self._operation_lock,
            self._clock.monotonic_ms() + timeout_ms,
            targets,
            self.partition,
            lambda found: on_done({**results, **found}),
        )
        self.delete_purgatory.try_complete_else_watch(operation, list(targets))

    def _append(
        self,
        topic_partition: TopicPartition,
        records: MemoryRecords,
        acks: int,
        origin: AppendOrigin,
        transaction_version: int,
        guard: VerificationGuard | None,
    ) -> AppendResult:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            try:
                partition = self.partition(topic_partition)
            except KafkaError as error:
                return AppendResult(error=error)
        try:
            info, high_watermark, leader_epoch = partition.append_records_to_leader(
                records, acks, origin, transaction_version, guard
            )
        except RecordValidationError as error:
            return AppendResult(
                error.cause,
                log_start_offset=partition.log.log_start_offset,
                record_errors=error.record_errors,
            )
        except KafkaError as error:
            if isinstance(error, KafkaStorageError):
                self._unflushed.add(topic_partition)
            known = not isinstance(error, _WITHOUT_LOG_START)
            start = partition.log.log_start_offset if known else -1
            return AppendResult(error=error, log_start_offset=start)
        except OSError as error:
            return AppendResult(error=self._storage_error(topic_partition, error))
        return AppendResult(
            None,
            info.first_offset,
            info.log_append_time,
            info.log_start_offset,
            (),
            info.last_offset + 1,
            high_watermark > info.last_offset,
            leader_epoch,
        )

    def _read(self, params: FetchParams, positions: Iterable[FetchPosition]) -> FetchResults:
        results: FetchResults = {}
        left = params.max_bytes
        nothing_yet = True
        for position in positions:
            limit = max(0, min(left, position.wanted.max_bytes))
            result = self._read_one(params, position, limit, at_least_one=nothing_yet)
            results[position.topic_partition] = result
            if result.records:
                nothing_yet = False
                left -= len(result.records)
        return results

    def _read_one(
        self,
        params: FetchParams,
        position: FetchPosition,
        limit: int,
        *,
        at_least_one: bool,
    ) -> FetchResult:
        topic_partition, part = position.topic_partition, position.wanted
        try:
            partition = self.partition(topic_partition)
            if any(part.topic_id) and part.topic_id != partition.topic_id:
                raise UnknownTopicIdError
            if params.replica_id != CONSUMER:
                result, changed = partition.fetch_as_follower(
                    params.replica_id,
                    params.replica_epoch,
                    part,
                    limit,
                    at_least_one=at_least_one,
                )
                if changed:
                    self._complete_delayed(topic_partition)
                return result
            if params.rack_id and self.selector is not None:
                preferred = self._preferred_replica(params, partition, part)
                if preferred is not None:
                    return preferred
            return partition.fetch_records(
                part,
                params.isolation,
                limit,
                at_least_one=at_least_one,
                only_leader=params.only_leader,
            )
        except KafkaError as error:
            return FetchResult(error=error)
        except OSError as error:
            return FetchResult(error=self._storage_error(topic_partition, error))

    def _preferred_replica(
        self, params: FetchParams, partition: Partition, wanted: FetchPartition
    ) -> FetchResult | None:
        """Return the result that sends a consumer to a follower, or None to read this leader."""
        selector = self.selector
        if selector is None or not partition.is_leader:
            return None
        partition.check_leader_epoch(wanted.current_leader_epoch)
        views = replica_views(
            partition, self.context.brokers, wanted.fetch_offset, self._clock.monotonic_ms()
        )
        chosen = selector.select(params.rack_id, views)
        if chosen is None or chosen.is_leader:
            return None
        high_watermark, last_stable_offset, log_start_offset = partition.log.bounds()
        return FetchResult(
            None,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            preferred_read_replica=chosen.node_id,
        )

    def _storage_error(self, topic_partition: TopicPartition, error: OSError) -> KafkaStorageError:
        _log.error("%s: disk error: %s", topic_partition, error)
        return KafkaStorageError(f"Disk error when trying to access {topic_partition}")
