"""Reads a stretch of a partition, straight into Arrow."""

from collections.abc import Iterator

import pyarrow as pa

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaTimeoutError
from kclient.common.runtime import Runtime
from kclient.consumer.consumer import Consumer
from kclient.consumer.errors import LogTruncationError, OffsetsOutOfRangeError
from kclient.spark.offsets.span import Span
from kclient.spark.options.source_options import ReadSettings
from kclient.spark.source.data_loss import DataLoss
from kclient.spark.source.present_topic_id import present_topic_id
from kclient.spark.source.schema import to_spark

# After so long without a record the position is looked at: what is left of a range may hold none,
# but ends of transactions and what compaction left of removed batches.
_GLANCE_S = 0.05
# After so long without progress the log's ends are looked up: it may have been cut off.
_SUSPICION_MS = 1000.0
# A partition is deleted when so many look-ups in a row, with a pause between them, did not find
# it: one that was just created is not known to every broker yet.
_LOOKS_FOR_GONE = 3
_PAUSE_S = 0.5


class RangeReader:
    """Reads ranges of partitions with one consumer, one after the other.

    A range ends where its last offset is passed. It may hold fewer records than offsets, and no
    record at its end.

    Args:
        consumer: Reads for this reader alone.
        settings: How to read.
        runtime: Door to the world.
    """

    def __init__(self, consumer: Consumer, settings: ReadSettings, runtime: Runtime) -> None:
        self._consumer = consumer
        self._settings = settings
        self._runtime = runtime
        self._clock = runtime.clock
        self._position = 0
        self._moved_ms = 0.0
        self._suspicious_ms = 0.0
        self._patience_ms = _SUSPICION_MS
        self._looks_in_vain = 0
        self._topic_id = ""

    def read(self, span: Span, topic_id: str = "") -> Iterator[pa.RecordBatch]:
        """Yield the records of a range, in order.

        Args:
            span: The range.
            topic_id: Id of the topic that was planned; empty where it is not known.

        Raises:
            DataLossError: Some are gone, and ``failOnDataLoss`` is set.
            KafkaTimeoutError: Nothing came for ``kafkaConsumer.pollTimeoutMs``.
            KafkaError: The topic may not be read, or a batch is broken.
        """
        self._topic_id = topic_id
        self._go_to(span)
        while self._position < span.end:
            batch = self._next(span)
            if batch is not None and batch.num_rows:
                whole = to_spark(
                    _before(batch, span.end), include_headers=self._settings.include_headers
                )
                yield from _slices(whole, self._settings.batch_rows)
                # The time that Spark spent with the rows is not the broker's.
                self._note_progress()

    # --- inside

    def _go_to(self, span: Span) -> None:
        consumer, partition = self._consumer, span.partition
        self._position = span.start
        self._note_progress()
        if not consumer.assignment():
            # A new one connects here, with all the time there is, and says why if it cannot.
            while self._position < span.end and self._log_bounds(span) is None:
                self._pause()
        if consumer.assignment() != {partition}:
            consumer.assign([partition])
            consumer.seek(partition, span.start)
        elif consumer.position(partition) != span.start:
            consumer.seek(partition, span.start)
        self._note_progress()

    def _pause(self) -> None:
        pause = self._runtime.tasks.condition()
        with pause:
            pause.wait(_PAUSE_S)

    def _next(self, span: Span) -> pa.RecordBatch | None:
        before = self._position
        try:
            batch = self._consumer.poll_columns(_GLANCE_S)
            self._position = self._behind(span, batch)
        except (OffsetsOutOfRangeError, LogTruncationError):
            batch = None
            self._look_at_the_log(span)
            self._consumer.seek(span.partition, self._position)
        if batch is not None and batch.num_rows and self._is_of_another_topic(span, before):
            batch = None
        if self._position > before:
            self._note_progress()
        else:
            self._worry(span)
        return batch

    def _behind(self, span: Span, batch: pa.RecordBatch) -> int:
        """Return where reading goes on behind what came."""
        try:
            return self._consumer.position(span.partition, _GLANCE_S)
        except KafkaTimeoutError:
            # A new leader is asked whether its log is the same; it may be far away.
            return batch.column("offset")[-1].as_py() + 1 if batch.num_rows else self._position

    def _note_progress(self) -> None:
        self._moved_ms = self._clock.monotonic_ms()
        self._suspicious_ms = self._moved_ms + _SUSPICION_MS
        self._looks_in_vain = 0

    def _worry(self, span: Span) -> None:
        """Do what is due when nothing comes."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._moved_ms >= self._settings.poll_timeout_ms:
            raise self._timed_out(span)
        if now_ms >= self._suspicious_ms:
            self._suspicious_ms = now_ms + _SUSPICION_MS
            before = self._position
            self._look_at_the_log(span)
            if self._position > before:  # else an answer may be on its way, from far away
                self._consumer.seek(span.partition, self._position)

    def _look_at_the_log(self, span: Span) -> None:
        """Pass over what is not there any more, or fail."""
        bounds = self._log_bounds(span)
        if bounds is None:
            return
        start, end = bounds
        goal = self._position
        if start > self._position:
            goal = min(start, span.end)
            self._lose(span, goal, f"the log now begins at {start}")
        elif end < span.end:
            # What is left before the end may still come; what should come after it will not.
            goal = span.end if end <= self._position else self._position
            if goal == span.end:
                self._lose(span, goal, f"the log now ends at {end}")
        self._position = goal

    def _log_bounds(self, span: Span) -> tuple[int, int] | None:
        """Return the log's start and end offset; None if no broker reports them in time.

        The rest of a deleted partition is skipped, or the task fails.
        """
        partition = span.partition
        over_ms = self._moved_ms + self._settings.poll_timeout_ms
        left_ms = max(0.0, over_ms - self._clock.monotonic_ms())
        wait_s = min(left_ms, self._patience_ms) / 1000.0
        try:
            start = self._consumer.beginning_offsets([partition], wait_s)[partition]
            end = self._consumer.end_offsets([partition], wait_s)[partition]
        except UnknownTopicOrPartitionError:
            # By the metadata of one broker; the admin client below may send to another.
            pass
        except KafkaTimeoutError:
            if left_ms <= self._patience_ms:
                raise
            self._patience_ms *= 2  # the brokers may be far away
        else:
            self._looks_in_vain = 0
            return start, end
        if present_topic_id(self._settings.consumer, partition, self._runtime) is not None:
            self._looks_in_vain = 0
            return None
        self._looks_in_vain += 1
        if self._looks_in_vain >= _LOOKS_FOR_GONE:
            self._lose(span, span.end, "the partition does not exist any more")
            self._position = span.end
        return None

    def _is_of_another_topic(self, span: Span, before: int) -> bool:
        """Return whether what came is not of the topic that was planned, but of one of its name."""
        partition, planned = span.partition, self._topic_id
        if not planned or self._consumer.topic_id(partition.topic) in {None, planned}:
            return False
        self._position = before
        now = present_topic_id(self._settings.consumer, partition, self._runtime)
        if now not in {"", planned}:
            self._lose(span, span.end, "its topic was deleted and created anew")
            self._position = span.end
        # Else the consumer is of a task before, and knows the topic that was there then.
        self._consumer.seek(partition, self._position)
        return True

    def _lose(self, span: Span, goal: int, why: str) -> None:
        loss = DataLoss(fail=self._settings.fail_on_data_loss)
        loss.note(span.partition, goal - self._position, why)
        loss.settle()

    def _timed_out(self, span: Span) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"{span.partition}: nothing came at offset {self._position} for "
            f"{self._settings.poll_timeout_ms} ms, expected records up to {span.end}; "
            "see kafkaConsumer.pollTimeoutMs"
        )


def _slices(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of about one size, none of more than `most` rows."""
    count = -(-batch.num_rows // most)
    if count <= 1:
        yield batch
        return
    for number in range(count):
        start = batch.num_rows * number // count
        yield batch.slice(start, batch.num_rows * (number + 1) // count - start)


def _before(batch: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """Return the rows whose offsets are below `end`."""
    offsets = batch.column("offset")
    if offsets[-1].as_py() < end:
        return batch
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high) // 2
        if offsets[middle].as_py() < end:
            low = middle + 1
        else:
            high = middle
    return batch.slice(0, low)
