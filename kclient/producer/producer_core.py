"""Core of a producer: its components, and its calls in steps."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NoReturn

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.client.network_client_builder import build_network_client
from kclient.common.arguments import check_timeout
from kclient.common.errors import ClosedError, ForkedClientError, IllegalStateError, KafkaError
from kclient.common.interrupts import signals_take_effect
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.runtime import Runtime, Task
from kclient.common.waiting import Steps, TaskWait, perform, run_steps
from kclient.producer.batch_drainer import oldest_batch
from kclient.producer.buffer_pool import BufferPool
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.interceptors import ProducerInterceptors
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.record_appender import RecordAppender
from kclient.producer.record_tracer import RecordTracer
from kclient.producer.sender import Sender
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.topic_info import SlowNodes, TopicInfo
from kclient.producer.transaction_calls import TransactionCalls
from kclient.producer.transaction_manager import TransactionManager

EXIT_TIMEOUT = 5.0
"""Seconds that the exit of the process waits for unsent records."""

_CLIENT_ID = "kclient-producer"
_FORCED_TIMEOUT_MS = 500.0
_numbers = itertools.count(1)


class ProducerCore:
    """The calls of a producer, in steps that any driver can run (`kclient.common.waiting`).

    It has no reference to the producer, so that an unreferenced producer is collected.

    Attributes:
        client_id: ``client.id``, or the default.
        transaction_timeout_ms: ``transaction.timeout.ms``.
        closed: Whether calls are refused.
        clock: Clock of the producer.
        appender: The calls that append records.
        metrics: Returns the metrics by Kafka's names.
        on_accepting: Called after `accepts_records` may have changed, in any thread.
    """

    def __init__(
        self,
        config: ProducerConfig,
        runtime: Runtime,
        topic_hint: Callable[[], str] = lambda: "",
    ) -> None:
        """Create the components, without connecting or starting a thread.

        Args:
            config: Options.
            runtime: Clock, tasks and sockets.
            topic_hint: Returns what to do if the partitions of a topic are unknown, for the error.
        """
        name = config.client_id or f"kclient-producer-{next(_numbers)}"
        log_context = LogContext("Producer", {"clientId": name})
        topics: dict[str, TopicInfo] = {}
        self.client_id = config.client_id or _CLIENT_ID
        self.transaction_timeout_ms = config.transaction_timeout_ms
        self.closed = True  # until it is started
        self.clock = runtime.clock
        self._name = name
        self._log = log_context.logger(__name__)
        self._tasks = runtime.tasks
        self._process_id = runtime.tasks.process_id()
        metrics = _metrics(config, runtime)
        self.metrics = metrics.snapshot
        self._flush_ns = metrics.flush_ns
        self._runner = CallbackRunner(runtime.tasks, metrics.callback_errors, log_context)
        self._metadata = _metadata(config, runtime, log_context, topics.clear)
        self._client = _client(config, runtime, self._metadata, log_context)
        self.on_accepting: Callable[[], None] = _nothing
        transactions = self._sequence_manager(config, log_context)
        self._pool = _pool(config, runtime, metrics, self._client.wakeup)
        self._accumulator = RecordAccumulator(
            config,
            self._pool,
            runtime,
            self._runner,
            _backoff(config, runtime),
            SlowNodes(config.partitioner_availability_timeout_ms),
            self._wake_sender,
            oldest_batch if transactions is None else transactions.next_batch,
            on_idle=self._forget_topic,
        )
        self._sender = Sender(
            config,
            self._client,
            self._metadata,
            self._accumulator,
            transactions,
            metrics,
            runtime,
            log_context,
        )
        self._interceptors = ProducerInterceptors(config.interceptor_classes, log_context)
        self.appender = RecordAppender(
            config,
            runtime.clock,
            topics,
            self._metadata,
            self._client,
            self._accumulator,
            self._runner,
            self._interceptors,
            metrics.metadata_wait_ns,
            self.refuse,
            topic_hint,
            _ignore if self._manager is None else self._manager.record_refused,
        )
        _show_levels(metrics, self._pool, self._client, self._metadata)
        problem = None if config.enable_idempotence else config.idempotence_problem()
        if problem is not None:
            self._log.info("idempotence is off: %s", problem)
        self._transactions: TransactionCalls | None = None
        if self._manager is not None:
            self._transactions = TransactionCalls(
                self._manager,
                self._client,
                self._runner,
                runtime.clock,
                config.max_block_ms,
                self._wake_sender,
            )
        self._task: Task | None = None
        self._ending = runtime.tasks.lock()  # guards: _ended
        self._ended = False  # so that only one caller of close() closes the interceptors
        self._unregister: Sequence[Callable[[], None]] = ()

    def _sequence_manager(
        self, config: ProducerConfig, log_context: LogContext
    ) -> SequenceManager | None:
        self._manager: TransactionManager | None = None
        if config.transactional_id is not None:
            self._manager = TransactionManager(
                config.transactional_id, self._tasks, self._accepting_changed, log_context
            )
            return self._manager
        return SequenceManager(log_context) if config.enable_idempotence else None

    # -- state ------------------------------------------------------------------------------------

    @property
    def accepts_records(self) -> bool:
        """Whether records may be sent without a check of the transaction."""
        return not self.closed and (self._manager is None or self._manager.accepts_records)

    def _accepting_changed(self) -> None:
        self.on_accepting()

    def check_sending(self, call: str) -> None:
        """Reject a record that an unusable producer, or its transaction, cannot take.

        Raises:
            KafkaError: As `refuse`.
            IllegalStateError: No transaction has begun.
            TransactionAbortableError: The transaction can only be aborted.
        """
        self.check_usable(call)
        if self._manager is not None:
            self._manager.check_sending(call)

    def transactions(self, call: str) -> TransactionCalls:
        """Return the calls of transactions.

        Raises:
            KafkaError: As `refuse`.
            IllegalStateError: The producer has no transactional id.
        """
        self.check_usable(call)
        if self._sender.failure is not None:
            self.refuse(call)
        if self._transactions is None:
            raise IllegalStateError(
                f"{call}: the producer has no transactions, expected a transactional_id in its "
                "configuration"
            )
        return self._transactions

    def check_usable(self, call: str) -> None:
        """Reject a call of an unusable producer; see `refuse`."""
        if self.closed or self._tasks.process_id() != self._process_id:
            self.refuse(call)

    def refuse(self, call: str) -> NoReturn:
        """Raise the error of a call of an unusable producer.

        Raises:
            ForkedClientError: It was created in another process.
            ProducerFatalError: It stopped permanently.
            ClosedError: It was closed.
        """
        process_id = self._tasks.process_id()
        if process_id != self._process_id:
            raise ForkedClientError(
                f"{call}: the producer was created in process {self._process_id}, this is "
                f"{process_id}; create one after fork()"
            )
        failure = self._sender.failure
        if failure is not None:
            # The error is shared by all calls: its traceback would grow with every raise.
            raise failure.with_traceback(None)
        raise ClosedError(f"{call}: the producer is closed")

    def is_foreign(self) -> bool:
        """Return whether this process was forked from the process that created the producer."""
        return self._tasks.process_id() != self._process_id

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Trace records, or none if it is None. For any thread."""
        self._sender.set_tracer(tracer)
        self.appender.tracer = tracer

    def _wake_sender(self) -> None:
        """Let the sender do new work, unless the calling thread will run the sender's steps."""
        if self._task is None or self._task.needs_wakeup():
            self._client.wakeup()

    def _forget_topic(self, topic: str) -> None:
        self.appender.topics.pop(topic, None)

    # -- flushing and closing ---------------------------------------------------------------------

    def start(self) -> None:
        """Start the sender's loop; if that fails, no connection is left open."""
        self._unregister = (
            self._tasks.at_exit(self._at_exit),
            self._tasks.after_fork(self.appender.topics.clear),
        )
        try:
            self._task = self._tasks.run_shared(
                f"{self._name}-sender",
                self._runner.as_sender(self._sender.steps(self._forget_process)),
                self.clock,
                self._client.wakeup,
                self._sender.has_work,
            )
            self._runner.sender = self._task
        except BaseException:
            self._forget_process()
            self._sender.force_close()
            perform(self._sender.steps(), self.clock)
            raise
        self.closed = False

    def _forget_process(self) -> None:
        for unregister in self._unregister:
            unregister()

    def flush(self, timeout: float | None) -> Steps[None]:
        """Send queued records without linger, and wait for their outcomes; see `Producer.flush`."""
        timeout_ms = check_timeout(timeout, default_ms=math.inf)
        self.check_usable("flush")
        if self._sender.failure is not None:
            self.refuse("flush")
        self._runner.check_not_inside("flush()")
        started_ms = self.clock.monotonic_ms()
        try:
            yield from self._accumulator.flush(started_ms + timeout_ms)
        finally:
            self._flush_ns.record((self.clock.monotonic_ms() - started_ms) * 1e6)

    def initiate_close(self) -> None:
        """Send queued records, or abort their transaction, and end the sender; without waiting."""
        if self._manager is not None:
            self._manager.abort_to_close()
        self._sender.initiate_close()

    def force_close(self) -> None:
        """End the sender at its next step; records without an outcome fail."""
        self._sender.force_close()

    def close(self, timeout: float | None) -> Steps[int]:
        """Send queued records, then end the sender and close; see `Producer.close`.

        Returns:
            The number of records that failed since they had no outcome in time.
        """
        timeout_ms = check_timeout(timeout, default_ms=math.inf)
        if self.is_foreign():
            self.closed = True  # the sender and the connections are the parent's
            return 0
        self._runner.check_not_inside("close()")
        self.closed = True
        lost = yield from self._end_sender(self.clock.monotonic_ms() + timeout_ms)
        with self._ending:
            is_first, self._ended = not self._ended, True
        if is_first:
            if lost:
                cause = self._failure_cause()
                self._log.warning("close: %d record(s) had no outcome and failed%s", lost, cause)
            with signals_take_effect():  # code of the application
                self._interceptors.close()
        return lost

    def _end_sender(self, until_ms: float) -> Steps[int]:
        """Send queued records and end the sender; those without an outcome at `until_ms` fail.

        Returns:
            The number of records without an outcome.
        """
        self.initiate_close()
        if self._task is not None:
            yield TaskWait(self._task, until_ms)
            if self._task.is_alive():
                self._sender.force_close()
                yield TaskWait(self._task, self.clock.monotonic_ms() + _FORCED_TIMEOUT_MS)
        return self._sender.lost_records()

    def _failure_cause(self) -> str:
        """Return the last error, as the end of a log line; empty if there is none."""
        cause = self._sender.blocking_error
        return "" if cause is None else f"; the last error was: {cause}"

    def _at_exit(self) -> None:
        if self._process_id != self._tasks.process_id():
            return  # the child of a fork: the records are the parent's
        until_ms = self.clock.monotonic_ms() + EXIT_TIMEOUT * 1000.0
        lost = run_steps(self._end_sender(until_ms), self.clock)
        if lost:
            cause = self._failure_cause() or ": close() the producer first"
            self._log.warning("the process ended with %d records unsent%s", lost, cause)


def _nothing() -> None:
    return


def _ignore(_error: KafkaError) -> None:
    return


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


def _pool(
    config: ProducerConfig, runtime: Runtime, metrics: ProducerMetrics, wakeup: Callable[[], None]
) -> BufferPool:
    return BufferPool(
        config.buffer_memory,
        config.batch_size,
        runtime.clock,
        runtime.tasks,
        metrics.buffer_wait.record,
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
        config,
        log_context,
        max_idle_ms=config.metadata_max_idle_ms,
        on_change=on_change,
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
