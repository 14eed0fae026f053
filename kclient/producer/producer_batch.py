"""A batch of records for one partition, from the first append to its outcome."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.types import TopicPartition
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.hot_path import OpenBatch
from kclient.producer.produce_request_result import ProduceRequestResult
from kclient.record import (
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    Header,
    Record,
    RecordBatch,
    RecordBatchBuilder,
    record_size_upper_bound,
)

NO_SEQUENCE = -1
_SMALLEST_RECORD = 7
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1

AppendMany = Callable[
    [
        int | Sequence[int],
        Sequence[bytes | None] | None,
        Sequence[bytes | None],
        int,
        Sequence[Header] | None,
    ],
    int,
]


class ProducerIdAndEpoch(NamedTuple):
    """The identity under which the brokers tell a producer's batches apart."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_valid(self) -> bool:
        """Whether a broker gave this id out."""
        return self.producer_id != NO_PRODUCER_ID


class RefusedRecords(NamedTuple):
    """Neighbouring records of a batch that a broker refused by name.

    Attributes:
        result: Their outcome.
        errors: Why, by the record's index in that result.
    """

    result: ProduceRequestResult
    errors: dict[int, KafkaError]


class ProducerBatch(OpenBatch):
    """Records on their way to one partition (Kafka: ProducerBatch).

    Until the batch is drained, its queue's lock guards it; from then on only the sender touches
    it. The outcome is in `result`, which outlives the batch.

    Attributes:
        append_many: The builder's own method for many records at once.
        created_ms: When the first record came; ``delivery.timeout.ms`` counts from here.
        is_closed: Whether a record did not fit, so that no more are added (Kafka:
            ProducerBatch.closeForRecordAppends).
        is_begun: Whether the batch was taken in, so that it will have an outcome.
        attempts: How often the batch came back and was queued again.
        on_wire: Whether a request that holds the batch awaits its response.
        outcome_unknown: Whether the broker may have taken the batch although it did not say so.
        was_unknown: Whether that was so until a broker returned OUT_OF_ORDER_SEQUENCE_NUMBER.
        split_in_the_dark: Whether the batch is part of one whose outcome was unknown. Brokers know
            batches by their first and last sequence, so a part does not show whether they have it.
        send_order: Place among the batches of its partition, given by the first drain; empty
            before. The parts of a split batch sort right behind it.
        retry_at_ms: When a batch that came back may be sent again.
        last_error: Why the batch came back last, if it did.
        pooled: Whether the buffer counts towards ``buffer.memory``.
    """

    __slots__ = (
        "_capacity",
        "_sealed",
        "_uncompressed_size",
        "append_many",
        "attempts",
        "base_sequence",
        "buffer",
        "created_ms",
        "drained_ms",
        "is_begun",
        "is_closed",
        "last_error",
        "on_wire",
        "outcome_unknown",
        "pooled",
        "producer",
        "retry_at_ms",
        "send_order",
        "split_in_the_dark",
        "topic_partition",
        "was_unknown",
    )

    def __init__(
        self,
        buffer: bytearray,
        result: ProduceRequestResult,
        created_ms: float,
        *,
        pooled: bool = True,
    ) -> None:
        super().__init__(result, RecordBatchBuilder(buffer), DeliveryFuture)
        self.topic_partition = result.topic_partition
        self.buffer: bytearray | None = buffer
        self._capacity = len(buffer)
        self.append_many: AppendMany = self.builder.append_many
        self.created_ms = created_ms
        self.drained_ms = created_ms
        self.is_begun = False
        self.is_closed = False
        self.attempts = 0
        self.last_error: KafkaError | None = None
        self.on_wire = False
        self.outcome_unknown = False
        self.was_unknown = False
        self.split_in_the_dark = False
        self.send_order: tuple[int, ...] = ()
        self.retry_at_ms = created_ms
        self.pooled = pooled
        self.producer = ProducerIdAndEpoch()
        self.base_sequence = NO_SEQUENCE
        self._uncompressed_size = 0
        self._sealed: memoryview | None = None

    def __repr__(self) -> str:
        return (
            f"ProducerBatch({self.topic_partition}, records={self.record_count}, "
            f"sequence={self.base_sequence}, attempts={self.attempts})"
        )

    @property
    def record_count(self) -> int:
        """Number of records."""
        return self.builder.record_count

    @property
    def has_sequence(self) -> bool:
        """Whether the batch was given its place in the producer's sequence."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record."""
        return advance_sequence(self.base_sequence, self.record_count - 1)

    @property
    def uncompressed_size(self) -> int:
        """Bytes of the batch before compression."""
        return self._uncompressed_size or self.builder.size_in_bytes

    @property
    def size_in_bytes(self) -> int:
        """Bytes on the wire once sealed; before that, the bytes without compression."""
        return len(self._sealed) if self._sealed is not None else self.builder.size_in_bytes

    def possibly_written(self) -> bool:
        """Return whether the log may hold the batch: it was sent, and not refused since."""
        return self.on_wire or self.outcome_unknown

    def is_in_doubt(self) -> bool:
        """Return what to report of a batch that fails: whether the log may hold it.

        A broker that returns OUT_OF_ORDER_SEQUENCE_NUMBER may have forgotten the batch: at its
        shutdown Apache Kafka notes only the last one of a producer (ProducerStateManager).
        """
        return self.possibly_written() or self.was_unknown

    def is_full(self) -> bool:
        """Return whether not even the smallest record would fit."""
        return self.builder.size_in_bytes + _SMALLEST_RECORD > self._capacity

    def assign(self, producer: ProducerIdAndEpoch, base_sequence: int) -> None:
        """Give the batch its producer id, epoch and first sequence, or other ones than before."""
        if self.producer == producer and self.base_sequence == base_sequence:
            return
        self.producer = producer
        self.base_sequence = base_sequence
        if self._sealed is not None:
            self._sealed = self.builder.restamp(producer.producer_id, producer.epoch, base_sequence)

    def seal(self, compression: CompressionType, level: int | None) -> memoryview:
        """Return the bytes for the wire; compression happens once, however often they are sent."""
        if self._sealed is None:
            self._uncompressed_size = self.builder.size_in_bytes
            self._sealed = self.builder.seal(
                self.producer.producer_id,
                self.producer.epoch,
                self.base_sequence,
                compression=compression,
                level=level,
            )
        return self._sealed

    def sealed(self) -> memoryview | None:
        """Return the bytes for the wire if they were made."""
        return self._sealed

    def release(self) -> bytearray | None:
        """Give up the buffer, once; the caller has made sure that no socket reads it."""
        buffer, self.buffer = self.buffer, None
        self._sealed = None
        return buffer

    def split(
        self, new_result: Callable[[TopicPartition], ProduceRequestResult]
    ) -> list["ProducerBatch"]:
        """Return two batches with the records of this one, which has at least two.

        Their results take over the futures of this batch's records.
        """
        records = self._records()
        middle = len(records) // 2
        parts = [
            self._part(records[:middle], new_result(self.topic_partition), 0),
            self._part(records[middle:], new_result(self.topic_partition), 1),
        ]
        self.result.continue_in([0, middle], [part.result for part in parts])
        return parts

    def part_with(
        self,
        errors: Mapping[int, KafkaError],
        new_result: Callable[[TopicPartition], ProduceRequestResult],
    ) -> tuple[list["ProducerBatch"], list[RefusedRecords]]:
        """Return batches with the records that have no error, and those that have one.

        The results of both take over the futures of this batch's records; those of the refused
        ones are still to be told.
        """
        parts: list[ProducerBatch] = []
        refused: list[RefusedRecords] = []
        first_indexes: list[int] = []
        results: list[ProduceRequestResult] = []
        rows = groupby(enumerate(self._records()), lambda row: row[0] in errors)
        for position, (is_refused, run) in enumerate(rows):
            records = list(run)
            first = records[0][0]
            first_indexes.append(first)
            results.append(new_result(self.topic_partition))
            if is_refused:
                own = {index - first: errors[index] for index, _ in records}
                refused.append(RefusedRecords(results[-1], own))
            else:
                parts.append(self._part([each for _, each in records], results[-1], position))
        self.result.continue_in(first_indexes, results)
        return parts, refused

    def _records(self) -> list[Record]:
        if self._sealed is None:
            raise IllegalStateError("split: the batch was never sent")
        return RecordBatch(self._sealed).records()

    def _part(
        self, records: Sequence[Record], result: ProduceRequestResult, position: int
    ) -> "ProducerBatch":
        size = RECORD_BATCH_OVERHEAD + sum(
            record_size_upper_bound(record.key, record.value, record.headers) for record in records
        )
        part = ProducerBatch(bytearray(size), result, self.created_ms, pooled=False)
        part.send_order = (*self.send_order, position)
        part.outcome_unknown = part.split_in_the_dark = self.outcome_unknown
        for record in records:
            part.builder.append(record.timestamp, record.key, record.value, record.headers)
        return part


def advance_sequence(sequence: int, count: int) -> int:
    """Return the sequence `count` records later; it wraps from 2**31 - 1 to 0."""
    return (sequence + count) & 0x7FFFFFFF
