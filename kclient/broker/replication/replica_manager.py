"""Partitions of this broker, with appends and fetches that span several of them."""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import is_transient
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.log_offset_metadata import AppendOrigin
from kclient.broker.log.log_validator import RecordValidationError
from kclient.broker.log.memory_records import MemoryRecords
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import TOPIC_RESOURCE, MetadataImage, TopicImage
from kclient.broker.replication.delayed_operation import DelayedOperationPurgatory, OperationTimer
from kclient.broker.replication.delayed_requests import (
    AppendResults,
    DelayedFetch,
    DelayedProduce,
)
from kclient.broker.replication.fetch_params import (
    CONSUMER,
    AppendResult,
    FetchParams,
    FetchPosition,
    FetchResult,
    FetchResults,
    FetchSource,
)
from kclient.broker.replication.partition import ACKS_ALL, Partition
from kclient.common.broker_errors import (
    CorruptRecordError,
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
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


class _Offline(NamedTuple):
    """Partition whose log could not be opened, with the data for another attempt."""

    error: KafkaStorageError
    topic: TopicImage
    config: LogConfig


PartitionObserver = Callable[[TopicPartition], Sequence[Hashable]]
TopicConfigReader = Callable[[MetadataImage, str], LogConfig]


def _no_keys(_: TopicPartition) -> Sequence[Hashable]:
    return ()


class ReplicaManager:
    """Replicas of partitions on this broker (Kafka: ReplicaManager).

    The lock guards the table of partitions, which is written while the controller publishes and
    when a request opens a partition that was offline. It is read without the lock: a single look-up
    sees the table before a change or after it. Lock order: the controller's, if it publishes; this
    lock; the log manager's.

    Attributes:
        timer: Deadlines of delayed operations.
        fetch_purgatory: Delayed fetches.
        produce_purgatory: Delayed appends.
        changed: Called with each partition that changed; returns the keys of the delayed fetches
            that are watched for it under other keys, as those of sessions.
    """

    def __init__(
        self,
        node_id: int,
        runtime: Runtime,
        log_manager: LogManager,
        topic_config: TopicConfigReader,
    ) -> None:
        self._node_id = node_id
        self._clock = runtime.clock
        self._tasks = tasks = runtime.tasks
        self._log_manager = log_manager
        self._topic_config = topic_config
        log_manager.on_retention = self._complete_delayed
        self._lock = tasks.condition()
        self._partitions: dict[TopicPartition, Partition] = {}
        self._offline: dict[TopicPartition, _Offline] = {}
        self._unflushed: set[TopicPartition] = set()
        self._operation_lock = tasks.condition()
        self.changed: PartitionObserver = _no_keys
        self.timer = OperationTimer(tasks.condition())
        self.fetch_purgatory: DelayedOperationPurgatory[DelayedFetch] = DelayedOperationPurgatory(
            tasks.condition(), self.timer
        )
        self.produce_purgatory: DelayedOperationPurgatory[DelayedProduce] = (
            DelayedOperationPurgatory(tasks.condition(), self.timer)
        )

    def load(self, image: MetadataImage) -> None:
        """Open every partition of the image."""
        self._host_topics(image, image.topics)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a metadata change (Kafka: ReplicaManager.applyDelta)."""
        if delta.deleted_topics:
            self._drop_topics(delta.deleted_topics)
        if delta.created_topics or delta.changed_topics:
            self._host_topics(image, (*delta.created_topics, *delta.changed_topics))
        for kind, name in delta.changed_configs:
            if kind == TOPIC_RESOURCE and name in image.topics:
                self._reconfigure(image, image.topics[name])

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Return a partition of this broker.

        Raises:
            UnknownTopicOrPartitionError: This broker does not host it.
            KafkaStorageError: Its log could not be opened.
        """
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._open_again(topic_partition)
        if partition is None:
            raise self.partition_error(topic_partition)
        return partition

    def partitions(self) -> list[Partition]:
        """Return every partition of this broker."""
        with self._lock:
            return list(self._partitions.values())

    def partition_error(self, topic_partition: TopicPartition) -> KafkaError:
        """Return the error for a partition that is offline or not hosted."""
        offline = self._offline.get(topic_partition)
        if offline is not None:
            # A new object for each caller: a shared one would accumulate tracebacks.
            return KafkaStorageError(str(offline.error))
        return UnknownTopicOrPartitionError(f"This server does not host {topic_partition}")

    @property
    def is_offline(self) -> bool:
        """Whether the data directory is offline, which no change of a partition shows."""
        return self._log_manager.is_offline

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
    ) -> None:
        """Append to several partitions; `on_done` receives the results.

        With acks 0 and 1 it is called before this returns. With acks -1 (all) it is called when the
        high watermark of each partition has passed the records, in this or another thread, and
        after `timeout_ms` at the latest, with REQUEST_TIMED_OUT for the partitions not committed.
        """
        results, waits = {}, False
        for topic_partition, records in entries.items():
            result = self._append(topic_partition, records, required_acks, origin)
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
        if params.replica_id != CONSUMER:
            self._update_follower(params.replica_id, positions, results)
        found, failed = 0, False
        for result in results.values():
            found += len(result.records)
            failed = failed or result.error is not None or result.diverging_epoch is not None
        if params.max_wait_ms <= 0 or found >= params.min_bytes or failed:
            on_done(results)
            return
        keys = source.watch_keys()
        if not keys:
            on_done(results)
            return
        for position in positions:
            position.appended_bytes = results[position.topic_partition].appended_bytes
        operation = DelayedFetch(
            self._operation_lock,
            self._clock.monotonic_ms() + params.max_wait_ms,
            params,
            source.waiting,
            found,
            self.partition,
            lambda: on_done(self._read(params, source.take())),
        )
        self.fetch_purgatory.try_complete_else_watch(operation, keys)

    def delete_records(self, topic_partition: TopicPartition, offset: int) -> int:
        """Delete the records of a partition before an offset, as `Partition.delete_records`."""
        log_start_offset = self.partition(topic_partition).delete_records(offset)
        self._complete_delayed(topic_partition)
        return log_start_offset

    def _update_follower(
        self, replica: int, positions: Iterable[FetchPosition], results: FetchResults
    ) -> None:
        """Advance a follower to its fetch offsets; put the errors of that into the results."""
        for position in positions:
            topic_partition = position.topic_partition
            result = results[topic_partition]
            if result.error is None and result.diverging_epoch is None:
                try:
                    partition = self.partition(topic_partition)
                    partition.update_follower(replica, position.wanted.fetch_offset)
                except KafkaError as error:
                    results[topic_partition] = FetchResult(error=error)
                else:
                    self._complete_delayed(topic_partition)

    def _append(
        self,
        topic_partition: TopicPartition,
        records: MemoryRecords,
        acks: int,
        origin: AppendOrigin,
    ) -> AppendResult:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            try:
                partition = self.partition(topic_partition)
            except KafkaError as error:
                return AppendResult(error=error)
        try:
            info, high_watermark = partition.append_records_to_leader(records, acks, origin)
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
        except KafkaError as error:
            return FetchResult(error=error)
        if any(part.topic_id) and part.topic_id != partition.topic_id:
            return FetchResult(error=UnknownTopicIdError())
        try:
            return partition.fetch_records(part, params.isolation, limit, at_least_one=at_least_one)
        except KafkaError as error:
            return FetchResult(error=error)
        except OSError as error:
            return FetchResult(error=self._storage_error(topic_partition, error))

    def _storage_error(self, topic_partition: TopicPartition, error: OSError) -> KafkaStorageError:
        _log.error("%s: disk error: %s", topic_partition, error)
        return KafkaStorageError(f"Disk error when trying to access {topic_partition}")

    def _host_topics(self, image: MetadataImage, names: Iterable[str]) -> None:
        """Open the partitions of topics; they become available once their directories are flushed.

        Before that, a power failure could remove records even if these are flushed.
        """
        opened: dict[TopicPartition, Partition] = {}
        for name in names:
            opened.update(self._open_partitions(image, image.topics[name]))
        try:
            self._log_manager.flush_names()
        except KafkaStorageError as error:
            for topic_partition in opened:
                self._set_offline(image, topic_partition, error)
            return
        with self._lock:
            for topic_partition, partition in opened.items():
                hosted = self._partitions.setdefault(topic_partition, partition)
                if hosted is not partition:
                    # It was offline and has been opened by a request (`_open_again`).
                    topic = image.topics[topic_partition.topic]
                    hosted.apply(topic.partitions[topic_partition.partition])
                self._offline.pop(topic_partition, None)

    def _open_partitions(
        self, image: MetadataImage, topic: TopicImage
    ) -> Iterator[tuple[TopicPartition, Partition]]:
        """Yield the partitions that had to be opened; apply the image to the others."""
        config = self._topic_config(image, topic.name)
        for number, registration in enumerate(topic.partitions):
            topic_partition = TopicPartition(topic.name, number)
            partition = self._partitions.get(topic_partition)
            if partition is not None:
                partition.apply(registration)
                self._complete_delayed(topic_partition)
                continue
            try:
                opened = self._open(topic_partition, topic, config, flush_name=False)
            except KafkaStorageError as error:
                self._set_offline(image, topic_partition, error)
            else:
                yield topic_partition, opened

    def _set_offline(
        self, image: MetadataImage, topic_partition: TopicPartition, error: KafkaStorageError
    ) -> None:
        _log.error("%s is offline: %s", topic_partition, error)
        topic = image.topics[topic_partition.topic]
        config = self._topic_config(image, topic.name)
        self._offline[topic_partition] = _Offline(error, topic, config)

    def _open_again(self, topic_partition: TopicPartition) -> Partition | None:
        """Retry to open a log that failed for lack of disk space or file descriptors."""
        with self._lock:
            offline = self._offline.get(topic_partition)
            if offline is None or not is_transient(offline.error):
                return self._partitions.get(topic_partition)
            try:
                partition = self._open(
                    topic_partition, offline.topic, offline.config, flush_name=True
                )
            except KafkaStorageError as error:
                self._offline[topic_partition] = offline._replace(error=error)
                return None
            self._partitions[topic_partition] = partition
            del self._offline[topic_partition]
            return partition

    def _open(
        self,
        topic_partition: TopicPartition,
        topic: TopicImage,
        config: LogConfig,
        *,
        flush_name: bool,
    ) -> Partition:
        get_or_create = partial(
            self._log_manager.get_or_create,
            topic_partition,
            topic.topic_id,
            config,
            flush_name=flush_name,
        )
        try:
            log = get_or_create()
        except InconsistentTopicIdError:
            # Left behind by a deleted topic of this name after a crash.
            _log.warning("%s: removing the log of a deleted topic of this name", topic_partition)
            self._log_manager.delete(topic_partition)
            log = get_or_create()
        lock = self._tasks.condition()
        partition = Partition(topic_partition, topic.topic_id, self._node_id, log, lock)
        partition.apply(topic.partitions[topic_partition.partition])
        return partition

    def _drop_topics(self, topics: Iterable[TopicImage]) -> None:
        removed = [
            TopicPartition(topic.name, number)
            for topic in topics
            for number in range(len(topic.partitions))
        ]
        with self._lock:
            for topic_partition in removed:
                self._partitions.pop(topic_partition, None)
                self._offline.pop(topic_partition, None)
        try:
            self._log_manager.delete(*removed)
        finally:
            for topic_partition in removed:
                # Delayed operations complete with UNKNOWN_TOPIC_OR_PARTITION.
                self.fetch_purgatory.complete_all(topic_partition)
                self._complete_delayed(topic_partition)

    def _reconfigure(self, image: MetadataImage, topic: TopicImage) -> None:
        config = self._topic_config(image, topic.name)
        for number in range(len(topic.partitions)):
            partition = self._partitions.get(TopicPartition(topic.name, number))
            if partition is not None:
                partition.configure(config)
