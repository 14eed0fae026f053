"""Calls of a producer that append records, in steps."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.cluster import PartitionInfo
from kclient.client.network_client import NetworkClient
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.common.interrupts import signals_take_effect
from kclient.common.metrics import Sensor
from kclient.common.runtime import Clock
from kclient.common.types import check_topic_name
from kclient.common.waiting import Steps
from kclient.producer.batch_delivery import BatchDelivery, Segment
from kclient.producer.callback_runner import OWN_THREAD, CallbackRunner
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import UnknownPartitionError
from kclient.producer.interceptors import ProducerInterceptors
from kclient.producer.partition_chooser import PartitionChooser
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.record_preparer import RecordPreparer
from kclient.producer.record_tracer import RecordTrace, RecordTracer
from kclient.producer.rows import ColumnRows, Rows, SingleRecord, all_bytes
from kclient.producer.send_arguments import (
    ProducerRecord,
    check_headers,
    check_on_delivery,
    check_partition,
    check_rows,
    check_timestamps,
)
from kclient.producer.topic_info import PartitionQueue, TopicInfo
from kclient.record import Header, RecordColumns, encode_headers, record_size_upper_bound

if TYPE_CHECKING:
    import pyarrow as pa

    from kclient.producer.arrow_records import ArrowPart


SendArguments = tuple[Any, Any, Any, Any, Any, Any]
"""Topic, value, key, headers, partition and timestamp, as the application gave them."""


class PreparedRecord:
    """A record that was checked and serialized, and is not appended yet.

    Attributes:
        topic: Topic name.
        partition: Partition that the application named, or None.
        key: Serialized key, for the partitioner.
        row: What is appended: timestamp, key, value, encoded headers and delivery callback.
        trace: Trace of the record, if it is traced.
        info: The topic, once its partitions are known.
        queue: Queue of the partition that was chosen; None is the sticky one.
    """

    __slots__ = ("info", "key", "partition", "queue", "row", "topic", "trace")

    def __init__(
        self,
        topic: str,
        partition: int | None,
        row: tuple[int, bytes | None, bytes | None, bytes, OnDelivery | None],
        trace: RecordTrace | None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.key = row[1]
        self.row = row
        self.trace = trace
        self.info: TopicInfo | None = None
        self.queue: PartitionQueue | None = None


class RecordAppender:
    """Checks and serializes records, and appends them to batches.

    Attributes:
        topics: Topics whose present partitions are known, by name; `send` looks them up here.
            Every change of the cluster removes them, and so does a fork in its child.
        interceptors: Interceptors of the application.
        has_fast_path: Whether `send` may append bytes as they are, and choose partitions by Kafka's
            rules.
        tracer: Traces records, or None.
        trace_next: Whether the next record is traced.
    """

    def __init__(
        self,
        config: ProducerConfig,
        clock: Clock,
        topics: dict[str, TopicInfo],
        metadata: ProducerMetadata,
        client: NetworkClient,
        accumulator: RecordAccumulator,
        runner: CallbackRunner,
        interceptors: ProducerInterceptors,
        metadata_wait_ns: Sensor,
        refuse: Callable[[str], NoReturn],
        topic_hint: Callable[[], str],
        on_refused: Callable[[KafkaError], None],
    ) -> None:
        """Create the calls.

        Args:
            config: Options.
            clock: Clock.
            topics: See the attribute.
            metadata: Metadata of the cluster.
            client: Network client, woken for metadata.
            accumulator: Receives the records.
            runner: Detects calls in the sender's thread.
            interceptors: Interceptors of the application.
            metadata_wait_ns: Records the nanoseconds that calls waited for metadata.
            refuse: Raises the error of a call of a closed producer, given its name.
            topic_hint: Returns what to do if partitions are unknown, for the error.
            on_refused: Called with the error of a record that is not sent.
        """
        self.topics = topics
        self.interceptors = interceptors
        self.tracer: RecordTracer | None = None
        self.trace_next = False
        self._clock = clock
        self._max_block_ms: float = config.max_block_ms
        self._chooser = PartitionChooser(
            config.partitioner_class, ignore_keys=config.partitioner_ignore_keys
        )
        self._preparer = RecordPreparer(
            config.key_serializer, config.value_serializer, interceptors, clock.wall_ms
        )
        self.has_fast_path = self._chooser.is_default and not self._preparer.changes_records
        self._metadata = metadata
        self._client = client
        self._accumulator = accumulator
        self._runner = runner
        self._metadata_wait_ns = metadata_wait_ns
        self._refuse = refuse
        self._topic_hint = topic_hint
        self._on_refused = on_refused

    # -- one record -------------------------------------------------------------------------------

    def prepare(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None = None,
    ) -> PreparedRecord:
        """Check and serialize a record; then `try_append` or `append` must be called.

        Raises:
            KafkaError: As `Producer.send`, for what is found without waiting.
        """
        check_on_delivery(on_delivery)
        trace = None if self.tracer is None else self._begin_trace(self.tracer)
        record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
        try:
            prepared = self._preparer.prepare(record, trace)
            # Before any wait: the error does not depend on a reachable cluster.
            self._accumulator.check_size(
                record_size_upper_bound(prepared.key, prepared.value, prepared.headers)
            )
        except KafkaError as error:
            self._report(error, trace)
            raise
        reported = self.interceptors.before(on_delivery)
        if trace is not None:
            reported = trace.until_delivery(reported)
        row = (
            prepared.timestamp_ms,
            prepared.key,
            prepared.value,
            encode_headers(prepared.headers),
            reported,
        )
        return PreparedRecord(prepared.topic, prepared.partition, row, trace)

    def try_append(self, record: PreparedRecord) -> DeliveryFuture | None:
        """Append a record to an open batch; return None if that needs `append`.

        Raises:
            KafkaError: The partitioner of the application failed.
        """
        try:
            info = self.known_topic(record.topic, record.partition)
            if info is None:
                return None
            self._choose(record, info)
            target = record.queue or info.sticky_queue
            return None if target is None else target.try_append(*record.row)
        except KafkaError as error:
            self._report(error, record.trace)
            raise

    def append(self, record: PreparedRecord) -> Steps[DeliveryFuture]:
        """Append a record, waiting for its partitions and for memory at most ``max.block.ms``.

        Raises:
            KafkaError: As `Producer.send`.
        """
        try:
            info, left_ms = record.info, self._max_block_ms
            if info is None:
                info, left_ms = yield from self.await_topic(record.topic, record.partition)
                with signals_take_effect():  # the partitioner is code of the application
                    self._choose(record, info)
                target = record.queue or info.sticky_queue
                future = None if target is None else target.try_append(*record.row)
                if future is not None:
                    return future
            missed = record.queue or info.sticky_queue
            row = SingleRecord(*record.row)
            return (
                yield from self._accumulator.append_to_new_batch(
                    info, record.queue, missed, row, left_ms
                )
            )
        except KafkaError as error:
            self._report(error, record.trace)
            raise

    def append_to_new_batch(
        self,
        info: TopicInfo,
        queue: PartitionQueue | None,
        missed: PartitionQueue | None,
        *row: Any,
    ) -> Steps[DeliveryFuture]:
        """Append a record, given as the fields of `SingleRecord`, to a new batch."""
        try:
            return (
                yield from self._accumulator.append_to_new_batch(
                    info, queue, missed, SingleRecord(*row), self._max_block_ms
                )
            )
        except KafkaError as error:
            self._on_refused(error)
            raise

    def _choose(self, record: PreparedRecord, info: TopicInfo) -> None:
        record.queue = self._chooser.queue(info, record.partition, record.key)
        record.info = info
        if record.trace is not None:
            record.trace.partitioned()

    def _report(self, error: KafkaError, trace: RecordTrace | None) -> None:
        """Report a record that is not sent."""
        if trace is not None:
            trace.refused()
        if isinstance(error, ClosedError):
            self._refuse("send")
        self._on_refused(error)
        self.interceptors.on_acknowledgement(None, error)

    def traces(self) -> bool:
        """Return whether the next record is traced."""
        return self.tracer is not None and (self.tracer.traces_all or self.trace_next)

    def end_traces(self) -> None:
        """Trace no further record."""
        self.tracer, self.trace_next = None, False

    def _begin_trace(self, tracer: RecordTracer) -> RecordTrace | None:
        if not (tracer.traces_all or self.trace_next):
            return None
        self.trace_next = False
        return tracer.start()

    # -- many records -----------------------------------------------------------------------------

    def send_many(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamps_ms: int | Iterable[int] | None,
    ) -> Steps[BatchDelivery]:
        """Append many records of one topic; see `Producer.send_many`."""
        rows = check_rows("values", values)
        key_rows = None if keys is None else check_rows("keys", keys, len(rows))
        times = check_timestamps(timestamps_ms, len(rows))
        if self._preparer.changes_records:
            arguments = _rows_one_by_one(topic, rows, key_rows, headers, partition, times)
            return (yield from self._one_by_one("send_many", arguments, len(rows)))
        check_topic_name(topic)
        check_partition(partition)
        header_list = check_headers(headers)
        value_bytes = all_bytes("value", rows)
        key_bytes = None if key_rows is None else all_bytes("key", key_rows)
        if not rows:
            return BatchDelivery([], self._clock)
        if times is None:
            times = self._clock.wall_ms()
        segments: list[Segment] = []
        steps = self._append_rows(
            topic, partition, Rows(times, key_bytes, value_bytes, header_list), segments
        )
        return (yield from self._collected("send_many", steps, segments, len(rows)))

    def send_arrow(
        self, topic: str | None, batch: "pa.RecordBatch | pa.Table"
    ) -> Steps[BatchDelivery]:
        """Append the rows of an Arrow batch or table; see `Producer.send_arrow`."""
        from kclient.producer import arrow_records  # noqa: PLC0415 (imported if used)

        batches = arrow_records.arrow_batches(topic, batch)
        if self._preparer.changes_records:
            keys, texts = self._preparer.serializes_keys, self._preparer.serializes_values
            found, count = [], 0
            for each in batches:
                found.append(
                    arrow_records.ArrowRows.of(topic, each, count, keys=keys, values=texts)
                )
                count += each.num_rows
            arguments = (
                (row.topic, row.value, row.key, row.headers, row.partition, row.timestamp_ms)
                for row in chain.from_iterable(found)
            )
            return (yield from self._one_by_one("send_arrow", arguments, count))
        parts = arrow_records.arrow_parts(
            topic, batches, self._clock.wall_ms(), self._check_columns
        )
        segments: list[Segment] = []
        count = sum(part.columns.length for part in parts)
        steps = self._append_columns(parts, segments)
        return (yield from self._collected("send_arrow", steps, segments, count))

    def _one_by_one(
        self, call: str, records: Iterable[SendArguments], count: int
    ) -> Steps[BatchDelivery]:
        """Append records that a serializer or an interceptor may change."""
        segments: list[Segment] = []
        return (
            yield from self._collected(call, self._append_each(records, segments), segments, count)
        )

    def _append_each(
        self, records: Iterable[SendArguments], segments: list[Segment]
    ) -> Steps[None]:
        for arguments in records:
            with signals_take_effect():  # code of the application
                prepared = self.prepare(*arguments)
            future = self.try_append(prepared)
            if future is None:
                future = yield from self.append(prepared)
            segments.append(future.segment())

    def _collected(
        self, call: str, steps: Steps[None], segments: list[Segment], count: int
    ) -> Steps[BatchDelivery]:
        """Run steps that append; note in an error how many records were queued before it."""
        try:
            yield from steps
        except ClosedError:
            self._refuse(call)
        except GeneratorExit:
            raise
        except BaseException as error:
            taken = sum(segment.count for segment in segments)
            if isinstance(error, KafkaError) or taken:
                error.add_note(f"{call}: {taken} of {count} records were queued before")
            if isinstance(error, KafkaError):
                self._on_refused(error)
            raise
        return BatchDelivery(segments, self._clock)

    def _check_columns(self, columns: RecordColumns, first_row: int) -> None:
        self._accumulator.check_columns(columns, first_row)

    def _append_rows(
        self, topic: str, partition: int | None, rows: Rows, segments: list[Segment]
    ) -> Steps[None]:
        info, left_ms = yield from self.await_topic(topic, partition)
        with signals_take_effect():  # the partitioner is code of the application
            groups = self._chooser.rows_by_queue(info, partition, rows)
        yield from self._append_groups(info, groups, left_ms, segments)

    def _append_columns(self, parts: list["ArrowPart"], segments: list[Segment]) -> Steps[None]:
        most_ms = self._max_block_ms
        ready = []
        for part in parts:
            info, left_ms = yield from self.await_topic(part.topic, part.last_partition)
            most_ms = min(most_ms, left_ms)
            with signals_take_effect():  # the partitioner is code of the application
                ready.append((info, part, self._chooser.choose_each(info, part)))
        for info, part, chosen in ready:
            groups = self._chooser.columns_by_queue(info, part, chosen)
            yield from self._append_groups(info, groups, most_ms, segments)

    def _append_groups(
        self,
        info: TopicInfo,
        groups: Iterable[tuple[PartitionQueue | None, Rows | ColumnRows]],
        max_wait_ms: float,
        segments: list[Segment],
    ) -> Steps[None]:
        append = self._accumulator.append
        for queue, rows in groups:
            while not rows.all_taken():
                segments.append((yield from append(info, queue, rows, max_wait_ms)))

    # -- topics -----------------------------------------------------------------------------------

    def partitions_for(self, topic: str) -> Steps[list[PartitionInfo]]:
        """Return the partitions of a topic, waiting for them at most ``max.block.ms``."""
        check_topic_name(topic)
        try:
            yield from self.await_topic(topic, None)
        except ClosedError:
            self._refuse("partitions_for")
        return list(self._metadata.cluster().partitions_for(topic))

    def known_topic(self, topic: str, partition: int | None) -> TopicInfo | None:
        """Return a topic whose partitions are known, with the given one if it is not None."""
        info = self.topics.get(topic)
        if info is None:
            return None
        if not (info.partition_count if partition is None else info.partition_count > partition):
            return None
        info.used = True
        return info

    def await_topic(self, topic: str, partition: int | None) -> Steps[tuple[TopicInfo, float]]:
        """Return a topic once its partitions are known (Kafka: KafkaProducer.waitOnMetadata).

        Args:
            topic: Topic name, checked.
            partition: Partition that must exist, or None.

        Returns:
            The topic, and the milliseconds that are left of ``max.block.ms``.

        Raises:
            KafkaTimeoutError: No broker described the topic, or the partition, in time;
                BootstrapError if no broker was reachable. Metadata was requested, also if
                ``max.block.ms`` is 0.
            UnknownPartitionError: The topic has fewer partitions.
            TopicAuthorizationError: Not authorized to access the topic.
            ClosedError: The producer was closed meanwhile.
        """
        known = self.known_topic(topic, partition)
        if known is not None:
            return known, self._max_block_ms
        started_ms = self._clock.monotonic_ms()
        try:
            info = yield from self._described(topic, partition, started_ms)
        finally:
            waited_ms = self._clock.monotonic_ms() - started_ms
            self._metadata_wait_ns.record(waited_ms * 1e6)
        info.used = True
        self.topics[topic] = info
        if not info.is_current(self._metadata.cluster()):
            self.topics.pop(topic, None)  # the change may have come before the line above
        return info, max(self._max_block_ms - waited_ms, 0.0)

    def _described(self, topic: str, partition: int | None, started_ms: float) -> Steps[TopicInfo]:
        now_ms = started_ms
        info = self._accumulator.topic_info(topic)
        asked_for_partition = False
        while True:
            self._metadata.add_topic(topic, now_ms)
            cluster = self._metadata.cluster()
            count = info.partition_count if info.is_current(cluster) else info.refresh(cluster)
            if count and (partition is None or partition < count):
                return info
            self._metadata.maybe_raise_error_for_topic(topic)
            if partition is not None and count and asked_for_partition:
                raise UnknownPartitionError(topic, partition, count)
            asked_for_partition = count > 0
            # Also if this call does not wait: the next one may find the topic.
            version = self._metadata.request_update_for_topic(topic)
            self._client.wakeup()
            end_ms = started_ms + self._max_block_ms
            if now_ms >= end_ms or self._runner.inside():
                raise self._timeout(topic, partition, count, now_ms - started_ms)
            yield from self._metadata.await_update(version, end_ms)
            now_ms = self._clock.monotonic_ms()

    def _timeout(
        self, topic: str, partition: int | None, count: int, waited_ms: float
    ) -> KafkaTimeoutError:
        missed = f"not known within {waited_ms:.0f} ms"
        if self._runner.inside():
            missed = (
                f"not known yet, and not waited for in {OWN_THREAD}: it requests them; retry "
                "later, or send from another thread"
            )
        what = f"topic {topic!r}: its partitions are {missed}"
        if count:
            what = f"topic {topic!r}: it has {count} partitions, partition {partition} is {missed}"
        what += self._topic_hint()
        unreached = self._client.bootstrap_error()
        if self._metadata.cluster().is_bootstrap and unreached is not None:
            error: KafkaTimeoutError = BootstrapError(f"{what}; {unreached}")
            error.__cause__ = unreached.__cause__
            return error
        reason = self._metadata.topic_error(topic)
        error = KafkaTimeoutError(f"{what}" if reason is None else f"{what}; {reason}")
        error.__cause__ = reason
        return error


def _rows_one_by_one(
    topic: str,
    values: list[Any],
    keys: list[Any] | None,
    headers: Sequence[Header] | None,
    partition: int | None,
    times: int | list[int] | None,
) -> Iterable[SendArguments]:
    """Yield the arguments of `RecordAppender.prepare` for each row, without the callback."""
    for row, value in enumerate(values):
        key = None if keys is None else keys[row]
        time = times[row] if isinstance(times, list) else times
        yield topic, value, key, headers, partition, time
