"""Batch of records for one partition, from the first append to its outcome."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.types import TopicPartition
from kclient.producer.append_outcome import AppendOutcome
from kclient.producer.batch_state import (
    TRANSITIONS,
    BatchEvent,
    BatchState,
    EarlierAttempts,
    attempts_after,
)
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.produce_request_result import ProduceRequestResult
from kclient.record import (
    MAX_SEQUENCE,
    NO_PRODUCER,
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    ProducerIdAndEpoch,
    Record,
    RecordBatch,
    RecordBatchBuilder,
    record_size_upper_bound,
)
from kclient.record.batch_header import NO_SEQUENCE

_SMALLEST_RECORD = 7
_NEW, _NOT_WRITTEN = BatchState.NEW, EarlierAttempts.NOT_WRITTEN
_UNKNOWN = {EarlierAttempts.UNKNOWN, EarlierAttempts.UNKNOWN_WHOLE}


class RejectedRecords(NamedTuple):
    """Consecutive records of a batch that a broker rejected individually.

    Attributes:
        result: Their outcome.
        errors: Errors by the record's index in that result.
    """

    result: ProduceRequestResult
    errors: dict[int, KafkaError]


class ProducerBatch:
    """Records for one partition (Kafka: ProducerBatch).

    Until the batch is drained, its queue's lock guards it; then only the sender accesses it. The
    outcome is in `result`, which outlives the batch.

    Attributes:
        state: State; `apply` changes it.
        earlier_attempts: Whether requests that have ended may have written the batch.
        builder: Builder of the record batch.
        result: Outcome of the batch.
        created_ms: Creation time; ``delivery.timeout.ms`` counts from here.
        is_filled: Whether the batch was closed because a record did not fit.
        record_count: Number of records, once the batch is closed.
        size_in_bytes: Bytes of the batch once it is closed; compressed once it is sealed.
        uncompressed_size: Bytes of the batch once it is closed, before compression.
        attempts: Number of times that the batch was queued again.
        sealed: Bytes to send, None until the batch is sealed.
        send_order: Position among the batches of its partition, assigned by the first drain; empty
            before. The parts of a split batch sort right after it.
        retry_at_ms: Earliest time of a retry.
        last_sequence: Sequence of the last record, -1 before `assign`.
        last_error: Error of the last attempt, if there was one.
        trace: Times of its last request, if a tracer stored any.
    """

    __slots__ = (
        "_limit",
        "_pool",
        "attempts",
        "base_sequence",
        "buffer",
        "builder",
        "created_ms",
        "drained_ms",
        "earlier_attempts",
        "is_filled",
        "last_error",
        "last_sequence",
        "producer",
        "record_count",
        "result",
        "retry_at_ms",
        "sealed",
        "send_order",
        "size_in_bytes",
        "state",
        "topic_partition",
        "trace",
        "uncompressed_size",
    )

    def __init__(
        self,
        buffer: bytearray,
        result: ProduceRequestResult,
        created_ms: float,
        pool: BufferPool | None = None,
    ) -> None:
        """Create an open batch.

        Args:
            buffer: Its first memory.
            result: Its outcome.
            created_ms: Current time.
            pool: Owner of the buffer, for a batch whose memory counts towards ``buffer.memory``.
        """
        self.state = _NEW
        self.earlier_attempts = _NOT_WRITTEN
        self.builder = RecordBatchBuilder(buffer)
        self.result = result
        self.topic_partition = result.topic_partition
        self.buffer: bytearray | None = buffer
        self._pool = pool
        self._limit = max(len(buffer), 0 if pool is None else pool.poolable_size)
        self.created_ms = created_ms
        self.drained_ms = created_ms
        self.is_filled = False
        self.attempts = 0
        self.last_error: KafkaError | None = None
        self.send_order: tuple[int, ...] = ()
        self.retry_at_ms = created_ms
        self.producer = NO_PRODUCER
        self.base_sequence = NO_SEQUENCE
        self.last_sequence = NO_SEQUENCE
        self.record_count = 0
        self.size_in_bytes = 0
        self.uncompressed_size = 0
        self.sealed: memoryview | None = None
        self.trace: object = None

    def __repr__(self) -> str:
        return (
            f"ProducerBatch({self.topic_partition}, records={self.builder.record_count}, "
            f"sequence={self.base_sequence}, attempts={self.attempts})"
        )

    @property
    def has_sequence(self) -> bool:
        """Whether the batch has a sequence."""
        return self.base_sequence != NO_SEQUENCE

    def current_size(self) -> int:
        """Return the bytes of the batch, also while it is open."""
        return self.size_in_bytes or self.builder.size_in_bytes

    def close(self) -> None:
        """Set the count and size when no more records are appended. Idempotent."""
        if not self.record_count:
            self.record_count = self.builder.record_count
            self.size_in_bytes = self.uncompressed_size = self.builder.size_in_bytes

    def apply(self, event: BatchEvent) -> None:
        """Move to the next state.

        Raises:
            IllegalStateError: There is no such transition.
        """
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise IllegalStateError(f"{self}: no transition for {event.name} in {self.state.name}")
        self.state = following

    def request_failed(self, outcome: AppendOutcome) -> None:
        """Record the outcome of a request that ended with an error."""
        self.earlier_attempts = attempts_after(self.earlier_attempts, outcome)
        self.apply(BatchEvent.RETURNED)

    def fail(self, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> None:
        """Fail the batch, which may be in flight; see `ProduceRequestResult.fail`."""
        self.apply(BatchEvent.FAILED)
        self.result.fail(error, record_errors)

    def possibly_written(self) -> bool:
        """Return whether the log may hold the batch: it was sent, and not rejected since."""
        return self.state is BatchState.IN_FLIGHT or self.earlier_attempts in _UNKNOWN

    def is_in_doubt(self) -> bool:
        """Return whether to report a failed batch as possibly written.

        A broker that returns OUT_OF_ORDER_SEQUENCE_NUMBER may have lost its record of the batch: at
        shutdown Apache Kafka stores only the last one of a producer (ProducerStateManager).
        """
        return self.possibly_written() or self.earlier_attempts is EarlierAttempts.DENIED

    def is_full(self) -> bool:
        """Return whether even the smallest record would not fit, after `grow`."""
        return self.builder.size_in_bytes + _SMALLEST_RECORD > self._limit

    def grow(self) -> bool:
        """Move an open batch to a larger buffer; return False if it is at its limit.

        The limit is ``batch.size``, or less if the memory is used up.
        """
        buffer, pool = self.buffer, self._pool
        if buffer is None or pool is None or len(buffer) >= self._limit:
            return False
        larger = pool.try_allocate(pool.size_for(len(buffer) + 1))
        if larger is None:
            return False
        self.builder.move_to(larger)
        self.buffer = larger
        pool.deallocate(buffer)
        return True

    def assign(self, producer: ProducerIdAndEpoch, base_sequence: int) -> None:
        """Set or change the producer id, epoch and first sequence."""
        if self.producer == producer and self.base_sequence == base_sequence:
            return
        self.producer = producer
        self.base_sequence = base_sequence
        self.last_sequence = (base_sequence + self.record_count - 1) & MAX_SEQUENCE
        if self.sealed is not None:
            self.sealed = self.builder.restamp(producer.producer_id, producer.epoch, base_sequence)

    def seal(
        self, compression: CompressionType, level: int | None, *, transactional: bool = False
    ) -> memoryview:
        """Return the bytes to send, compressing them on the first call."""
        if self.sealed is None:
            self.sealed = self.builder.seal(
                self.producer.producer_id,
                self.producer.epoch,
                self.base_sequence,
                transactional=transactional,
                compression=compression,
                level=level,
            )
            self.size_in_bytes = len(self.sealed)
        return self.sealed

    def release(self) -> bytearray | None:
        """Drop the buffer, which no socket reads any more; return it once if the pool owns it."""
        buffer, self.buffer = self.buffer, None
        self.sealed = None
        return None if self._pool is None else buffer

    def split(
        self, new_result: Callable[[TopicPartition], ProduceRequestResult]
    ) -> list["ProducerBatch"]:
        """Split the batch, which has at least two records, into two.

        The futures of its records continue in the results of the parts.
        """
        records = self._records()
        middle = len(records) // 2
        parts = [
            self._part(records[:middle], new_result(self.topic_partition), 0),
            self._part(records[middle:], new_result(self.topic_partition), 1),
        ]
        self.result.continue_in([0, middle], [part.result for part in parts])
        return parts

    def split_off_rejected(
        self,
        errors: Mapping[int, KafkaError],
        new_result: Callable[[TopicPartition], ProduceRequestResult],
    ) -> tuple[list["ProducerBatch"], list[RejectedRecords]]:
        """Split the batch into batches without the rejected records, and the rejected ones.

        The futures of its records continue in the results of both; the caller fails those of the
        rejected records.
        """
        parts: list[ProducerBatch] = []
        rejected: list[RejectedRecords] = []
        first_indexes: list[int] = []
        results: list[ProduceRequestResult] = []
        rows = groupby(enumerate(self._records()), lambda row: row[0] in errors)
        for position, (is_rejected, run) in enumerate(rows):
            records = list(run)
            first = records[0][0]
            first_indexes.append(first)
            results.append(new_result(self.topic_partition))
            if is_rejected:
                own = {index - first: errors[index] for index, _ in records}
                rejected.append(RejectedRecords(results[-1], own))
            else:
                parts.append(self._part([each for _, each in records], results[-1], position))
        self.result.continue_in(first_indexes, results)
        return parts, rejected

    def _records(self) -> list[Record]:
        if self.sealed is None:
            raise IllegalStateError("split: the batch was never sent")
        return RecordBatch(self.sealed).records()

    def _part(
        self, records: Sequence[Record], result: ProduceRequestResult, position: int
    ) -> "ProducerBatch":
        size = RECORD_BATCH_OVERHEAD + sum(
            record_size_upper_bound(record.key, record.value, record.headers) for record in records
        )
        part = ProducerBatch(bytearray(size), result, self.created_ms)
        part.send_order = (*self.send_order, position)
        part.earlier_attempts = attempts_after(self.earlier_attempts, BatchEvent.SPLIT)
        for record in records:
            if part.builder.append(record.timestamp, record.key, record.value, record.headers) < 0:
                raise IllegalStateError(f"{self}: a part has no space for its records")
        part.close()
        return part
