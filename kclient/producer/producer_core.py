"""Core of a producer: its components, and its calls in steps."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import MetadataSettings
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.common.errors import BootstrapError, KafkaError, KafkaTimeoutError
from kclient.common.event_loop import is_inside_event_loop
from kclient.common.interrupts import signals_take_effect
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime, Task
from kclient.common.waiting import Steps, TaskWait, perform, run_steps
from kclient.producer.batch_delivery import Segment
from kclient.producer.batch_drainer import oldest_batch
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import OWN_THREAD, CallbackRunner
from kclient.producer.errors import UnknownPartitionError
from kclient.producer.partition_chooser import PartitionChooser
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import AccumulatorSettings, RecordAccumulator
from kclient.producer.rows import ColumnRows, Rows
from kclient.producer.sender import Sender, SenderSettings
from kclient.producer.topic_info import PartitionQueue, SlowNodes, TopicInfo
from kclient.producer.transaction_manager import TransactionManager
from kclient.record import RecordColumns

if TYPE_CHECKING:
    from kclient.producer.arrow_records import ArrowPart

T = TypeVar("T")

EXIT_TIMEOUT = 5.0
"""Seconds that the exit of the process waits for unsent records."""

_CLIENT_ID = "kclient-producer"
_FORCED_TIMEOUT_MS = 500.0


class ProducerCore:
    """The calls of a producer, in steps that any driver can run (`kclient.common.waiting`).

    It has no reference to the producer, so that an unreferenced producer is collected.

    Attributes:
        topics: Topics whose present partitions are known, by name; `send` looks them up here.
            Every change of the cluster removes them, and so does a fork in its child.
        is_partitioner_default: Whether partitions are chosen by Kafka's rules.
        cluster: Returns the present view of the cluster, as `Metadata.cluster`.
        append_to_new_batch: Appends a record, as `RecordAccumulator.append_to_new_batch`.
        client_id: ``client.id``, or the default.
        set_tracer: Traces records, as `Sender.set_tracer`.
        metrics: Returns the metrics by Kafka's names.
    """

    def __init__(
        self, config: ProducerConfig, runtime: Runtime, name: str, log_context: LogContext
    ) -> None:
        """Create the components, without connecting or starting a thread.

        Args:
            config: Options.
            runtime: Clock, tasks and sockets.
            name: Name of the producer.
            log_context: Prefix of log lines.
        """
        self.topics: dict[str, TopicInfo] = {}
        self.client_id = config.client_id or _CLIENT_ID
        self._name = name
        self._log = log_context.logger(__name__)
        self._clock = runtime.clock
        self._tasks = runtime.tasks
        self._process_id = runtime.tasks.process_id()
        self._max_block_ms: float = config.max_block_ms
        self._chooser = PartitionChooser(
            config.partitioner_class, ignore_keys=config.partitioner_ignore_keys
        )
        self.is_partitioner_default = self._chooser.is_default
        metrics = _metrics(config, runtime)
        self.metrics = metrics.snapshot
        self._metadata_wait_ns, self._flush_ns = metrics.metadata_wait_ns, metrics.flush_ns
        self._runner = CallbackRunner(runtime.tasks, metrics.callback_errors, log_context)
        self._metadata = _metadata(config, runtime, log_context, self.topics.clear)
        self._client = _client(config, runtime, self._metadata, log_context)
        transactions = TransactionManager(log_context) if config.enable_idempotence else None
        self._settings = _accumulator_settings(config)
        self._pool = _pool(config, runtime, metrics, self._client.wakeup)
        self._accumulator = RecordAccumulator(
            self._settings,
            self._pool,
            runtime,
            self._runner,
            _backoff(config, runtime),
            SlowNodes(config.partitioner_availability_timeout_ms),
            self._client.wakeup,
            oldest_batch if transactions is None else transactions.next_batch,
            on_idle=self._forget_topic,
        )
        self._sender = Sender(
            _sender_settings(config, runtime),
            self._client,
            self._metadata,
            self._accumulator,
            transactions,
            metrics,
            runtime,
            log_context,
        )
        self.set_tracer = self._sender.set_tracer
        self.cluster = self._metadata.cluster
        self.append_to_new_batch = self._accumulator.append_to_new_batch
        _show_levels(metrics, self._pool, self._client, self._metadata)
        self._task: Task | None = None
        self._unregister: Sequence[Callable[[], None]] = ()

    # -- reading ----------------------------------------------------------------------------------

    def failure(self) -> KafkaError | None:
        """Return the error that stopped the sender permanently, if there is one."""
        return self._sender.failure

    def check_not_in_callback(self, call: str) -> None:
        """Reject a call that would wait for the sender in the sender's thread, as in a callback.

        Raises:
            IllegalStateError: The caller is in the sender's thread.
        """
        self._runner.check_not_inside(call)

    def known_topic(self, topic: str, partition: int | None) -> TopicInfo | None:
        """Return a topic whose partitions are known, with the given one if it is not None."""
        info = self.topics.get(topic)
        if info is None:
            return None
        if not (info.partition_count if partition is None else info.partition_count > partition):
            return None
        info.used = True
        return info

    def _forget_topic(self, topic: str) -> None:
        self.topics.pop(topic, None)

    # -- appending --------------------------------------------------------------------------------

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
        if is_inside_event_loop():
            what += (
                "; in an event loop, await asyncio.to_thread(producer.partitions_for, topic) "
                "before the first send, and set max_block_ms=0"
            )
        unreached = self._client.bootstrap_error()
        if self._metadata.cluster().is_bootstrap and unreached is not None:
            error: KafkaTimeoutError = BootstrapError(f"{what}; {unreached}")
            error.__cause__ = unreached.__cause__
            return error
        reason = self._metadata.topic_error(topic)
        error = KafkaTimeoutError(f"{what}" if reason is None else f"{what}; {reason}")
        error.__cause__ = reason
        return error

    def check_size(self, record_size: int) -> None:
        """Reject a record that does not fit into a request; see `AccumulatorSettings`."""
        self._settings.check_size(record_size)

    def check_columns(self, columns: RecordColumns, first_row: int) -> None:
        """Reject columns with a row that is malformed or too large; see `AccumulatorSettings`."""
        self._settings.check_columns(columns, first_row, self._pool.total)

    def choose_queue(
        self, info: TopicInfo, partition: int | None, key: bytes | None
    ) -> PartitionQueue | None:
        """Return the queue of a record, or None for the sticky one; see `PartitionChooser`."""
        return self._chooser.queue(info, partition, key)

    def append_rows(
        self, topic: str, partition: int | None, rows: Rows, segments: list[Segment]
    ) -> Steps[None]:
        """Append rows to the partitions of a topic.

        Args:
            topic: Topic name, checked.
            partition: Partition of all rows, or None to choose it for each.
            rows: The rows.
            segments: Receives the segments that were appended, also before an error.
        """
        info, left_ms = yield from self.await_topic(topic, partition)
        with signals_take_effect():  # the partitioner is code of the application
            groups = self._chooser.rows_by_queue(info, partition, rows)
        yield from self._append_groups(info, groups, left_ms, segments)

    def append_columns(self, parts: list["ArrowPart"], segments: list[Segment]) -> Steps[None]:
        """Append columns to the partitions of their topics; `segments` as for `append_rows`."""
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

    # -- flushing and closing ---------------------------------------------------------------------

    def start(self) -> None:
        """Start the sender's loop; if that fails, no connection is left open."""
        self._unregister = (
            self._tasks.at_exit(self._at_exit),
            self._tasks.after_fork(self.topics.clear),
        )
        try:
            self._task = self._tasks.run(
                f"{self._name}-sender",
                self._runner.as_sender(self._sender.steps(self._forget_process)),
                self._clock,
            )
        except BaseException:
            self._forget_process()
            self._sender.force_close()
            perform(self._sender.steps(), self._clock)
            raise

    def _forget_process(self) -> None:
        for unregister in self._unregister:
            unregister()

    def flush(self, until_ms: float) -> Steps[None]:
        """Send queued records without linger, and wait for their outcomes.

        Raises:
            KafkaTimeoutError: Not all have an outcome at `until_ms`.
        """
        started_ms = self._clock.monotonic_ms()
        try:
            yield from self._accumulator.flush(until_ms)
        finally:
            self._flush_ns.record((self._clock.monotonic_ms() - started_ms) * 1e6)

    def initiate_close(self) -> None:
        """Send queued records and end the sender, without waiting."""
        self._sender.initiate_close()

    def close(self, until_ms: float) -> Steps[int]:
        """Send queued records and end the sender; those without an outcome at `until_ms` fail.

        Returns:
            The number of records without an outcome.
        """
        self._sender.initiate_close()
        if self._task is not None:
            yield TaskWait(self._task, until_ms)
            if self._task.is_alive():
                self._sender.force_close()
                yield TaskWait(self._task, self._clock.monotonic_ms() + _FORCED_TIMEOUT_MS)
        return self._sender.lost_records()

    def failure_cause(self) -> str:
        """Return the last error, as the end of a log line; empty if there is none."""
        cause = self._sender.blocking_error
        return "" if cause is None else f"; the last error was: {cause}"

    def _at_exit(self) -> None:
        if self._process_id != self._tasks.process_id():
            return  # the child of a fork: the records are the parent's
        until_ms = self._clock.monotonic_ms() + EXIT_TIMEOUT * 1000.0
        lost = run_steps(self.close(until_ms), self._clock)
        if lost:
            cause = self.failure_cause() or ": close() the producer first"
            self._log.warning("the process ended with %d records unsent%s", lost, cause)


def _metrics(config: ProducerConfig, runtime: Runtime) -> ProducerMetrics:
    return ProducerMetrics(
        Metrics(
            runtime.clock,
            runtime.tasks,
            num_samples=config.metrics_num_samples,
            sample_window_ms=config.metrics_sample_window_ms,
        ),
        runtime.tasks.lock(),
    )


def _client(
    config: ProducerConfig, runtime: Runtime, metadata: ProducerMetadata, log_context: LogContext
) -> NetworkClient:
    return build_network_client(
        config,
        runtime,
        metadata,
        client_id=_CLIENT_ID,
        max_in_flight=config.max_in_flight_requests_per_connection,
        log_context=log_context,
    )


def _accumulator_settings(config: ProducerConfig) -> AccumulatorSettings:
    return AccumulatorSettings(
        config.batch_size,
        config.linger_ms,
        config.delivery_timeout_ms,
        config.max_request_size,
        config.partitioner_adaptive_partitioning_enable,
        config.preferred_rack,
    )


def _pool(
    config: ProducerConfig, runtime: Runtime, metrics: ProducerMetrics, wakeup: Callable[[], None]
) -> BufferPool:
    return BufferPool(
        config.buffer_memory,
        config.batch_size,
        runtime.clock,
        runtime.tasks,
        metrics.buffer_wait,
        metrics.buffer_exhausted,
        wakeup,
    )


def _metadata(
    config: ProducerConfig,
    runtime: Runtime,
    log_context: LogContext,
    on_change: Callable[[], None],
) -> ProducerMetadata:
    return ProducerMetadata(
        runtime,
        MetadataSettings.of(config),
        log_context,
        max_idle_ms=config.metadata_max_idle_ms,
        on_change=on_change,
    )


def _sender_settings(config: ProducerConfig, runtime: Runtime) -> SenderSettings:
    return SenderSettings(
        acks=config.acks,
        retries=config.retries,
        request_timeout_ms=config.request_timeout_ms,
        keep_order=config.max_in_flight_requests_per_connection == 1,
        compression=config.compression_type,
        compression_level=config.compression_level,
        retry_backoff=_backoff(config, runtime),
    )


def _backoff(config: ProducerConfig, runtime: Runtime) -> ExponentialBackoff:
    return ExponentialBackoff(
        config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.random.random
    )


def _show_levels(
    metrics: ProducerMetrics, pool: BufferPool, client: NetworkClient, metadata: ProducerMetadata
) -> None:
    registry = metrics.registry
    registry.gauge("buffer-total-bytes", lambda: pool.total)
    registry.gauge("buffer-available-bytes", pool.available)
    registry.gauge("waiting-threads", pool.queued)
    registry.gauge("requests-in-flight", client.in_flight_request_count)
    registry.gauge("metadata-age", lambda: metadata.age_ms() / 1000.0)
