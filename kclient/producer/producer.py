"""The producer: its public methods."""

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, NoReturn, Self, Unpack
from weakref import ref

from kclient.client.cluster import PartitionInfo
from kclient.common.broker_errors import TransactionAbortableError
from kclient.common.config_def import merged
from kclient.common.errors import FatalError, InvalidTypeError, KafkaError
from kclient.common.event_loop import is_inside_event_loop, refuse_in_event_loop
from kclient.common.foreign_names import WithForeignNames, refuse_keywords
from kclient.common.interrupts import deferred_signals
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Clock, Runtime
from kclient.common.types import ConsumerGroupMetadata
from kclient.common.waiting import run_steps
from kclient.network.system_runtime import system_runtime
from kclient.producer.batch_delivery import BatchDelivery
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.foreign_names import PRODUCER_NAMES, SEND_MANY
from kclient.producer.hot_path import SendPath
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_config import (
    PRODUCER_CONFIG,
    OptionsWithoutSerializers,
    SerializerOf,
    given_serializers,
    keep_bytes,
)
from kclient.producer.producer_core import ProducerCore
from kclient.producer.record_appender import RecordAppender
from kclient.producer.record_tracer import RecordTracer
from kclient.producer.send_arguments import (
    K_contra,
    SerializedKey,
    SerializedValue,
    V_contra,
)
from kclient.producer.topic_info import TopicInfo
from kclient.producer.transaction_calls import TransactionOffsets
from kclient.record import Header

if TYPE_CHECKING:
    import pyarrow as pa

_numbers = itertools.count(1)


_AWAITED = "or use kclient.aio.Producer, whose calls are awaited"


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
        given = given_serializers(key_serializer, value_serializer)
        settings = PRODUCER_CONFIG.parse(merged(config, {**options, **given}))
        runtime = system_runtime() if runtime is None else runtime
        core = ProducerCore(settings, runtime, _topic_hint)
        super().__init__(
            core.appender.topics,
            partial(_append_to_new_batch, core.appender, runtime.clock),
            runtime.clock.wall_ns,
        )
        self._core = core
        self._servers = ",".join(f"{host}:{port}" for host, port in settings.bootstrap_servers)
        self._clock = runtime.clock
        core.on_accepting = partial(_set_fast_path, ref(self))
        self._set_fast_path()
        try:
            with deferred_signals():
                core.start()
                self._set_fast_path()
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
        core = self._core
        core.check_sending("send")
        appender = core.appender
        try:
            record = appender.prepare(
                topic, value, key, headers, partition, timestamp_ms, on_delivery
            )
            future = appender.try_append(record)
        finally:
            if appender.tracer is not None:
                self._set_fast_path()
        return run_steps(appender.append(record), self._clock) if future is None else future

    def _set_fast_path(self) -> None:
        """Use the fast path for records that are not traced and need no check of a transaction."""
        core, appender = self._core, self._core.appender
        self._fast_path_enabled = (
            core.accepts_records and appender.has_fast_path and not appender.traces()
        )

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
        self._core.check_sending("send_many")
        steps = self._core.appender.send_many(
            topic, values, keys, headers, partition, timestamps_ms
        )
        return run_steps(steps, self._clock)

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
        self._core.check_sending("send_arrow")
        return run_steps(self._core.appender.send_arrow(topic, batch), self._clock)

    # -- transactions -----------------------------------------------------------------------------

    def init_transactions(self, timeout: float | None = None) -> None:
        """Get the producer id of ``transactional.id``; needed once, before the first transaction.

        It fences an earlier producer with the same id, and waits until that producer's transaction
        is completed: committed if its commit had begun, else aborted.

        Args:
            timeout: Seconds to wait at most; None is ``max.block.ms``.

        Raises:
            KafkaTimeoutError: No outcome in time; call it again.
            TransactionalIdAuthorizationError: An ACL has to allow WRITE on the transactional id;
                the call may be repeated.
            ProducerFencedError: A producer that was started later has the id.
            IllegalStateError: There is no ``transactional.id``, or it was called before.
            EventLoopError: Called inside a running event loop.
        """
        self._run_transactional("init_transactions", timeout)

    def begin_transaction(self) -> None:
        """Begin a transaction; records are sent in it from now on. No broker is involved.

        Raises:
            IllegalStateError: A transaction is open, or `init_transactions` was not called.
            ProducerFencedError: A producer that was started later has the transactional id.
        """
        self._core.transactions("begin_transaction").begin()

    def send_offsets_to_transaction(
        self,
        offsets: TransactionOffsets,
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Commit the offsets of a consumer's group with the transaction (KIP-98, KIP-447).

        They take effect if the transaction is committed. The consumer must not commit by itself:
        set its ``enable.auto.commit`` to false.

        Args:
            offsets: Next offset to read of each partition.
            group_metadata: ``consumer.group_metadata()``, read after the poll that returned the
                records: it fences a member whose partitions have been reassigned.
            timeout: Seconds to wait at most; None is ``max.block.ms``.

        Raises:
            CommitFailedError: The group has rebalanced; abort the transaction.
            GroupAuthorizationError: An ACL has to allow READ on the group; abort the transaction.
            TransactionAbortableError: The transaction can only be aborted.
            ProducerFencedError: A producer that was started later has the transactional id.
            KafkaTimeoutError: No outcome in time; call it again with the same arguments, or abort.
            IllegalStateError: No transaction is open.
            InvalidArgumentError: An offset or the metadata is invalid.
            EventLoopError: Called inside a running event loop.
        """
        transactions = self._core.transactions("send_offsets_to_transaction")
        self._refuse_event_loop("send_offsets_to_transaction")
        run_steps(transactions.send_offsets(offsets, group_metadata, timeout), self._clock)

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send queued records without linger, then commit the transaction.

        When it returns, all records of the transaction are acknowledged and their callbacks have
        run. A record that fails makes it raise, without a commit.

        Args:
            timeout: Seconds to wait at most; None is ``max.block.ms``.

        Raises:
            TransactionAbortableError: A record or a request failed, which `__cause__` is; call
                `abort_transaction`.
            KafkaTimeoutError: The outcome is unknown; call it again until it returns or raises
                another error.
            ProducerFencedError: A producer that was started later has the transactional id.
            IllegalStateError: No transaction is open.
            EventLoopError: Called inside a running event loop.
        """
        self._run_transactional("commit_transaction", timeout)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction; queued records fail with TransactionAbortedError.

        Args:
            timeout: Seconds to wait at most; None is ``max.block.ms``.

        Raises:
            KafkaTimeoutError: No outcome in time; call it again.
            ProducerFencedError: A producer that was started later has the transactional id.
            IllegalStateError: No transaction is open.
            EventLoopError: Called inside a running event loop.
        """
        self._run_transactional("abort_transaction", timeout)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begin a transaction; the end of the block commits it, an exception aborts it.

        ``with producer.transaction(): producer.send(...)``. The exception is raised again after the
        abort. The same holds for errors of the commit, but for KafkaTimeoutError: then call
        `commit_transaction` again, since the outcome is unknown.

        Raises:
            KafkaError: As `begin_transaction` and `commit_transaction`.
        """
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            self._abort_after(error)
            raise
        try:
            self.commit_transaction()
        except TransactionAbortableError as error:
            self._abort_after(error)
            raise

    def _abort_after(self, error: BaseException) -> None:
        try:
            self.abort_transaction()
        except KafkaError as failed:
            if not isinstance(error, FatalError):
                error.add_note(f"the transaction was not aborted: {failed}")

    def _run_transactional(self, name: str, timeout: float | None) -> None:
        transactions = self._core.transactions(name)
        self._refuse_event_loop(name)
        run_steps(transactions.run(name, timeout), self._clock)

    def _refuse_event_loop(self, name: str) -> None:
        refuse_in_event_loop(name, f"producer.{name}, …", hint=_AWAITED)

    # -- metadata and metrics ---------------------------------------------------------------------

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic, waiting for them at most ``max.block.ms``.

        Raises:
            KafkaTimeoutError: No broker described the topic in time.
            EventLoopError: Called inside a running event loop.
            ClosedError: The producer was closed.
        """
        self._core.check_usable("partitions_for")
        refuse_in_event_loop("partitions_for", "producer.partitions_for, …", hint=_AWAITED)
        return run_steps(self._core.appender.partitions_for(topic), self._clock)

    def metrics(self) -> dict[str, float]:
        """Return the metrics by Kafka's names.

        Raises:
            ForkedClientError: The producer was created in another process.
        """
        if self._core.is_foreign():
            self._core.refuse("metrics")
        return self._core.metrics()

    # -- tracing ----------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """The ``client.id`` that brokers receive."""
        return self._core.client_id

    @property
    def transaction_timeout_ms(self) -> int:
        """``transaction.timeout.ms`` in milliseconds."""
        return self._core.transaction_timeout_ms

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Trace records, or none any more; used by `kclient.journey.Journey`."""
        self._core.set_tracer(tracer)
        self._set_fast_path()

    def trace_next(self) -> None:
        """Trace the next record given to `send`, unless all are traced. For any thread."""
        if self._core.appender.tracer is not None:
            self._core.appender.trace_next = True
            self._set_fast_path()

    def end_traces(self) -> None:
        """Trace no further record; those in flight still are, until `set_tracer`."""
        self._core.appender.end_traces()
        self._set_fast_path()

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
        if timeout != 0:
            refuse_in_event_loop("flush", "producer.flush, …", hint=_AWAITED)
        run_steps(self._core.flush(timeout), self._clock)

    def close(self, timeout: float | None = None) -> None:
        """Send queued records, then stop the thread and close the connections.

        An open transaction is aborted, and its queued records fail.

        Further calls only wait until the producer is closed.

        Args:
            timeout: Seconds to wait for deliveries; then records without an outcome fail, and a
                warning with their number is logged. None is limited by ``delivery.timeout.ms``, and
                by ``max.block.ms`` for the end of a transaction.

        Raises:
            IllegalStateError: Called in the producer's own thread, as in a delivery callback.
        """
        steps = self._core.close(timeout)
        try:
            run_steps(steps, self._clock)
        finally:
            self._set_fast_path()

    def __enter__(self) -> Self:
        """Return the producer; the end of the block closes it.

        Raises:
            ClosedError: The producer was closed.
        """
        self._core.check_usable("with")
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
        closed = ", closed" if core.closed else ""
        return f"<Producer {core.client_id!r} of {self._servers}{closed}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit, modules are cleared before this is called.
        core: ProducerCore | None = getattr(self, "_core", None)  # missing if __init__ raises
        if core is None or core.closed or core.is_foreign():
            return
        core.initiate_close()
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)


def _append_to_new_batch(appender: RecordAppender, clock: Clock, *record: Any) -> DeliveryFuture:
    return run_steps(appender.append_to_new_batch(*record), clock)


def _set_fast_path(producer: "ref[Producer[Any, Any]]") -> None:
    """Let `send` check the transaction, or not, unless the producer has been collected."""
    found = producer()
    if found is not None:
        found._set_fast_path()  # noqa: SLF001 (the callback of the producer's own core)


def _topic_hint() -> str:
    if not is_inside_event_loop():
        return ""
    return (
        "; in an event loop, use kclient.aio.Producer, or await "
        "asyncio.to_thread(producer.partitions_for, topic) before the first send and set "
        "max_block_ms=0"
    )
