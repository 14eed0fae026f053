"""The asyncio producer: its public methods."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from weakref import ref

from kclient.aio.foreign_producer_names import PRODUCER_NAMES
from kclient.aio.loop_driver import LoopDriver
from kclient.aio.loop_lateness import LoopLateness
from kclient.aio.loop_task import LoopTask
from kclient.client.cluster import PartitionInfo
from kclient.common.arguments import check_timeout
from kclient.common.broker_errors import TransactionAbortableError
from kclient.common.config_def import merged
from kclient.common.errors import FatalError, KafkaError
from kclient.common.foreign_names import WithForeignNames
from kclient.common.interrupts import deferred_signals
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.types import ConsumerGroupMetadata, RecordMetadata
from kclient.common.waiting import Steps
from kclient.producer.batch_delivery import BatchDelivery
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.hot_path import FastPath
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
from kclient.producer.send_arguments import (
    K_contra,
    SerializedKey,
    SerializedValue,
    V_contra,
    check_on_delivery,
)
from kclient.producer.topic_info import TopicInfo
from kclient.producer.transaction_calls import TransactionOffsets
from kclient.record import Header

if TYPE_CHECKING:
    import pyarrow as pa

_CALLS_ALONE = 2
"""Calls of `send_and_wait` in a row, each alone, after which a record is sent at once."""


class Producer(
    ProcessBound,
    FastPath[TopicInfo, K_contra, V_contra],
    metaclass=WithForeignNames,
    foreign_names=PRODUCER_NAMES,
):
    """Sends records to topics, in an asyncio event loop (Kafka: KafkaProducer).

    Options, defaults and errors are those of `kclient.Producer`. The producer has no thread: its
    sender runs in callbacks of the event loop of the first call, and serves that loop only.

    ``async with Producer(...) as producer`` closes it at the end of the block. Cancelling a call
    leaves the producer usable: a record that is queued is delivered, a record that is not queued is
    not sent.
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
        """Create a producer, without input or output; an event loop need not run.

        Args:
            config: Options by dotted name.
            key_serializer: Converts keys to bytes; without one, keys are bytes-like or None.
            value_serializer: Converts values to bytes; without one, values are bytes-like or None.
            runtime: Clock and network, for tests and simulations; the system's by default.
            options: Options by keyword.

        Raises:
            ConfigError: An option is unknown or invalid, or two contradict each other.
        """
        given = given_serializers(key_serializer, value_serializer)
        settings = PRODUCER_CONFIG.parse(merged(config, {**options, **given}))
        driver = LoopDriver("this producer", runtime)
        self._lateness = LoopLateness(settings, driver.runtime)
        driver.on_late = self._lateness.was_late
        core = ProducerCore(settings, driver.runtime)
        super().__init__(
            core.appender.topics,
            partial(_append_now, core.appender, driver),
            driver.runtime.clock.wall_ns,
        )
        self._core = core
        self._driver = driver
        self._servers = ",".join(f"{host}:{port}" for host, port in settings.bootstrap_servers)
        self._closing: LoopTask | None = None
        self._waiting_calls = 0  # of send_and_wait
        self._calls_alone = 0  # in a row, with no other call waiting
        core.on_accepting = partial(_set_fast_path, ref(self))
        core.start()
        self._set_fast_path()

    # -- sending ----------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: V_contra | None = None,
        key: K_contra | None = None,
        *,
        headers: Sequence[Header] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Queue a record and return the future of its delivery, which can be awaited.

        The call waits only while the topic's partitions are unknown or ``buffer.memory`` is full,
        at most ``max.block.ms`` in all. Without `await` it sends nothing.

        Args:
            topic: Topic name.
            value: Bytes-like, None for a tombstone, or an argument of ``value.serializer``.
            key: Bytes-like, None, or an argument of ``key.serializer``.
            headers: Pairs of str and bytes or None.
            partition: Partition number.
            timestamp_ms: Milliseconds since the epoch; by default the current time.
            on_delivery: Called as ``on_delivery(metadata, error)``, one of them None, in the event
                loop and with the context variables of this call. Its exceptions are logged.

        Raises:
            KafkaError: As `kclient.Producer.send`.
            IllegalStateError: The producer serves another event loop.
        """
        if on_delivery is not None:
            on_delivery = _in_context(on_delivery)
        future = self._try_send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        if future is None:
            future = await self._send_slow(
                topic, value, key, headers, partition, timestamp_ms, on_delivery
            )
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: V_contra | None = None,
        key: K_contra | None = None,
        *,
        headers: Sequence[Header] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send a record and return its metadata, once the brokers have acknowledged it.

        A task that awaits each record before it sends the next one, while no other task does, has
        its record sent at once. Records of several tasks are collected in batches until the event
        loop has run all of them.

        A record whose call is cancelled after it was queued is delivered; a note of the
        `CancelledError` says so.

        Raises:
            KafkaError: As `send`, or the record failed; the class is the kind of failure.
        """
        future = await self.send(
            topic, value, key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        self._calls_alone = 0 if self._waiting_calls else self._calls_alone + 1
        if self._calls_alone > _CALLS_ALONE:
            self._driver.turn_now()
        self._waiting_calls += 1
        try:
            if future.done():  # its response came in the same turn; the other tasks run now
                await asyncio.sleep(0)
            return await future
        except asyncio.CancelledError as error:
            error.add_note(
                f"{future!r} is queued and will be delivered; its outcome is not awaited"
            )
            raise
        finally:
            self._waiting_calls -= 1

    def _set_fast_path(self) -> None:
        """Use the fast path while records need no check of a transaction."""
        core = self._core
        self._fast_path_enabled = core.accepts_records and core.appender.has_fast_path

    async def send_many(
        self,
        topic: str,
        values: Iterable[V_contra | None],
        keys: Iterable[K_contra | None] | None = None,
        *,
        headers: Sequence[Header] | None = None,
        partition: int | None = None,
        timestamps_ms: int | Iterable[int] | None = None,
    ) -> BatchDelivery:
        """Queue many records of one topic; return their pending outcome, which can be awaited.

        Arguments and errors are those of `kclient.Producer.send_many`. If the call fails or is
        cancelled midway, a note of the error has the number of records that were queued.
        """
        self._core.check_sending("send_many")
        steps = self._core.appender.send_many(
            topic, values, keys, headers, partition, timestamps_ms
        )
        return await self._driver.run(steps)

    async def send_arrow(
        self, topic: str | None, batch: "pa.RecordBatch | pa.Table"
    ) -> BatchDelivery:
        """Queue the records of an Arrow batch or table; return their pending outcome.

        Columns, checks and errors are those of `kclient.Producer.send_arrow`.
        """
        self._core.check_sending("send_arrow")
        return await self._driver.run(self._core.appender.send_arrow(topic, batch))

    async def _send_slow(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Sequence[Header] | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture:
        self._core.check_sending("send")
        fairness = self._driver.bind().fairness
        if fairness.is_due():
            await fairness.pause()  # before the append: if it is cancelled, the record is not sent
        appender = self._core.appender
        record = appender.prepare(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        future = appender.try_append(record)
        if future is None:
            fairness.work += 1
            future = await self._driver.run(appender.append(record))
        return future

    # -- transactions -----------------------------------------------------------------------------

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Get the producer id of ``transactional.id``; see `kclient.Producer.init_transactions`."""
        await self._driver.run(
            self._core.transactions("init_transactions").run("init_transactions", timeout)
        )

    async def begin_transaction(self) -> None:
        """Begin a transaction; see `kclient.Producer.begin_transaction`."""
        self._core.transactions("begin_transaction").begin()

    async def send_offsets_to_transaction(
        self,
        offsets: TransactionOffsets,
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Commit the offsets of a consumer's group with the transaction.

        Arguments and errors are those of `kclient.Producer.send_offsets_to_transaction`.
        """
        transactions = self._core.transactions("send_offsets_to_transaction")
        await self._driver.run(transactions.send_offsets(offsets, group_metadata, timeout))

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Commit the transaction; see `kclient.Producer.commit_transaction`.

        If the call is cancelled, the commit continues; call it again for the outcome.
        """
        await self._driver.run(
            self._core.transactions("commit_transaction").run("commit_transaction", timeout)
        )

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction; see `kclient.Producer.abort_transaction`.

        If the call is cancelled, the abort continues; call it again for the outcome.
        """
        await self._driver.run(
            self._core.transactions("abort_transaction").run("abort_transaction", timeout)
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Begin a transaction; the end of the block commits it, an exception aborts it.

        ``async with producer.transaction(): await producer.send(...)``. A cancellation inside the
        block aborts it, too. Errors are those of `kclient.Producer.transaction`.
        """
        await self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            await self._abort_after(error)
            raise
        try:
            await self.commit_transaction()
        except TransactionAbortableError as error:
            await self._abort_after(error)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        try:
            await self.abort_transaction()
        except KafkaError as failed:
            if not isinstance(error, FatalError):
                error.add_note(f"the transaction was not aborted: {failed}")

    # -- metadata and metrics ---------------------------------------------------------------------

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic, waiting for them at most ``max.block.ms``.

        Raises:
            KafkaTimeoutError: No broker described the topic in time.
            ClosedError: The producer was closed.
        """
        self._core.check_usable("partitions_for")
        return await self._driver.run(self._core.appender.partitions_for(topic))

    def metrics(self) -> dict[str, float]:
        """Return the metrics by Kafka's names."""
        if self._core.is_foreign():
            self._core.refuse("metrics")
        return self._core.metrics() | self._lateness.metrics()

    @property
    def client_id(self) -> str:
        """The ``client.id`` that brokers receive."""
        return self._core.client_id

    @property
    def transaction_timeout_ms(self) -> int:
        """``transaction.timeout.ms`` in milliseconds."""
        return self._core.transaction_timeout_ms

    # -- flushing and closing ---------------------------------------------------------------------

    async def flush(self, timeout: float | None = None) -> None:
        """Send queued records without linger, and wait until each has its outcome.

        Failed records count as done; their futures raise the error.

        Args:
            timeout: Seconds to wait at most; None is limited by ``delivery.timeout.ms`` only.

        Raises:
            KafkaTimeoutError: Records are in flight at the end of the timeout.
            ProducerFatalError: The producer stopped permanently; `__cause__` is the reason.
            ClosedError: The producer was closed.
        """
        await self._driver.run(self._core.flush(timeout))

    async def close(self, timeout: float | None = None) -> None:
        """Send queued records, then close the connections.

        If the call is cancelled, closing continues in the event loop. Further calls wait until the
        producer is closed.

        Args:
            timeout: Seconds to wait for deliveries; then records without an outcome fail, and a
                warning with their number is logged. None is limited by ``delivery.timeout.ms``.
        """
        check_timeout(timeout, default_ms=0.0)
        self._fast_path_enabled = False
        if self._core.is_foreign():
            self._core.closed = True  # the connections are the parent's
            return
        if self._closing is None:
            # At once, also if this call is cancelled before the loop of the closing runs.
            self._core.closed = True
            self._closing = self._driver.start("close", _closed(self._core, timeout))
        await self._driver.run(self._closing.until_ended())

    async def __aenter__(self) -> Self:
        """Bind the producer to the running event loop; the end of the block closes it.

        Raises:
            ClosedError: The producer was closed.
        """
        self._core.check_usable("async with")
        self._driver.bind()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        core: ProducerCore | None = getattr(self, "_core", None)  # missing if __init__ raises
        if core is None:
            return "<aio.Producer>"
        closed = ", closed" if core.closed else ""
        return f"<aio.Producer {core.client_id!r} of {self._servers}{closed}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit, modules are cleared before this is called.
        core: ProducerCore | None = getattr(self, "_core", None)
        if core is None or core.is_foreign():
            return
        closing = self._closing is not None and self._closing.is_alive()
        if core.closed and (not closing or self._driver.has_loop()):
            return  # a close that was cancelled continues in the event loop
        core.closed = True
        self._driver.abandon(core.initiate_close, core.force_close)
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)


def _append_now(
    appender: RecordAppender, driver: LoopDriver, *record: Any
) -> DeliveryFuture | None:
    """Append a record to a new batch; return None if the caller must wait."""
    fairness = driver.bind().fairness
    if fairness.is_due():
        return None
    fairness.work += 1
    steps: Steps[DeliveryFuture] = appender.append_to_new_batch(*record)
    try:
        with deferred_signals():
            next(steps)
    except StopIteration as returned:
        future: DeliveryFuture = returned.value
        return future
    steps.close()  # no memory is free: nothing was appended
    return None


def _set_fast_path(producer: "ref[Producer[Any, Any]]") -> None:
    """Let `send` check the transaction, or not, unless the producer has been collected."""
    found = producer()
    if found is not None:
        found._set_fast_path()  # noqa: SLF001 (the callback of the producer's own core)


def _closed(core: ProducerCore, timeout: float | None) -> Steps[None]:
    """Close a core, without a reference to its producer, which may be collected meanwhile."""
    yield from core.close(timeout)


def _in_context(on_delivery: OnDelivery) -> OnDelivery:
    """Return a delivery callback that runs with the caller's context variables."""
    check_on_delivery(on_delivery)
    context = copy_context()

    def run(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        context.run(on_delivery, metadata, error)

    return run
