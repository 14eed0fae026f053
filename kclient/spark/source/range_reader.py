"""Reader of offset ranges into Arrow batches."""

import logging
from collections.abc import Iterator, Mapping

import pyarrow as pa

from kclient.admin.admin_client import AdminClient
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaTimeoutError, RetriableError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.errors import LogTruncationError, OffsetsOutOfRangeError
from kclient.spark.common.offsets import Span
from kclient.spark.options.kafka_config import admin_config
from kclient.spark.options.source_options import ReadSettings
from kclient.spark.source.data_loss import DataLoss
from kclient.spark.source.schema import to_spark

_log = logging.getLogger(__name__)

# After this wait without a record the consumer's position is checked: the rest of a range may hold
# only transaction markers and the remains of batches that compaction removed.
_POLL_TIMEOUT_S = 0.05
# After this time without progress the log's bounds are looked up: records may have been deleted.
_STALL_CHECK_MS = 1000.0
# A partition counts as deleted when this many lookups in a row, with a pause between them, did not
# find it: a new partition is not known to every broker yet.
_LOOKUPS_UNTIL_DELETED = 3
_PAUSE_S = 0.5
_TOPIC_LOOKUP_TIMEOUT_S = 5.0


class RangeReader:
    """Reads ranges with one consumer, one after the other.

    A range is complete when the position has passed its last offset. It may have fewer records than
    offsets, and no record at its last offsets.

    Args:
        consumer: A consumer that nothing else uses.
        settings: Settings of the tasks.
        runtime: Clock, tasks and sockets.
    """

    def __init__(self, consumer: Consumer, settings: ReadSettings, runtime: Runtime) -> None:
        self._consumer = consumer
        self._settings = settings
        self._runtime = runtime
        self._clock = runtime.clock
        self._tasks = runtime.tasks
        self._position = 0
        self._progress_ms = 0.0
        self._next_check_ms = 0.0
        self._lookup_timeout_ms = _STALL_CHECK_MS
        self._failed_lookups = 0
        self._topic_id = ""

    def read(self, span: Span, topic_id: str = "") -> Iterator[pa.RecordBatch]:
        """Yield the records of a range, in order.

        Args:
            span: The range.
            topic_id: Id of the topic at planning time; empty if unknown.

        Raises:
            DataLossError: Records are gone, and ``failOnDataLoss`` is set.
            KafkaTimeoutError: No records for ``kafkaConsumer.pollTimeoutMs``.
            KafkaError: Reading the topic is not authorized, or a batch is corrupt.
        """
        self._topic_id = topic_id
        self._seek(span)
        while self._position < span.end:
            batch = self._next(span)
            if batch is not None and batch.num_rows:
                whole = to_spark(
                    _before(batch, span.end), include_headers=self._settings.include_headers
                )
                yield from _slices(whole, self._settings.batch_rows)
                # Spark's time with the rows does not count as time without progress.
                self._record_progress()

    def _seek(self, span: Span) -> None:
        consumer, partition = self._consumer, span.partition
        self._position = span.start
        self._record_progress()
        if not consumer.assignment():
            # Connect a new consumer here, with the whole timeout; errors state the reason.
            while self._position < span.end and self._log_bounds(span) is None:
                self._pause()
        if consumer.assignment() != {partition}:
            consumer.assign([partition])
            consumer.seek(partition, span.start)
        elif consumer.position(partition) != span.start:
            consumer.seek(partition, span.start)
        self._record_progress()

    def _pause(self) -> None:
        pause = self._tasks.condition()
        with pause:
            pause.wait(_PAUSE_S)

    def _next(self, span: Span) -> pa.RecordBatch | None:
        before = self._position
        try:
            batch = self._consumer.poll_columns(_POLL_TIMEOUT_S)
            self._position = self._next_position(span, batch)
        except (OffsetsOutOfRangeError, LogTruncationError):
            batch = None
            self._check_log_bounds(span)
            self._consumer.seek(span.partition, self._position)
        if batch is not None and batch.num_rows and self._is_from_recreated_topic(span, before):
            batch = None
        if self._position > before:
            self._record_progress()
        else:
            self._check_stalled(span)
        return batch

    def _next_position(self, span: Span, batch: pa.RecordBatch) -> int:
        """Return the position after the records of `batch`."""
        try:
            return self._consumer.position(span.partition, _POLL_TIMEOUT_S)
        except KafkaTimeoutError:
            # The consumer is still validating its position with a new leader.
            return batch.column("offset")[-1].as_py() + 1 if batch.num_rows else self._position

    def _record_progress(self) -> None:
        self._progress_ms = self._clock.monotonic_ms()
        self._next_check_ms = self._progress_ms + _STALL_CHECK_MS
        self._failed_lookups = 0

    def _check_stalled(self, span: Span) -> None:
        """Check timeout and log bounds while there is no progress."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._progress_ms >= self._settings.poll_timeout_ms:
            raise self._timed_out(span)
        if now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + _STALL_CHECK_MS
            before = self._position
            self._check_log_bounds(span)
            if self._position > before:  # otherwise keep the fetch in flight: it may be slow
                self._consumer.seek(span.partition, self._position)

    def _check_log_bounds(self, span: Span) -> None:
        """Skip offsets that are no longer in the log, or fail."""
        bounds = self._log_bounds(span)
        if bounds is None:
            return
        start, end = bounds
        target = self._position
        if start > self._position:
            target = min(start, span.end)
            self._report_loss(span, target, f"the log now starts at {start}")
        elif end < span.end:
            # Records before the log end can still be read; those after it no longer exist.
            target = span.end if end <= self._position else self._position
            if target == span.end:
                self._report_loss(span, target, f"the log now ends at {end}")
        self._position = target

    def _log_bounds(self, span: Span) -> tuple[int, int] | None:
        """Return the log start and end offset; None if no broker reports them in time.

        The rest of a deleted partition is skipped, or the task fails.
        """
        partition = span.partition
        deadline_ms = self._progress_ms + self._settings.poll_timeout_ms
        left_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
        wait_s = min(left_ms, self._lookup_timeout_ms) / 1000.0
        try:
            start = self._consumer.beginning_offsets([partition], wait_s)[partition]
            end = self._consumer.end_offsets([partition], wait_s)[partition]
        except UnknownTopicOrPartitionError:
            # By the metadata of one broker; the admin client below may send to another.
            pass
        except KafkaTimeoutError:
            if left_ms <= self._lookup_timeout_ms:
                raise
            self._lookup_timeout_ms *= 2  # the connection may be slow
        else:
            self._failed_lookups = 0
            return start, end
        if current_topic_id(self._settings.consumer, partition, self._runtime) is not None:
            self._failed_lookups = 0
            return None
        self._failed_lookups += 1
        if self._failed_lookups >= _LOOKUPS_UNTIL_DELETED:
            self._report_loss(span, span.end, "the partition no longer exists")
            self._position = span.end
        return None

    def _is_from_recreated_topic(self, span: Span, before: int) -> bool:
        """Return whether the records are from a recreated topic, not from the planned one."""
        partition, planned = span.partition, self._topic_id
        if not planned or self._consumer.topic_id(partition.topic) in {None, planned}:
            return False
        self._position = before
        current = current_topic_id(self._settings.consumer, partition, self._runtime)
        if current not in {"", planned}:
            self._report_loss(span, span.end, "its topic was deleted and recreated")
            self._position = span.end
        # Otherwise the consumer, reused from an earlier task, has the metadata of a deleted topic.
        self._consumer.seek(partition, self._position)
        return True

    def _report_loss(self, span: Span, end: int, why: str) -> None:
        loss = DataLoss(fail=self._settings.fail_on_data_loss)
        loss.record(span.partition, end - self._position, why)
        loss.report()

    def _timed_out(self, span: Span) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"{span.partition}: no records at offset {self._position} for "
            f"{self._settings.poll_timeout_ms} ms, expected records up to {span.end}; "
            "see kafkaConsumer.pollTimeoutMs"
        )


def _slices(batch: pa.RecordBatch, max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in slices of similar size, each of at most `max_rows` rows."""
    count = -(-batch.num_rows // max_rows)
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


def current_topic_id(
    config: Mapping[str, str], partition: TopicPartition, runtime: Runtime
) -> str | None:
    """Return the current id of a partition's topic; None if the partition does not exist.

    The id is empty if the brokers do not report ids, and if none of them responds.

    Args:
        config: Configuration of a consumer, by dotted name.
        partition: The partition.
        runtime: Clock, tasks and sockets.

    Raises:
        KafkaError: The brokers refuse the request.
    """
    with AdminClient(admin_config(config), runtime=runtime) as admin:
        try:
            found = admin.describe_topics(partition.topic, timeout=_TOPIC_LOOKUP_TIMEOUT_S)
        except UnknownTopicOrPartitionError:
            return None
        except (KafkaTimeoutError, RetriableError) as error:
            _log.info("lookup of the topic id of %s failed: %s", partition, error)
            return ""
    topic = found[partition.topic]
    exists = any(one.partition == partition.partition for one in topic.partitions)
    return topic.topic_id or "" if exists else None
