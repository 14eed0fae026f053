"""The producer: its public methods."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, NoReturn, Self, Unpack

from kclient.client.cluster import PartitionInfo
from kclient.common.arguments import check_timeout
from kclient.common.config_def import merged
from kclient.common.errors import (
    ClosedError,
    ForkedClientError,
    InvalidTypeError,
    KafkaError,
)
from kclient.common.event_loop import refuse_in_event_loop
from kclient.common.foreign_names import WithForeignNames, refuse_keywords
from kclient.common.interrupts import deferred_signals, signals_take_effect
from kclient.common.log_context import LogContext
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Clock, Runtime
from kclient.common.types import check_topic_name
from kclient.common.waiting import Steps, run_steps
from kclient.network.system_runtime import system_runtime
from kclient.producer.batch_delivery import BatchDelivery, Segment
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.foreign_names import PRODUCER_NAMES, SEND_MANY
from kclient.producer.hot_path import SendPath
from kclient.producer.interceptors import ProducerInterceptors
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_config import (
    PRODUCER_CONFIG,
    OptionsWithoutSerializers,
    SerializerOf,
    keep_bytes,
)
from kclient.producer.producer_core import ProducerCore
from kclient.producer.record_preparer import RecordPreparer
from kclient.producer.record_tracer import RecordTrace, RecordTracer
from kclient.producer.rows import Rows, SingleRecord, all_bytes
from kclient.producer.send_arguments import (
    K_contra,
    ProducerRecord,
    SerializedKey,
    SerializedValue,
    V_contra,
    check_headers,
    check_on_delivery,
    check_partition,
    check_rows,
    check_timestamps,
)
from kclient.producer.topic_info import PartitionQueue, TopicInfo
from kclient.record import Header, encode_headers, record_size_upper_bound

if TYPE_CHECKING:
    import pyarrow as pa

_numbers = itertools.count(1)


class Producer(
    ProcessBound,
    SendPath[TopicInfo, K_contra, V_contra],
    metaclass=WithForeignNames,
    foreign_names=PRODUCER_NAMES,
):
    """Sends records to topics (Kafka: KafkaProducer). Safe for use by many threads.

    Records are collected in batches and sent by a background thread, so `send` returns a future at
    once. It blocks only while the topic's partitions are unknown or ``buffer.memory`` is full, at
    most ``max.block.ms`` in all.

    `send` itself raises errors found before the record is queued: invalid arguments, a failing
    serializer, a record too large, no metadata or memory in time. Later errors are reported by the
    future and `on_delivery`.

    ``Producer[K, V]`` names the types of keys and values. A type checker infers them from the
    serializers: the type of their argument; bytes-like without serializers. If the serializers are
    in a dict of options, annotate the variable as ``Producer[Any, Any]``.

    Options are Kafka's, with dots as underscores: ``Producer(bootstrap_servers="localhost:9092",
    linger_ms=20)``; or a dict with dotted names. Defaults are those of the Java client 4.x, but
    for ``batch_size``, which is 256 KiB. Options that Kafka counts in milliseconds are
    milliseconds; timeouts of methods are seconds.
    """

    _closed = True  # for __del__, if __init__ raises

    def __init__(
        self: "Producer[SerializedKey, SerializedValue]",
        config: Mapping[str, object] | None = None,
        /,
        *,
        # The default gives type checkers the type of keys and values without a serializer.
        key_serializer: SerializerOf[SerializedKey] | None = keep_bytes,  # type: ignore[assignment]
        value_serializer: SerializerOf[SerializedValue] | None = keep_bytes,  # type: ignore[assignment]
        runtime: Runtime | None = None,
        **options: Unpack[OptionsWithoutSerializers],
    ) -> None:
        """Create a producer and start its thread, which connects in the background.

        Args:
            config: Options by dotted name.
            key_serializer: Converts keys to bytes; without one, keys are bytes-like or None.
            value_serializer: Converts values to bytes; without one, values are bytes-like or None.
            runtime: Clock, tasks and sockets, for tests and simulations; the system's by default.
            options: Options by keyword.

        Raises:
            ConfigError: An option is unknown or invalid, or two contradict each other.
        """
        serializers = {"key_serializer": key_serializer, "value_serializer": value_serializer}
        given = {
            name: each
            for name, each in serializers.items()
            if each is not None and each is not keep_bytes
        }
        settings = PRODUCER_CONFIG.parse(merged(config, {**options, **given}))
        runtime = system_runtime() if runtime is None else runtime
        name = settings.client_id or f"kclient-producer-{next(_numbers)}"
        log_context = LogContext("Producer", {"clientId": name})
        core = ProducerCore(settings, runtime, name, log_context)
        super().__init__(
            core.topics,
            partial(_append_to_new_batch, core, runtime.clock, settings.max_block_ms),
            runtime.clock.wall_ns,
        )
        self._core = core
        self._servers = ",".join(f"{host}:{port}" for host, port in settings.bootstrap_servers)
        self._process_id = runtime.tasks.process_id
        self._created_in = self._process_id()
        self._log = log_context.logger(__name__)
        problem = None if settings.enable_idempotence else settings.idempotence_problem()
        if problem is not None:
            self._log.info("idempotence is off: %s", problem)
        self._clock = runtime.clock
        self._max_block_ms: float = settings.max_block_ms
        self._interceptors = ProducerInterceptors(settings.interceptor_classes, log_context)
        self._preparer = RecordPreparer(
            settings.key_serializer,
            settings.value_serializer,
            self._interceptors,
            runtime.clock.wall_ms,
        )
        self._ending = runtime.tasks.lock()  # guards: _ended
        self._ended = False  # so that only one caller of close() closes the interceptors
        self._tracer: RecordTracer | None = None
        self._trace_next = False
        # Bytes can be appended as they are, and partitions are chosen by Kafka's rules.
        self._has_fast_path = core.is_partitioner_default and not self._preparer.changes_records
        self._fast_path_enabled = self._has_fast_path
        try:
            with deferred_signals():
                core.start()
                self._closed = False
        except BaseException:  # also of a signal handler, at the end of the block
            self.close(0)
            raise

    # -- sending ----------------------------------------------------------------------------------

    send = SendPath.send  # the hot path, in kclient/producer/hot_path/reference.py and _speed.pyx

    def _send_slow(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture:
        if self._closed or self._process_id() != self._created_in:
            self._refuse("send")
        check_on_delivery(on_delivery)
        trace = None if self._tracer is None else self._begin_trace(self._tracer)
        record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
        try:
            prepared = self._preparer.prepare(record, trace)
            # Before any wait: the error does not depend on a reachable cluster.
            self._core.check_size(
                record_size_upper_bound(prepared.key, prepared.value, prepared.headers)
            )
            info, left_ms = self._topic(prepared.topic, prepared.partition)
            queue = self._core.choose_queue(info, prepared.partition, prepared.key)
            reported = self._interceptors.before(on_delivery)
            if trace is not None:
                trace.partitioned()
                reported = trace.until_delivery(reported)
            return _append(
                self._core,
                self._clock,
                left_ms,
                info,
                queue,
                prepared.timestamp_ms,
                prepared.key,
                prepared.value,
                encode_headers(prepared.headers),
                reported,
            )
        except KafkaError as error:
            if trace is not None:
                trace.refused()
            if isinstance(error, ClosedError):
                self._refuse("send")
            self._interceptors.on_acknowledgement(None, error)
            raise

    def _begin_trace(self, tracer: RecordTracer) -> RecordTrace | None:
        """Return the trace of this record; the fast path serves those that are not traced."""
        if not (tracer.traces_all or self._trace_next):
            return None
        self._trace_next = False
        self._set_fast_path(tracer)
        return tracer.start()

    def _set_fast_path(self, tracer: RecordTracer | None) -> None:
        traces_all = tracer is not None and tracer.traces_all
        self._fast_path_enabled = self._has_fast_path and not (traces_all or self._closed)

    def _topic(self, topic: str, partition: int | None) -> tuple[TopicInfo, float]:
        """Return a topic with known partitions, and the time that `send` may still wait."""
        info = self._core.known_topic(topic, partition)
        if info is not None:
            return info, self._max_block_ms
        return run_steps(self._core.await_topic(topic, partition), self._clock)

    def send_many(
        self,
        topic: str,
        values: Iterable[V_contra | None],
        keys: Iterable[K_contra | None] | None = None,
        *,
        headers: Sequence[Header] | None = None,
        partition: int | None = None,
        timestamps_ms: int | Iterable[int] | None = None,
        **_unknown: Never,
    ) -> BatchDelivery:
        """Queue many records of one topic at a fraction of the cost of as many `send` calls.

        Records of one partition keep their order.

        Args:
            topic: Topic name.
            values: Values, as in `send`.
            keys: Keys, one for each value; None for none.
            headers: Headers of every record.
            partition: Partition of all records; if left out, as in `send`.
            timestamps_ms: One timestamp for all, or one for each; the current time if left out.

        Returns:
            The pending outcome of all. If the call raises midway, records queued before are still
            delivered; a note of the error has their number.

        Raises:
            KafkaError: As `send`.
        """
        if _unknown:
            refuse_keywords("Producer.send_many", _unknown, SEND_MANY)
        if self._closed or self._process_id() != self._created_in:
            self._refuse("send_many")
        rows = check_rows("values", values)
        key_rows = None if keys is None else check_rows("keys", keys, len(rows))
        times = check_timestamps(timestamps_ms, len(rows))
        if self._preparer.changes_records:
            return self._send_one_by_one(topic, rows, key_rows, headers, partition, times)
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
        try:
            run_steps(
                self._core.append_rows(
                    topic, partition, Rows(times, key_bytes, value_bytes, header_list), segments
                ),
                self._clock,
            )
        except ClosedError:
            self._refuse("send_many")
        except KafkaError as error:
            _note_queued(error, segments, len(rows))
            raise
        return BatchDelivery(segments, self._clock)

    def _send_one_by_one(
        self,
        topic: str,
        values: list[Any],
        keys: list[Any] | None,
        headers: Sequence[Header] | None,
        partition: int | None,
        times: int | list[int] | None,
    ) -> BatchDelivery:
        segments: list[Segment] = []
        try:
            for row, value in enumerate(values):
                future = self.send(
                    topic,
                    value,
                    None if keys is None else keys[row],
                    headers=headers,
                    partition=partition,
                    timestamp_ms=times[row] if isinstance(times, list) else times,
                )
                segments.append(future.segment())
        except KafkaError as error:
            if segments:
                _note_queued(error, segments, len(values))
            raise
        return BatchDelivery(segments, self._clock)

    def send_arrow(self, topic: str | None, batch: "pa.RecordBatch | pa.Table") -> BatchDelivery:
        """Queue the records of an Arrow batch or table, without an object for each record.

        Columns are identified by name, and only ``value`` is required:

        - ``value``, ``key``: binary or string of any kind; null is a tombstone, or no key.
        - ``partition``: integers; for null, the partition is chosen as in `send`.
        - ``timestamp``: timestamps of any unit and zone, or milliseconds since the epoch as
          integers; null is the current time.
        - ``headers``: lists of structs with the fields ``key`` and ``value``, or maps; null is
          none.
        - ``topic``: topic names; only if `topic` is None.

        Every row is checked before the first is queued. In a partition, rows that have a key or
        name the partition keep their order, and so do those without both. All data is copied. With
        a serializer or an interceptor, records are sent one by one, and a column with a serializer
        may have any type.

        Args:
            topic: Topic of all records; None for the column ``topic``.
            batch: ``pyarrow.RecordBatch`` or ``pyarrow.Table``.

        Returns:
            The pending outcome of all. If the call raises midway, records queued before are still
            delivered; a note of the error has their number.

        Raises:
            ConfigError: pyarrow is not installed.
            InvalidTypeError: `batch` or a column has an unsupported type.
            InvalidArgumentError: A column is unknown, missing or malformed, or a row has an invalid
                value; the text names both.
            RecordTooLargeError: A row is larger than ``max.request.size`` or all memory.
            KafkaError: As `send`.
        """
        if self._closed or self._process_id() != self._created_in:
            self._refuse("send_arrow")
        from kclient.producer import arrow_records  # noqa: PLC0415 (imported if used)

        batches = arrow_records.arrow_batches(topic, batch)
        if self._preparer.changes_records:
            return self._send_rows_one_by_one(topic, batches)
        now_ms = self._clock.wall_ms()
        parts = arrow_records.arrow_parts(topic, batches, now_ms, self._core.check_columns)
        segments: list[Segment] = []
        try:
            run_steps(self._core.append_columns(parts, segments), self._clock)
        except ClosedError:
            self._refuse("send_arrow")
        except KafkaError as error:
            taken = sum(segment.count for segment in segments)
            count = sum(part.columns.length for part in parts)
            error.add_note(f"send_arrow: {taken} of {count} records were queued before")
            raise
        return BatchDelivery(segments, self._clock)

    def _send_rows_one_by_one(self, topic: str | None, batches: list[Any]) -> BatchDelivery:
        from kclient.producer import arrow_records  # noqa: PLC0415 (imported if used)

        keys, values = self._preparer.serializes_keys, self._preparer.serializes_values
        parts, count = [], 0
        for batch in batches:
            parts.append(arrow_records.ArrowRows.of(topic, batch, count, keys=keys, values=values))
            count += batch.num_rows
        segments: list[Segment] = []
        try:
            for row in itertools.chain.from_iterable(parts):
                future = self.send(
                    row.topic,
                    row.value,
                    row.key,
                    headers=row.headers,
                    partition=row.partition,
                    timestamp_ms=row.timestamp_ms,
                )
                segments.append(future.segment())
        except KafkaError as error:
            error.add_note(f"send_arrow: {len(segments)} of {count} records were queued before")
            raise
        return BatchDelivery(segments, self._clock)

    # -- metadata and metrics ---------------------------------------------------------------------

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic, waiting for them at most ``max.block.ms``.

        Raises:
            KafkaTimeoutError: No broker described the topic in time.
            EventLoopError: Called inside a running event loop.
            ClosedError: The producer was closed.
        """
        if self._closed or self._process_id() != self._created_in:
            self._refuse("partitions_for")
        check_topic_name(topic)
        refuse_in_event_loop("partitions_for", "producer.partitions_for, …")
        try:
            self._topic(topic, None)
        except ClosedError:
            self._refuse("partitions_for")
        return list(self._core.cluster().partitions_for(topic))

    def metrics(self) -> dict[str, float]:
        """Return the metrics by Kafka's names.

        Raises:
            ForkedClientError: The producer was created in another process.
        """
        if self._process_id() != self._created_in:
            self._refuse("metrics")
        return self._core.metrics()

    # -- tracing ----------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """The ``client.id`` that brokers receive."""
        return self._core.client_id

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Trace records, or none any more; used by `kclient.journey.Journey`."""
        self._core.set_tracer(tracer)
        self._tracer = tracer
        self._set_fast_path(tracer)

    def trace_next(self) -> None:
        """Trace the next record given to `send`, unless all are traced. For any thread."""
        if self._tracer is not None:
            self._trace_next = True
            self._fast_path_enabled = False

    def end_traces(self) -> None:
        """Trace no further record; those in flight still are, until `set_tracer`."""
        self._tracer = None
        self._trace_next = False
        self._set_fast_path(None)

    # -- flushing and closing ---------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Send queued records without linger, and wait until each has its outcome.

        Failed records count as done; their futures raise the error.

        Args:
            timeout: Seconds to wait at most; None is limited by ``delivery.timeout.ms`` only.

        Raises:
            KafkaTimeoutError: Records are in flight at the end of the timeout.
            ProducerFatalError: The producer stopped permanently; `__cause__` is the reason.
            IllegalStateError: Called in the producer's own thread, as in a delivery callback.
            EventLoopError: It would wait inside a running event loop.
            ClosedError: The producer was closed.
        """
        timeout_ms = check_timeout(timeout, default_ms=math.inf)
        if self._closed or self._process_id() != self._created_in:
            self._refuse("flush")
        if self._core.failure() is not None:
            self._refuse("flush")
        self._core.check_not_in_callback("flush()")
        if timeout_ms:
            refuse_in_event_loop("flush", "producer.flush, …")
        run_steps(self._core.flush(self._clock.monotonic_ms() + timeout_ms), self._clock)

    def close(self, timeout: float | None = None) -> None:
        """Send queued records, then stop the thread and close the connections.

        Further calls only wait until the producer is closed.

        Args:
            timeout: Seconds to wait for deliveries; then records without an outcome fail, and a
                warning with their number is logged. None is limited by ``delivery.timeout.ms``.

        Raises:
            IllegalStateError: Called in the producer's own thread, as in a delivery callback.
        """
        timeout_ms = check_timeout(timeout, default_ms=math.inf)
        if self._process_id() != self._created_in:
            self._closed = True  # the thread and the connections are the parent's
            self._fast_path_enabled = False
            return
        self._core.check_not_in_callback("close()")
        self._closed = True
        self._fast_path_enabled = False
        run_steps(self._close(self._clock.monotonic_ms() + timeout_ms), self._clock)

    def _close(self, until_ms: float) -> Steps[None]:
        lost = yield from self._core.close(until_ms)
        with self._ending:
            first, self._ended = not self._ended, True
        if not first:
            return
        if lost:
            cause = self._core.failure_cause()
            self._log.warning("close: %d record(s) had no outcome and failed%s", lost, cause)
        with signals_take_effect():  # code of the application
            self._interceptors.close()

    def __enter__(self) -> Self:
        """Return the producer; the end of the block closes it.

        Raises:
            ClosedError: The producer was closed.
        """
        if self._closed or self._process_id() != self._created_in:
            self._refuse("with")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # a type checker rejects len(producer)

        def __len__(self) -> NoReturn:
            """Refuse `len`, which returns the number of queued records in confluent-kafka.

            Raises:
                InvalidTypeError: Always.
            """
            raise InvalidTypeError(
                "a producer has no length; flush(timeout) waits for queued records, and "
                "metrics()['buffer-available-bytes'] is the free part of buffer.memory"
            )

        def __bool__(self) -> bool:
            """Return True, without `__len__`."""
            return True

    def __repr__(self) -> str:
        core: ProducerCore | None = getattr(self, "_core", None)  # missing if __init__ raises
        if core is None:
            return "<Producer>"
        closed = ", closed" if self._closed else ""
        return f"<Producer {core.client_id!r} of {self._servers}{closed}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit, modules are cleared before this is called.
        if self._closed or self._process_id() != self._created_in:
            return
        self._core.initiate_close()
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def _refuse(self, call: str) -> NoReturn:
        """Raise the error for a call of an unusable producer.

        Raises:
            ForkedClientError: It was created in another process.
            ProducerFatalError: It stopped permanently.
            ClosedError: It was closed.
        """
        if self._process_id() != self._created_in:
            raise ForkedClientError(
                f"{call}: the producer was created in process {self._created_in}, this is "
                f"{self._process_id()}; create one after fork()"
            )
        failure = self._core.failure()
        if failure is not None:
            # The error is shared by all calls: its traceback would grow with every raise.
            raise failure.with_traceback(None)
        raise ClosedError(f"{call}: the producer is closed")


def _append(
    core: ProducerCore,
    clock: Clock,
    max_wait_ms: float,
    info: TopicInfo,
    queue: PartitionQueue | None,
    *record: Any,
) -> DeliveryFuture:
    """Append a record, given as the fields of `SingleRecord`, and return its future."""
    target = queue or info.sticky_queue
    future = None if target is None else target.try_append(*record)
    if future is not None:
        return future
    return _append_to_new_batch(core, clock, max_wait_ms, info, queue, target, *record)


def _append_to_new_batch(
    core: ProducerCore,
    clock: Clock,
    max_wait_ms: float,
    info: TopicInfo,
    queue: PartitionQueue | None,
    missed: PartitionQueue | None,
    *record: Any,
) -> DeliveryFuture:
    rows = SingleRecord(*record)
    return run_steps(core.append_to_new_batch(info, queue, missed, rows, max_wait_ms), clock)


def _note_queued(error: KafkaError, segments: Iterable[Segment], count: int) -> None:
    taken = sum(segment.count for segment in segments)
    error.add_note(f"send_many: {taken} of {count} records were queued before")
