"""The asyncio consumer: its public methods."""

import asyncio
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from kclient.aio.consumer_calls import ConsumerCalls
from kclient.aio.foreign_consumer_names import CONSUMER_NAMES
from kclient.aio.loop_driver import LoopDriver
from kclient.aio.loop_lateness import lateness_of_member
from kclient.common.arguments import check_timeout
from kclient.common.config_def import merged
from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
)
from kclient.common.foreign_names import WithForeignNames
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.types import (
    ConsumerGroupMetadata,
    DeserializedKey,
    DeserializedValue,
    K_co,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
    V_co,
)
from kclient.common.waiting import Steps
from kclient.consumer.arguments import CommitOffsets
from kclient.consumer.auto_offset_reset import EARLIEST, LATEST
from kclient.consumer.commits import CommitCallback
from kclient.consumer.consumer_config import (
    CONSUMER_CONFIG,
    DeserializerOf,
    PlainConsumerOptions,
    given_deserializers,
    keep_bytes,
)
from kclient.consumer.consumer_core import ConsumerCore
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.rebalance_listener import PartitionsCallback, RebalanceListener
from kclient.record import ConsumerRecord
from kclient.record.arrow import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

_NO_RECORDS: ConsumerRecords[Any, Any] = ConsumerRecords({})
_CLOSE_TIMEOUT_S = 30.0

R = TypeVar("R")


class Consumer(
    ProcessBound,
    Generic[K_co, V_co],
    metaclass=WithForeignNames,
    foreign_names=CONSUMER_NAMES,
):
    """Reads records in an asyncio event loop, with assigned partitions or as a member of a group.

    Options, defaults and errors are those of `kclient.Consumer`. The consumer has no thread: its
    heartbeats run in callbacks of the event loop of the first call, and it serves that loop only.
    A slow coroutine does not end its membership, as long as `poll` is called at least every
    ``max.poll.interval.ms``. Code that blocks the event loop delays the heartbeats.

    One task at a time may wait in `poll`, `poll_columns` or ``async for``. All other calls may be
    made at any time in the same event loop, also while a task waits in `poll`.

    ``async with Consumer(...) as consumer`` closes it at the end of the block. Cancelling a call
    leaves the consumer usable: records that were not returned are returned by the next `poll`.
    """

    def __init__(
        self: "Consumer[DeserializedKey | None, DeserializedValue | None]",
        config: Mapping[str, object] | None = None,
        /,
        *,
        # The default gives type checkers the type of keys and values without a deserializer.
        key_deserializer: DeserializerOf[DeserializedKey] | None = keep_bytes,  # type: ignore[assignment]
        value_deserializer: DeserializerOf[DeserializedValue] | None = keep_bytes,  # type: ignore[assignment]
        runtime: Runtime | None = None,
        **options: Unpack[PlainConsumerOptions],
    ) -> None:
        """Create a consumer, without input or output; an event loop need not run.

        Args:
            config: Options by dotted name.
            key_deserializer: Deserializer of keys; see the option of this name.
            value_deserializer: Deserializer of values; see the option of this name.
            runtime: Clock and network, for tests and simulations; the system's by default.
            options: Options by keyword.

        Raises:
            ConfigError: An option is unknown or invalid, or two options are inconsistent.
        """
        given = given_deserializers(key_deserializer, value_deserializer)
        settings = CONSUMER_CONFIG.parse(merged(config, {**options, **given}))
        self._driver = LoopDriver("this consumer", runtime)
        self._default_timeout_ms = settings.default_api_timeout_ms
        self._monotonic_ms = self._driver.runtime.clock.monotonic_ms
        self._polling: asyncio.Task[Any] | None = None
        self._code = self._driver.code
        self._core = ConsumerCore(settings, self._driver.runtime)
        self._calls = ConsumerCalls(self._core, self._driver)
        log = self._core.log_context.logger(__name__)
        self._lateness = lateness_of_member(settings, self._driver.runtime, log)
        self._driver.on_late = self._lateness.was_late

    # -- reading ----------------------------------------------------------------------------------

    async def poll(
        self, timeout: float | None = 1.0, max_records: int | None = None
    ) -> ConsumerRecords[K_co, V_co]:
        """Return records, and wait for them if none are available.

        Rebalances, their callbacks and automatic commits run inside this call, in the calling task.

        Args:
            timeout: Longest wait for the first record, seconds, at most 600; 0 does not wait, None
                is 1 s, and ``math.inf`` waits without limit.
            max_records: Maximum number of records; None is ``max.poll.records``.

        Returns:
            The records, by partition; none if the timeout passed or the group is rebalancing.

        Raises:
            ConcurrentAccessError: Another task waits in `poll`.
            IllegalStateError: Nothing is subscribed or assigned.
            KafkaError: As `kclient.Consumer.poll`.
        """
        records = await self._poll(self._core.poll(timeout, max_records))
        return _NO_RECORDS if records is None else records

    async def poll_columns(
        self, timeout: float | None = 1.0, max_records: int | None = None
    ) -> "pa.RecordBatch":
        """Return records as Arrow columns; see `kclient.Consumer.poll_columns`.

        Raises:
            ConfigError: pyarrow is not installed.
            KafkaError: As `poll`.
        """
        batch = await self._poll(self._core.poll_columns(timeout, max_records))
        return to_arrow(()) if batch is None else batch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord[K_co, V_co]:
        """Return the next record, and wait for it without limit; stop if the consumer is closed.

        Automatic commits count a record as processed when the next one is requested; `commit` as
        soon as it was returned. Records that are buffered when the iteration ends are returned by
        the next `poll`.
        """
        core = self._core
        if self._monotonic_ms() >= core.next_tick_ms:
            await self._fetch_pending()
        while True:
            index = core.next_pending
            if index < len(core.pending):
                core.next_pending = index + 1
                return core.pending[index]
            await self._fetch_pending()

    async def _fetch_pending(self) -> None:
        if self._calls.is_closing() or self._core.closed:
            raise StopAsyncIteration
        try:
            await self._poll(self._core.fetch_pending())
        except ClosedError:
            raise StopAsyncIteration from None

    async def _poll(self, steps: Steps[R]) -> R:
        if self._polling is not None or self._code.running:
            self._check_no_poll(self._polling)
        fairness = self._driver.bind().fairness
        self._polling = asyncio.current_task()
        try:
            if fairness.is_due():
                await fairness.pause()  # before records are taken: a cancelled call takes none
            fairness.work += 1
            result = await self._calls.run(steps)
            # The same task continues here without a pause: the result is received.
            self._core.unreturned = None
        except BaseException:
            if self._core.unreturned is not None:
                self._core.put_back_unreturned()
            raise
        finally:
            self._polling = None
        return result

    def _check_no_poll(self, polling: asyncio.Task[Any] | None) -> None:
        if self._code.is_inside():
            raise IllegalStateError("poll was called from within a callback of this consumer")
        if polling is not None:
            raise ConcurrentAccessError(
                f"poll: got a call in {_name(asyncio.current_task())} while {_name(polling)} "
                "waits in poll, expected one task at a time"
            )

    # -- subscription and assignment --------------------------------------------------------------

    def subscribe(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
    ) -> None:
        """Subscribe to topics as a member of the group, which assigns the partitions.

        Arguments and errors are those of `kclient.Consumer.subscribe`. Callbacks that are coroutine
        functions are awaited by `poll` in its task, while heartbeats are sent. They may await other
        calls of the consumer, such as `commit`, except `poll` and `close`. If the task of `poll` is
        cancelled in `on_assigned` or `on_revoked`, the next `poll` calls it again.

        Raises:
            IllegalStateError: There is no ``group_id``, or `assign` is in use; or `topics` is empty
                and the present callbacks must be awaited: use `unsubscribe`.
        """
        listener = RebalanceListener(on_assigned, on_revoked, on_lost, are_awaited=True)
        self._calls.check_open()
        self._core.subscribe(topics, pattern, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions, without group management; an empty list unsubscribes.

        Raises:
            IllegalStateError: `subscribe` is in use.
        """
        self._calls.check_open()
        self._core.assign(partitions)

    async def unsubscribe(self) -> None:
        """Remove subscription and assignment, and leave the group.

        `on_revoked` is called with the assigned partitions, and awaited. Callbacks of one consumer
        do not run at the same time: the call waits for one that another task awaits.
        """
        await self._calls.run_after_callbacks(self._core.unsubscribe())

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions; may be called from any thread."""
        return set(self._core.assigned())

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, those that match now."""
        return self._core.subscribed_topics()

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic from the cached metadata, None if it has none there."""
        return self._core.topic_id(topic)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; buffered records are kept.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._calls.check_open()
        self._core.set_paused("pause", partitions, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._calls.check_open()
        self._core.set_paused("resume", partitions, paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions; may be called from any thread."""
        return self._core.paused()

    # -- positions --------------------------------------------------------------------------------

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset of the next record to be returned; see `kclient.Consumer.position`."""
        return await self._calls.run(self._core.position(partition, timeout))

    async def lag(self, partition: TopicPartition) -> int:
        """Return the number of offsets between the position and the end of the readable log."""
        return await self._calls.run(self._core.lag(partition))

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata | OffsetAndTimestamp
    ) -> None:
        """Set the position of a partition; see `kclient.Consumer.seek`.

        Raises:
            IllegalStateError: The partition is not assigned.
        """
        self._calls.check_open()
        self._core.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Set the position to the first record; without arguments, in every assigned partition.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._calls.check_open()
        self._core.reset("seek_to_beginning", EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Set the position after the last record; without arguments, in every assigned partition.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._calls.check_open()
        self._core.reset("seek_to_end", LATEST, partitions)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition; they need not be assigned."""
        return await self._calls.run(self._core.beginning_offsets(partitions, timeout))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record of each partition."""
        return await self._calls.run(self._core.end_offsets(partitions, timeout))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time in each partition, None if there is none."""
        return await self._calls.run(self._core.offsets_for_times(timestamps, timeout))

    # -- commits ----------------------------------------------------------------------------------

    async def commit(
        self, offsets: CommitOffsets | None = None, timeout: float | None = None
    ) -> None:
        """Commit offsets and wait for the response, also while another task waits in `poll`.

        Arguments and errors are those of `kclient.Consumer.commit`. If the call is cancelled after
        the request was sent, the outcome is unknown; a note of the `CancelledError` says so.
        """
        try:
            await self._calls.run(self._core.commit(offsets, timeout))
        except asyncio.CancelledError as error:
            error.add_note("the commit may have been sent; its outcome is unknown")
            raise

    def commit_async(
        self, offsets: CommitOffsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit offsets without waiting; asynchronous commits keep their order.

        The callback is called with the offsets and the error or None, inside a later call.
        """
        self._calls.check_open()
        self._core.commit_async(offsets, callback)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of the group, None for partitions without."""
        return await self._calls.run(self._core.committed(partitions, timeout))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata that a transactional producer needs to commit offsets."""
        self._calls.check_open()
        return self._core.group_metadata()

    # -- lifecycle --------------------------------------------------------------------------------

    def wakeup(self) -> None:
        """Make the call in progress, or the next that waits, raise `WakeupError`.

        May be called from any thread.
        """
        self._core.wakeup()

    def metrics(self) -> dict[str, float]:
        """Return metrics under Kafka's names; may be called from any thread."""
        return self._core.metrics_snapshot() | self._lateness.metrics()

    @property
    def client_id(self) -> str:
        """The ``client.id`` that brokers receive."""
        return self._core.client_id

    @property
    def enable_auto_commit(self) -> bool:
        """Whether the consumer commits offsets by itself (``enable.auto.commit``)."""
        return self._core.enable_auto_commit

    async def close(self, timeout: float | None = _CLOSE_TIMEOUT_S, *, commit: bool = True) -> None:
        """Commit if auto-commit is enabled, revoke the partitions, leave the group, and disconnect.

        Calls of other tasks raise `ClosedError`, also those that wait, such as `poll`; an
        ``async for`` ends. If `close` is cancelled, closing continues in the event loop. Further
        calls of `close` wait until the consumer is closed.

        Args:
            timeout: Longest time for all of it, seconds; None is ``default.api.timeout.ms``. An
                `on_revoked` that is a coroutine function is cancelled at its end.
            commit: False commits no positions automatically: the last records that `poll` returned
                may not have been processed.

        Raises:
            IllegalStateError: A rebalance callback made the call, which would wait for itself.
            ConcurrentAccessError: The rebalance callback of another call did not end in time; the
                consumer is open.
            KafkaTimeoutError: `on_revoked` was cancelled; the consumer is closed.
        """
        timeout_ms = check_timeout(timeout, default_ms=self._default_timeout_ms)
        if self._core.is_closed():
            return
        await self._calls.close(timeout_ms, commit=commit)

    async def __aenter__(self) -> Self:
        """Bind the consumer to the running event loop; the end of the block closes it.

        Raises:
            ClosedError: It is closed.
        """
        with self._core.call():
            self._driver.bind()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an exception, the last records may not have been processed.
        await self.close(commit=kind is None)

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # Modules may be gone at interpreter shutdown, hence the default argument.
        core = getattr(self, "_core", None)  # missing if the constructor has failed
        if core is None or core.is_closed() or self._calls.close_continues():
            return
        self._calls.abandon()
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        core = getattr(self, "_core", None)  # missing if the constructor has failed
        if core is None:
            return "<aio.Consumer>"
        return f"<aio.Consumer of {core.describe()}{', closed' if core.is_closed() else ''}>"


def _name(task: asyncio.Task[Any] | None) -> str:
    return "no task" if task is None else f"task {task.get_name()!r}"
