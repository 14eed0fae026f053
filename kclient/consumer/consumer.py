"""Public consumer (Kafka: KafkaConsumer)."""

import warnings
from collections.abc import Callable, Mapping, Sized
from inspect import currentframe
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar, Unpack

from kclient.common.config_def import merged
from kclient.common.errors import ConcurrentAccessError, IllegalStateError
from kclient.common.foreign_names import WithForeignNames, refuse_keywords
from kclient.common.key_value_types import DeserializedKey, DeserializedValue, K_co, V_co
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.consumer.arguments import check_max_records, check_timeout
from kclient.consumer.collected_records import CollectedRecords
from kclient.consumer.consumer_closing import ConsumerClosing
from kclient.consumer.consumer_commits import ConsumerCommits
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_options import DeserializerOf, PlainConsumerOptions
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.consumer_positions import ConsumerPositions
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.consumer_subscriptions import ConsumerSubscriptions
from kclient.consumer.foreign_names import CONSUMER_NAMES, POLL
from kclient.consumer.subscription_state import SubscriptionType
from kclient.network.system_runtime import system_runtime
from kclient.record import ConsumerRecord
from kclient.record.arrow import PartitionColumns, record_schema, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", bound=Sized)
R = TypeVar("R")

_NO_RECORDS: ConsumerRecords[Any, Any] = ConsumerRecords({})
# Interval at which `__next__` runs coordinator and auto-commit work.
_ITERATION_TICK_MS = 100.0
_ITERATION_WAIT_MS = 1000.0
_ALL = 2**31 - 1
_BEING_TAKEN = object()


class Consumer(
    ProcessBound,
    ConsumerSubscriptions,
    ConsumerPositions,
    ConsumerCommits,
    ConsumerClosing,
    Generic[K_co, V_co],
    metaclass=WithForeignNames,
    foreign_names=CONSUMER_NAMES,
):
    """Reads records, with assigned partitions or as a member of a group.

    Timeouts are in seconds. Values above 600 are rejected, since they are probably milliseconds;
    ``math.inf`` waits without limit.

    ``Consumer[K, V]`` gives the types of keys and values. A type checker infers them from the
    deserializers: their return type or None; ``bytes | None`` without deserializers.

    Network I/O runs in the calling thread, inside the calls. With a group, a background task sends
    heartbeats between calls. A consumer must not be used by two threads at the same time: the
    second one gets `ConcurrentAccessError`. Exceptions, which any thread may call at any time:
    `wakeup`, `metrics`, `assignment`, `subscription`, `paused`, `topic_id`, `lag`, and `position`
    of a partition that has one. These take no lock and show the state between two steps.

    By default offsets are committed every ``auto.commit.interval.ms``: those of records returned by
    an earlier `poll`, so that a crash repeats records but loses none. With
    ``enable_auto_commit=False``, call `commit` after processing.

    Ctrl-C, or another exception of a signal handler, may interrupt any call. Records that a `poll`
    did not return are returned by the next one; ``records = consumer.poll()`` loses none. The
    outcome of an interrupted commit is unknown. A callback of `subscribe` that was interrupted runs
    again, or its partitions are reported as lost. Unless the call was interrupted while it waited,
    no heartbeats are sent until the next call that is not one of those for any thread.

    Args:
        config: Options by dotted name, as in Kafka's documentation.
        key_deserializer: Deserializer of keys; see the option of this name.
        value_deserializer: Deserializer of values; see the option of this name.
        runtime: Clock, tasks and network, for tests and simulations; the system's by default.
        options: Options by keyword, with underscores: ``bootstrap_servers``, ``group_id`` ...

    Raises:
        ConfigError: An option is unknown or invalid, or two options are inconsistent.
    """

    def __init__(
        self: "Consumer[DeserializedKey | None, DeserializedValue | None]",
        config: Mapping[str, object] | None = None,
        /,
        *,
        key_deserializer: DeserializerOf[DeserializedKey] | None = None,
        value_deserializer: DeserializerOf[DeserializedValue] | None = None,
        runtime: Runtime | None = None,
        **options: Unpack[PlainConsumerOptions],
    ) -> None:
        deserializers = {
            "key_deserializer": key_deserializer,
            "value_deserializer": value_deserializer,
        }
        given = {name: each for name, each in deserializers.items() if each is not None}
        settings = ConsumerConfig.parse(merged(config, {**options, **given}))
        runtime = system_runtime() if runtime is None else runtime
        super().__init__(ConsumerParts(settings, runtime))
        self._lock = self._parts.lock
        self._monotonic_ms = runtime.clock.monotonic_ms
        self._caller_id, self._process_id = runtime.tasks.caller_id, runtime.tasks.process_id
        self._created_in = self._process_id()
        self._next_tick_ms = 0.0
        self._polling = False
        self._closed = False

    # --- reading

    def poll(
        self, timeout: float | None = 1.0, max_records: int | None = None, **_unknown: Never
    ) -> ConsumerRecords[K_co, V_co]:
        """Return records, and wait for them if none are available.

        Rebalances, their callbacks and automatic commits run inside this call, so it must be called
        at least every ``max.poll.interval.ms``.

        Args:
            timeout: Longest wait for the first record, seconds, at most 600; 0 does not wait, None
                is 1 s, and ``math.inf`` waits without limit.
            max_records: Maximum number of records; None is ``max.poll.records``.

        Returns:
            The records; none if the timeout passed or the group is rebalancing.

        Raises:
            IllegalStateError: Nothing is subscribed or assigned.
            EventLoopError: It would wait inside a running event loop.
            WakeupError: `wakeup` was called.
            UnreadableBatchError: A batch is broken (a `CorruptRecordError`), cannot be decompressed
                (a `CompressionError`) or has a format too old; the position stays before it.
            InvalidReceiveError: A batch is larger than ``receive_message_max_bytes``.
            RecordDeserializationError: A deserializer refused a record; the position stays at it.
            OffsetsOutOfRangeError: A position is outside the log, and the reset policy is ``none``.
            NoOffsetForPartitionError: There is no position, and the reset policy is ``none``.
            LogTruncationError: Records that were read are gone, and the reset policy is ``none``.
            AuthorizationError: Topic or group may not be read; see the class raised.
        """
        if _unknown:
            refuse_keywords("Consumer.poll", _unknown, POLL)
        parts = self._parts
        limit = check_max_records(max_records, parts.config.fetch.max_poll_records)
        collect = parts.collector.collect
        records = self._poll("poll", lambda: collect(limit), self._counted, timeout)
        # No call from here to the return: an interrupt or another thread must not separate them.
        if self._unreturned is not records:
            raise _used_by_another_thread("poll")
        self._unreturned = None
        return _NO_RECORDS if records is None else records

    def poll_columns(
        self, timeout: float | None = 1.0, max_records: int | None = None, **_unknown: Never
    ) -> "pa.RecordBatch":
        """Return records as Arrow columns, at a fraction of the cost of `poll`.

        The columns are topic, partition, offset, timestamp, timestamp_type, key, value and
        headers. Keys and values are bytes; deserializers and interceptors are not applied.

        Args:
            timeout: As for `poll`.
            max_records: Maximum number of rows, of any partitions; None returns the rows of one
                partition from one response (``max.partition.fetch.bytes``), which is fastest:
                nothing is copied.

        Raises:
            ConfigError: pyarrow is not installed.
            KafkaError: As `poll`.
        """
        refuse_keywords("Consumer.poll_columns", _unknown, POLL)
        limit = check_max_records(max_records, _ALL)
        record_schema()  # raises without pyarrow, before any record is taken
        collect = self._parts.collector.collect_columns
        batch = self._poll(
            "poll_columns",
            lambda: collect(limit, single=max_records is None),
            self._counted_columns,
            timeout,
        )
        # No call from here to the return, as in `poll`.
        if self._unreturned is not batch:
            raise _used_by_another_thread("poll_columns")
        self._unreturned = None
        return to_arrow(()) if batch is None else batch

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord[K_co, V_co]:
        """Return the next record, and wait for it without limit; stop if the consumer is closed.

        Automatic commits count a record as processed when the next one is requested; `commit` as
        soon as it was returned.
        """
        if (
            self._monotonic_ms() >= self._next_tick_ms
            or self._caller_id() != self._lock.last_owner
            or self._process_id() != self._created_in
        ):
            self._fetch_pending()
        while True:
            # No call between reading a record and advancing the index: an interrupt or another
            # thread in between would return the record twice or skip it.
            index = self._next_pending
            try:
                record = self._pending[index]
            except IndexError:
                self._fetch_pending()
            else:
                self._next_pending = index + 1
                return record

    def wakeup(self) -> None:
        """Make the call in progress, or the next that waits, raise `WakeupError`.

        May be called from any thread and from signal handlers.

        Raises:
            ForkedClientError: The consumer was created in another process.
        """
        self._parts.lock.check_process()
        self._parts.network.wakeup()

    def metrics(self) -> dict[str, float]:
        """Return metrics under Kafka's names; may be called from any thread.

        An iteration counts its records every 100 ms.
        """
        return self._look().metrics.snapshot()

    # --- lifecycle

    def __enter__(self) -> Self:
        """Return the consumer; the end of the block closes it.

        Raises:
            ClosedError: It is closed.
        """
        with self._call():
            return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an exception the last records may not have been processed.
        self._may_commit_last = kind is None
        self.close()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # Modules may be gone at interpreter shutdown, hence the default argument.
        if self._closed or self._parts.lock.is_foreign_process():
            return
        self._parts.lock.stop()  # ends the heartbeat task
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        group = self._parts.config.group
        name = "no group" if group is None else f"group {group.group_id!r}"
        return f"<Consumer of {name}, {self._parts.subscriptions.kind.value}>"

    # --- inside

    def _poll(
        self, name: str, take: Callable[[], T], finish: Callable[[T], R], timeout: float | None
    ) -> R | None:
        """Wait for a result of `take` and return `finish(result)`.

        Until the caller clears `_unreturned`, the next call puts the records back.
        """
        timeout_ms = check_timeout(timeout, default_ms=_ITERATION_WAIT_MS)
        if timeout_ms > 0:
            self._refuse_in_event_loop(name)
        depth = self._depth_before()
        outer = depth > 0 and self._polling
        whole = begun = False
        try:
            parts = self._begin_call(depth, currentframe())
            begun = True
            self._begin_poll(nested=outer)
            taken = parts.loop.poll(take, timeout_ms)
            result = None if taken is None else finish(taken)
            self._unreturned = result
            whole = True
        except Exception:
            whole = True
            raise
        finally:
            if begun:  # otherwise the flag belongs to the thread that holds the lock
                self._polling = outer
            try:
                self._end_call(depth, whole=whole)
            except BaseException:
                self._end_call(depth, whole=False)
                raise
        return result

    def _begin_poll(self, *, nested: bool) -> None:
        parts = self._parts
        if nested:
            raise IllegalStateError("poll was called from within one of its callbacks")
        self._polling = True
        if parts.subscriptions.kind is SubscriptionType.NONE:
            raise IllegalStateError("poll: nothing to read; call subscribe() or assign() first")
        if parts.heartbeats is not None and parts.subscriptions.is_group_managed():
            parts.heartbeats.start(parts.runtime.tasks, "kclient-consumer-heartbeat")
        parts.collector.confirm()
        self._unreturned = _BEING_TAKEN

    def _fetch_pending(self) -> None:
        """Fetch the next records of the iteration."""
        if self._closed:
            raise StopIteration
        parts = self._parts
        limit = parts.config.fetch.max_poll_records
        while True:
            self._poll(
                "poll",
                lambda: parts.collector.collect(limit, single=True),
                self._set_pending,
                _ITERATION_WAIT_MS / 1000.0,
            )
            if self._pending:
                return

    def _set_pending(self, collected: CollectedRecords) -> None:
        records = list(self._records(collected))
        self._next_tick_ms = self._monotonic_ms() + _ITERATION_TICK_MS
        # No call in this line: an interrupt must not separate the assignments.
        self._pending, self._next_pending, self._unreturned = records, 0, None

    def _counted(self, collected: CollectedRecords) -> ConsumerRecords[K_co, V_co]:
        self._parts.collector.count(sum(map(len, collected.by_partition.values())))
        return self._records(collected)

    def _counted_columns(self, pieces: list[PartitionColumns]) -> "pa.RecordBatch":
        self._parts.collector.count(sum(columns.length for _, _, columns in pieces))
        return to_arrow(pieces)

    def _records(self, collected: CollectedRecords) -> ConsumerRecords[K_co, V_co]:
        interceptors = self._parts.interceptors
        if len(interceptors):
            return interceptors.on_consume(collected)
        return ConsumerRecords(collected.by_partition)


def _used_by_another_thread(call: str) -> ConcurrentAccessError:
    return ConcurrentAccessError(
        f"{call}: another thread called this consumer during the call and gets these records; "
        "a consumer must be used by one thread at a time"
    )


def _name_public_calls() -> None:
    """Make Python's error texts name `Consumer` instead of the mixin."""
    for part in (ConsumerSubscriptions, ConsumerPositions, ConsumerCommits, ConsumerClosing):
        for name, member in vars(part).items():
            if not name.startswith("_") and callable(member):
                member.__qualname__ = f"Consumer.{name}"


_name_public_calls()
