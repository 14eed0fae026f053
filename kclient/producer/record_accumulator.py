"""Accumulator of records in batches by partition, until the sender drains them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.producer.active_queues import ActiveQueues
from kclient.producer.batch_delivery import Segment
from kclient.producer.batch_drainer import BatchDrainer
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.column_rows import ColumnRows
from kclient.producer.deadline import Deadline
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import possibly_written
from kclient.producer.incomplete_batches import IncompleteBatches
from kclient.producer.partition_queue import PartitionQueue
from kclient.producer.partitioner import BuiltInPartitioner
from kclient.producer.produce_request_result import OnDelivery, ProduceRequestResult
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.rows import Rows
from kclient.producer.slow_nodes import SlowNodes
from kclient.producer.topic_info import TopicInfo
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    Header,
    RecordColumns,
    record_size_upper_bound,
)

T = TypeVar("T")


class AccumulatorSettings(NamedTuple):
    """Settings of the accumulator.

    Attributes:
        batch_size: ``batch.size``.
        linger_ms: ``linger.ms``.
        delivery_timeout_ms: ``delivery.timeout.ms``.
        max_request_size: ``max.request.size``.
        adaptive_partitioning: ``partitioner.adaptive.partitioning.enable``.
    """

    batch_size: int
    linger_ms: float
    delivery_timeout_ms: float
    max_request_size: int
    adaptive_partitioning: bool

    def check_size(self, record_size: int, what: str = "record") -> None:
        """Reject a record that does not fit into a request.

        Args:
            record_size: Upper bound of its size as the first record of a batch.
            what: Name of the record in the error.

        Raises:
            RecordTooLargeError: It is larger than ``max.request.size``.
        """
        size = RECORD_BATCH_OVERHEAD + record_size
        if size > self.max_request_size:
            raise RecordTooLargeError(
                f"{what}: got {size} bytes with its batch's header, expected at most "
                f"max.request.size={self.max_request_size}; raise it, and "
                "max.message.bytes of the topic"
            )

    def check_columns(self, columns: RecordColumns, first_row: int, memory: int) -> None:
        """Reject columns with a malformed row, or one that is too large.

        Args:
            columns: The columns.
            first_row: Number of the first row in error texts.
            memory: ``buffer.memory``.

        Raises:
            InvalidArgumentError: A row is malformed.
            RecordTooLargeError: A row is larger than ``max.request.size`` or ``buffer.memory``.
        """
        most = min(self.max_request_size, memory) - RECORD_BATCH_OVERHEAD
        row = columns.check(most, first_row)
        if row < 0:
            return
        size = columns.size_upper_bound(row)
        self.check_size(size, f"row {first_row + row}")
        raise RecordTooLargeError(
            f"row {first_row + row}: got {RECORD_BATCH_OVERHEAD + size} bytes with its batch's "
            f"header, expected at most buffer.memory={memory}"
        )


class RecordAccumulator:
    """Queues of batches, one per partition (Kafka: RecordAccumulator).

    Application threads append. The sender drains batches through `drainer` and queues them again
    for a retry. No lock is held while a caller waits for memory. Lock order: a queue's lock, then
    that of the topic, of the active queues, or of the incomplete batches.
    """

    def __init__(
        self,
        settings: AccumulatorSettings,
        pool: BufferPool,
        runtime: Runtime,
        runner: CallbackRunner,
        retry_backoff: ExponentialBackoff,
        slow_nodes: SlowNodes,
        wakeup: Callable[[], None],
    ) -> None:
        """Start empty.

        Args:
            settings: Settings.
            pool: Memory of the batches.
            runtime: Clock, randomness and locks.
            runner: Runs callbacks.
            retry_backoff: Backoff of retries.
            slow_nodes: Brokers that the sticky partitioner avoids.
            wakeup: Wakes the sender, after a batch was created or closed.
        """
        self.settings = settings
        self.pool = pool
        self.drainer = BatchDrainer(
            ActiveQueues(runtime.tasks), settings.linger_ms, skip_linger=self._skips_linger
        )
        self.incomplete = IncompleteBatches(runtime.tasks)
        self._queues = self.drainer.queues
        self._runtime = runtime
        self._runner = runner
        self._retry_backoff = retry_backoff
        self._slow_nodes = slow_nodes
        self._lock = runtime.tasks.lock()  # guards: the topics
        self._topics: dict[str, TopicInfo] = {}
        self._flushes: set[object] = set()  # calls of flush() in progress
        self._closed = False
        self._wakeup = wakeup

    # -- appending --------------------------------------------------------------------------------

    def topic_info(self, topic: str) -> TopicInfo:
        """Return a topic's queues, creating them if needed."""
        with self._lock:
            info = self._topics.get(topic)
            if info is None:
                partitioner = BuiltInPartitioner(
                    self.settings.batch_size, self._runtime.random.random
                )
                lags = self._slow_nodes.lags if self.settings.adaptive_partitioning else None
                info = TopicInfo(topic, partitioner, self._runtime.tasks.lock, lags)
                self._topics[topic] = info
            return info

    def topics(self) -> list[TopicInfo]:
        """Return the topics that records were sent to."""
        with self._lock:
            return list(self._topics.values())

    def append(
        self,
        info: TopicInfo,
        queue: PartitionQueue | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] | None,
        on_delivery: OnDelivery | None,
        max_wait_ms: float,
    ) -> DeliveryFuture:
        """Append a record and return its future.

        Args:
            info: The topic.
            queue: Queue of the partition, or None for the sticky one.
            timestamp_ms: Milliseconds since the epoch.
            key: Key.
            value: Value.
            headers: Headers.
            on_delivery: Delivery callback.
            max_wait_ms: Time to wait for memory if a new batch is needed.

        Raises:
            BufferExhaustedError: No memory was freed in time.
            RecordTooLargeError: The record is larger than a request or ``buffer.memory``.
            ClosedError: The producer was closed.
        """
        target = queue or info.sticky_queue
        if target is not None:
            future = target.try_append(timestamp_ms, key, value, headers, on_delivery)
            if future is not None:
                return future

        def fill(batch: ProducerBatch) -> DeliveryFuture | None:
            return batch.try_append(timestamp_ms, key, value, headers, on_delivery)

        size = record_size_upper_bound(key, value, headers)
        return self._append_to_new_batch(info, queue, size, max_wait_ms, fill)

    def append_many(
        self,
        info: TopicInfo,
        queue: PartitionQueue | None,
        rows: Rows | ColumnRows,
        max_wait_ms: float,
        segments: list[Segment],
    ) -> None:
        """Append many records to one partition, or to sticky partitions.

        Args:
            info: The topic.
            queue: Queue of the partition, or None for sticky ones.
            rows: The records.
            max_wait_ms: Time to wait for memory if a new batch is needed.
            segments: Receives the segments that were appended, also before an error.

        Raises:
            BufferExhaustedError: No memory was freed in time.
            RecordTooLargeError: A record is larger than ``buffer.memory``.
            ClosedError: The producer was closed.
        """
        while not rows.all_taken():
            target = queue or info.sticky_queue
            if target is not None:
                with target.lock:
                    batch = target.open_batch
                    segment = None if batch is None else rows.fill(batch)
                if segment is not None:
                    segments.append(segment)
                    continue
            size = rows.next_size()
            segments.append(self._append_to_new_batch(info, queue, size, max_wait_ms, rows.fill))

    def _append_to_new_batch(
        self,
        info: TopicInfo,
        queue: PartitionQueue | None,
        record_size: int,
        max_wait_ms: float,
        fill: Callable[[ProducerBatch], T | None],
    ) -> T:
        self.settings.check_size(record_size)
        size = max(self.settings.batch_size, RECORD_BATCH_OVERHEAD + record_size)
        target = queue or info.choose_sticky_queue()
        filled: T | None = None
        # Ctrl-C takes effect after any call, so memory always has exactly one owner: this list,
        # then the batch, which frees it when it is completed.
        memory: list[bytearray] = []
        batch: ProducerBatch | None = None
        try:
            while filled is None:
                with target.lock:
                    filled = _fill_open_batch(target, fill)
                    if filled is None and memory:
                        result = self.new_result(target.topic_partition)
                        batch, memory = (
                            ProducerBatch(memory[0], result, self._runtime.clock.monotonic_ms()),
                            [],
                        )
                        filled = self._begin(batch, target, fill)
                if filled is None and queue is None:
                    switched = info.switch_partition(target, self.settings.batch_size)
                    if switched is not target:
                        target = switched
                        continue
                if filled is None:
                    wait_ms = 0.0 if self._runner.inside() else max_wait_ms
                    memory = [self.pool.allocate(size, wait_ms)]
            self.pool.release_all(memory)
            if batch is not None and queue is None:
                info.sticky_batch_opened(batch)
            self._wakeup()  # a batch was created or closed
        except BaseException:
            self._abandon(memory, batch)
            raise
        return filled

    def _abandon(self, memory: list[bytearray], batch: ProducerBatch | None) -> None:
        self.pool.release_all(memory)
        if batch is not None and not batch.is_registered:
            self.deallocate(batch)
        self._wakeup()

    def _begin(
        self, batch: ProducerBatch, queue: PartitionQueue, fill: Callable[[ProducerBatch], T | None]
    ) -> T:
        """Append the first record and queue the batch, atomically; the queue is locked."""
        filled = fill(batch)
        if filled is None:
            raise IllegalStateError("the first record did not fit into its new batch")
        try:
            queue.open(batch)
            self._queues.add(queue)
            self.incomplete.add(batch)  # last: a flush that finds it waits for its outcome
        except BaseException:
            if not batch.is_registered:
                queue.remove(batch)
                self._queues.remove_if_empty(queue)
            raise
        return filled

    def new_result(self, topic_partition: TopicPartition) -> ProduceRequestResult:
        """Return the pending result of a new batch."""
        runtime = self._runtime
        return ProduceRequestResult(
            topic_partition, runtime.tasks.condition(), self._runner, runtime.clock
        )

    # -- called by the sender ---------------------------------------------------------------------

    def reenqueue(self, batch: ProducerBatch, now_ms: float) -> None:
        """Queue a batch for a retry, in its order among the partition's batches."""
        batch.retry_at_ms = now_ms + self._retry_backoff.backoff(batch.attempts)
        batch.attempts += 1
        self._put_back([batch])

    def requeue_parts(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a batch by its parts.

        Their memory is not counted in ``buffer.memory``: the sender cannot wait for memory that it
        frees itself.
        """
        self.incomplete.replace(batch, parts)
        self._put_back(parts)
        self.deallocate(batch)

    def _put_back(self, batches: list[ProducerBatch]) -> None:
        queue = self._queue_of(batches[0].topic_partition)
        with queue.lock:
            for batch in batches:
                queue.put_back(batch)
            self._queues.add(queue)

    def _queue_of(self, topic_partition: TopicPartition) -> PartitionQueue:
        return self.topic_info(topic_partition.topic).queues[topic_partition.partition]

    def take_expired(self, now_ms: float) -> list[ProducerBatch]:
        """Remove and return the batches that are older than ``delivery.timeout.ms``.

        Batches in flight are among them; their memory stays allocated until the request completes.
        """
        oldest_ms = now_ms - self.settings.delivery_timeout_ms
        expired = self.incomplete.created_until(oldest_ms)
        for batch in expired:
            self.unqueue(batch)
        return expired

    def take_queued(self) -> list[ProducerBatch]:
        """Remove and return the batches that are not in flight."""
        queued = [batch for batch in self.incomplete.all() if not batch.on_wire]
        for batch in queued:
            self.unqueue(batch)
        return queued

    def next_expiry_ms(self) -> float:
        """Return when the next batch reaches ``delivery.timeout.ms``."""
        return self.incomplete.oldest_created_ms() + self.settings.delivery_timeout_ms

    def unqueue(self, batch: ProducerBatch) -> None:
        """Remove a batch from its queue, if it is there."""
        queue = self._queue_of(batch.topic_partition)
        with queue.lock:
            queue.remove(batch)
            self._queues.remove_if_empty(queue)

    def mute(self, topic_partition: TopicPartition, *, muted: bool) -> None:
        """Stop or resume draining a partition, to keep at most one batch of it in flight."""
        self._queue_of(topic_partition).muted = muted

    def finish(self, batch: ProducerBatch) -> None:
        """Remove a completed batch, and free its memory unless it is in flight."""
        self.incomplete.remove(batch)
        if not batch.on_wire:
            self.deallocate(batch)

    def deallocate(self, batch: ProducerBatch) -> None:
        """Free a batch's memory; no socket may read it any more."""
        buffer = batch.release()
        if buffer is not None and batch.pooled:
            self.pool.deallocate(buffer)

    # -- flushing and closing ---------------------------------------------------------------------

    def _skips_linger(self) -> bool:
        return self._closed or bool(self._flushes) or self.pool.queued() > 0

    def flush(self, deadline: Deadline) -> None:
        """Send queued batches without linger, and wait for their outcomes.

        Raises:
            KafkaTimeoutError: The deadline passed first.
        """
        flush = object()
        try:
            self._flushes.add(flush)
            self._wakeup()
            for batch in self.incomplete.all():
                self._await(batch.result, deadline)
        finally:
            self._flushes.discard(flush)

    def _await(self, result: ProduceRequestResult, deadline: Deadline) -> None:
        if not result.wait(deadline.remaining()):
            raise KafkaTimeoutError(
                f"flush: {self.incomplete.record_count()} records have no outcome yet; they are in "
                "flight"
            )
        for part in result.parts():
            self._await(part, deadline)

    def close(self) -> None:
        """Reject new records; queued ones are sent without linger."""
        self._closed = True
        self.incomplete.close()

    def abort_incomplete(self, error: KafkaError) -> int:
        """Fail every incomplete batch, after `close`; return the number of records.

        The sockets must be closed: no socket may read the batches' memory.
        """
        records = 0
        for batch in self.incomplete.all():
            self.unqueue(batch)
            outcome = possibly_written(error) if batch.is_in_doubt() else error
            batch.on_wire = False
            records += batch.record_count
            batch.result.fail(outcome)
            self.finish(batch)
        self.pool.close()
        return records


def _fill_open_batch(queue: PartitionQueue, fill: Callable[[ProducerBatch], T | None]) -> T | None:
    """Append to the open batch, or close it if the record does not fit; the queue is locked.

    Another thread may have created the batch meanwhile.
    """
    batch = queue.open_batch
    if batch is None:
        return None
    filled = fill(batch)
    if filled is None:
        queue.close_batch(batch)
    return filled
