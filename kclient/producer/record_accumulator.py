"""Accumulator of records in batches by partition, until the sender drains them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Runtime, seeded_random
from kclient.common.types import TopicPartition
from kclient.common.waiting import Steps
from kclient.producer.append_outcome import AppendOutcome
from kclient.producer.batch_drainer import BatchDrainer, NextBatch, oldest_batch
from kclient.producer.batch_state import BatchEvent, BatchState
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.errors import possibly_written
from kclient.producer.incomplete_batches import IncompleteBatches
from kclient.producer.partitioner import BuiltInPartitioner
from kclient.producer.produce_request_result import ProduceRequestResult
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.rows import Appendable
from kclient.producer.topic_info import PartitionQueue, SlowNodes, TopicInfo
from kclient.record import RECORD_BATCH_OVERHEAD, RecordColumns

T = TypeVar("T")
_NEW = BatchState.NEW


class RecordAccumulator:
    """Queues of batches, one per partition (Kafka: RecordAccumulator).

    Application threads append. The sender drains batches and queues them again for a retry. No lock
    is held while a caller waits for memory. Lock order: a queue's lock, then that of the drainer,
    of the incomplete batches or of the pool.

    Attributes:
        pool: Memory of the batches.
        incomplete: Batches without an outcome.
        drainer: The sender's access to the queues.
        slow_nodes: Brokers that the sticky partitioner avoids.
        new_result: Returns the pending result of a new batch.
    """

    def __init__(
        self,
        config: ProducerConfig,
        pool: BufferPool,
        runtime: Runtime,
        runner: CallbackRunner,
        retry_backoff: ExponentialBackoff,
        slow_nodes: SlowNodes,
        wakeup: Callable[[], None],
        next_batch: NextBatch = oldest_batch,
        on_idle: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Start empty.

        Args:
            config: Options.
            pool: Memory of the batches.
            runtime: Clock, randomness and locks.
            runner: Runs callbacks.
            retry_backoff: Backoff of retries.
            slow_nodes: Brokers that the sticky partitioner avoids.
            wakeup: Wakes the sender, after a batch was opened or closed.
            next_batch: Chooses the batch of a queue that may be sent now; by default the oldest.
            on_idle: Called with the name of a topic that is dropped.
        """
        self._config = config
        self.pool = pool
        self.incomplete = IncompleteBatches(runtime.tasks, config.delivery_timeout_ms)
        self.drainer = BatchDrainer(
            runtime.tasks.lock(), config.linger_ms, config.max_request_size, next_batch
        )
        self._tasks = runtime.tasks
        self._clock = runtime.clock
        self._uniform = seeded_random(runtime.random).random  # drawn for every full batch
        self._runner = runner
        self._retry_backoff = retry_backoff
        self.slow_nodes = slow_nodes
        self._lock = runtime.tasks.lock()  # guards: the topics
        self._topics: dict[str, TopicInfo] = {}
        # Dropped topics, while a call that is appending refers to them: it must not happen that two
        # objects have queues of one partition.
        self._dropped: WeakValueDictionary[str, TopicInfo] = WeakValueDictionary()
        self._on_idle = on_idle
        self._flushes: set[object] = set()  # calls of flush() in progress
        self._closed = False
        self._wakeup = wakeup
        self._result_lock = runtime.tasks.lock()  # one for all: a lock for each costs a microsecond
        self.new_result: Callable[[TopicPartition], ProduceRequestResult] = partial(
            ProduceRequestResult,
            tasks=runtime.tasks,
            lock=self._result_lock,
            runner=runner,
            clock=runtime.clock,
        )

    # -- appending --------------------------------------------------------------------------------

    def check_size(self, record_size: int, what: str = "record") -> None:
        """Reject a record that does not fit into a request.

        Args:
            record_size: Upper bound of its size as the first record of a batch.
            what: Name of the record in the error.

        Raises:
            RecordTooLargeError: It is larger than ``max.request.size``.
        """
        size = RECORD_BATCH_OVERHEAD + record_size
        if size > self._config.max_request_size:
            raise RecordTooLargeError(
                f"{what}: got {size} bytes with its batch's header, expected at most "
                f"max.request.size={self._config.max_request_size}; raise it, and "
                "max.message.bytes of the topic"
            )

    def check_columns(self, columns: RecordColumns, first_row: int) -> None:
        """Reject columns with a malformed row, or one that is too large.

        Args:
            columns: The columns.
            first_row: Number of the first row in error texts.

        Raises:
            InvalidArgumentError: A row is malformed.
            RecordTooLargeError: A row is larger than ``max.request.size`` or ``buffer.memory``.
        """
        memory = self.pool.total
        most = min(self._config.max_request_size, memory) - RECORD_BATCH_OVERHEAD
        row = columns.check(most, first_row)
        if row < 0:
            return
        size = columns.size_upper_bound(row)
        self.check_size(size, f"row {first_row + row}")
        raise RecordTooLargeError(
            f"row {first_row + row}: got {RECORD_BATCH_OVERHEAD + size} bytes with its batch's "
            f"header, expected at most buffer.memory={memory}"
        )

    def topic_info(self, topic: str) -> TopicInfo:
        """Return a topic's queues, creating them if needed."""
        with self._lock:
            info = self._topics.get(topic)
            if info is None:
                info = self._dropped.pop(topic, None)
                if info is not None:
                    self._topics[topic] = info
            if info is None:
                partitioner = BuiltInPartitioner(self._config.batch_size, self._uniform)
                avoids_slow_nodes = self._config.partitioner_adaptive_partitioning_enable
                info = TopicInfo(
                    topic,
                    partitioner,
                    self._tasks.lock,
                    self.slow_nodes if avoids_slow_nodes else None,
                    self._config.preferred_rack,
                )
                self._topics[topic] = info
            return info

    def topics(self) -> list[TopicInfo]:
        """Return the topics that records were sent to."""
        with self._lock:
            return list(self._topics.values())

    def drop_topics(self, topics: Iterable[str]) -> None:
        """Drop idle topics, unless they have incomplete batches; only the sender calls it."""
        dropped: list[TopicInfo] = []
        with self._lock:
            for topic in topics:
                info = self._topics[topic]
                if not any(queue.muted for queue in info.queues):
                    dropped.append(self._topics.pop(topic))
                    self._dropped[topic] = info
        # Only now, as a call may have added a batch until then; one that adds a batch later finds
        # that its topic was dropped (`_keep`).
        in_use = {batch.topic_partition.topic for batch in self.incomplete.all()}
        for info in dropped:
            if info.topic in in_use:
                self._keep(info)
            else:
                self._on_idle(info.topic)

    def _keep(self, info: TopicInfo) -> None:
        """Undo the drop of a topic, which has a new batch."""
        if info.topic not in self._topics:
            with self._lock:
                self._topics[info.topic] = info

    def append(
        self,
        info: TopicInfo,
        queue: PartitionQueue | None,
        rows: Appendable[T],
        max_wait_ms: float,
    ) -> Steps[T]:
        """Append as many records as fit into one batch, at least one; return what `fill` does.

        Args:
            info: The topic.
            queue: Queue of the partition, or None for the sticky one.
            rows: The records.
            max_wait_ms: Time to wait for memory if a new batch is needed.

        Raises:
            BufferExhaustedError: No memory was freed in time.
            RecordTooLargeError: A record is larger than a request or ``buffer.memory``.
            ClosedError: The producer was closed.
        """
        target = queue or info.sticky_queue
        if target is not None:
            with target.lock:
                filled = rows.fill(target)
            if filled is not None:
                return filled
        return (yield from self.append_to_new_batch(info, queue, target, rows, max_wait_ms))

    def append_to_new_batch(
        self,
        info: TopicInfo,
        queue: PartitionQueue | None,
        missed: PartitionQueue | None,
        rows: Appendable[T],
        max_wait_ms: float,
    ) -> Steps[T]:
        """Append to a new batch, after the open batch of a queue, `missed`, had no space.

        The other arguments, and the errors, are those of `append`.
        """
        if missed is not None and missed.batches:
            self._batch_closed(missed)  # before a wait for memory, which the batch will free
        record_size = rows.next_size()
        self.check_size(record_size)
        if queue is not None:
            appended = yield from self._append_with_memory(queue, rows, record_size, max_wait_ms)
            self._keep(info)
            return appended[1]
        target, filled = self._switch_partition(info, missed, rows)
        if filled is not None:
            return filled
        batch, made = yield from self._append_with_memory(target, rows, record_size, max_wait_ms)
        self._keep(info)
        if batch.state is not _NEW:
            info.sticky_batch_opened(batch)
        return made

    def _batch_closed(self, queue: PartitionQueue) -> None:
        """Let the sender send the batches of a queue whose open batch was closed."""
        with queue.lock:
            wakes_sender = self.drainer.update(queue)
        if wakes_sender:
            self._wakeup()

    def _append_with_memory(
        self, queue: PartitionQueue, rows: Appendable[T], record_size: int, max_wait_ms: float
    ) -> Steps[tuple[ProducerBatch, T]]:
        """Append to a new batch, or to one that another thread opens meanwhile.

        Returns:
            The new batch, which is not registered if it was not needed, and the result of `fill`.
        """
        pool = self.pool
        size = pool.size_for(max(queue.buffer_size, RECORD_BATCH_OVERHEAD + record_size))
        buffer = pool.try_allocate(size)
        if buffer is None:
            wait_ms = None if self._runner.inside() else max_wait_ms
            buffer = yield from pool.allocate(size, wait_ms)
        result = self.new_result(queue.topic_partition)
        batch = ProducerBatch(buffer, result, self._clock.monotonic_ms(), pool)
        wakes_sender = False
        try:
            with queue.lock:
                # Another thread may have opened a batch meanwhile.
                filled = None if queue.open_batch is None else rows.fill(queue)
                if filled is None:
                    filled = self._open(batch, queue, rows)
                    wakes_sender = self.drainer.update(queue)
        finally:
            if batch.state is _NEW:
                self.deallocate(batch)
        if wakes_sender:
            self._wakeup()
        if filled is None:
            return (yield from self._append_with_memory(queue, rows, record_size, max_wait_ms))
        return batch, filled

    def _switch_partition(
        self, info: TopicInfo, missed: PartitionQueue | None, rows: Appendable[T]
    ) -> tuple[PartitionQueue, T | None]:
        """Return the sticky queue for a new batch, or the one whose open batch had space."""
        if missed is None:
            missed = info.choose_sticky_queue()
        while True:
            now_ms = self._clock.monotonic_ms()
            target = info.switch_partition(missed, self._config.batch_size, now_ms)
            if target is missed or target.open_batch is None:
                return target, None
            with target.lock:
                filled = rows.fill(target)
            if filled is not None:
                return target, filled
            self._batch_closed(target)
            missed = target

    def _open(self, batch: ProducerBatch, queue: PartitionQueue, rows: Appendable[T]) -> T | None:
        """Queue a batch with its first record, or leave no trace of it; the queue is locked.

        Returns:
            The result of `fill`; None if a finalizer that ran meanwhile has filled the batch.
        """
        try:
            queue.open(batch)
            filled = rows.fill(queue)
            if filled is None and not batch.builder.record_count:
                raise IllegalStateError("the first record did not fit into its new batch")
            self.incomplete.add(batch)  # last: a flush that finds it waits for its outcome
        finally:
            if batch.state is _NEW:
                queue.remove(batch)
        return filled

    # -- called by the sender ---------------------------------------------------------------------

    def skips_linger(self) -> bool:
        """Return whether to send batches before ``linger.ms``: a caller waits for them."""
        return self._closed or bool(self._flushes) or self.pool.queued() > 0

    def reenqueue(self, batch: ProducerBatch, now_ms: float) -> None:
        """Queue a batch for a retry, in its order among the partition's batches."""
        batch.apply(BatchEvent.REQUEUED)
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
            self.drainer.update(queue)

    def _queue_of(self, topic_partition: TopicPartition) -> PartitionQueue:
        return self.topic_info(topic_partition.topic).queues[topic_partition.partition]

    def unqueue(self, batches: list[ProducerBatch]) -> None:
        """Remove batches from their queues; those in flight are in none."""
        for batch in batches:
            queue = self._queue_of(batch.topic_partition)
            with queue.lock:
                queue.remove(batch)
                self.drainer.update(queue)

    def mute(self, topic_partition: TopicPartition, *, muted: bool) -> None:
        """Stop or resume draining a partition, to keep at most one batch of it in flight."""
        self._queue_of(topic_partition).muted = muted

    def finish(self, batch: ProducerBatch) -> None:
        """Remove a completed batch, and free its memory unless it is in flight."""
        self.incomplete.remove([batch])
        if batch.state is BatchState.DONE:
            self.deallocate(batch)

    def deallocate(self, *batches: ProducerBatch) -> None:
        """Free the memory of batches; no socket may read it any more."""
        buffers = []
        for batch in batches:
            buffer = batch.release()
            if buffer is not None:
                buffers.append(buffer)
        self.pool.deallocate(*buffers)

    # -- flushing and closing ---------------------------------------------------------------------

    def flush(self, until_ms: float) -> Steps[None]:
        """Send queued batches without linger, and wait for their outcomes.

        Raises:
            KafkaTimeoutError: Not all have an outcome at `until_ms`.
        """
        flush = object()
        self._flushes.add(flush)
        try:
            self._wakeup()
            yield from self.incomplete.wait(until_ms)
        finally:
            self._flushes.discard(flush)

    def close(self) -> None:
        """Reject new records; queued ones are sent without linger."""
        self._closed = True
        self.incomplete.close()

    def abort_incomplete(self, error: KafkaError) -> int:
        """Fail every incomplete batch, after `close`; return the number of records.

        The sockets must be closed: no socket may read the batches' memory.
        """
        records = 0
        batches = self.incomplete.all()
        self.unqueue(batches)
        for batch in batches:
            if batch.state is BatchState.IN_FLIGHT:
                batch.request_failed(AppendOutcome.UNKNOWN)
            if batch.state is not BatchState.DONE:
                records += batch.record_count
                batch.fail(possibly_written(error) if batch.is_in_doubt() else error)
            self.finish(batch)
        self.pool.close()
        return records
