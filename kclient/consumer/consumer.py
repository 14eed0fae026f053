"""Public consumer (Kafka: KafkaConsumer): its documentation, and the waits in the calling thread.

`ConsumerCore` implements the calls and checks their arguments.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar, Unpack

from kclient.common.config_def import merged
from kclient.common.event_loop import is_inside_event_loop, refuse_in_event_loop
from kclient.common.foreign_names import WithForeignNames, refuse_keywords
from kclient.common.interrupts import deferred_signals
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
from kclient.common.waiting import Steps, perform, run_steps
from kclient.consumer.arguments import (
    CommitOffsets,
)
from kclient.consumer.auto_offset_reset import (
    EARLIEST,
    LATEST,
)
from kclient.consumer.commits import CommitCallback
from kclient.consumer.consumer_config import (
    CONSUMER_CONFIG,
    DeserializerOf,
    PlainConsumerOptions,
    given_deserializers,
    keep_bytes,
)
from kclient.consumer.consumer_core import ConsumerCore, used_by_another_thread
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.foreign_names import CLOSE, COMMIT, CONSUMER_NAMES, POLL, SUBSCRIBE, TIMEOUT
from kclient.consumer.rebalance_listener import PartitionsCallback, RebalanceListener
from kclient.consumer.record_tracer import RecordTracer
from kclient.network.system_runtime import system_runtime
from kclient.record import ConsumerRecord
from kclient.record.arrow import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

_NO_RECORDS: ConsumerRecords[Any, Any] = ConsumerRecords({})
_CLOSE_TIMEOUT_S = 30.0
_HINT_ON_CANCELLING = {
    "poll": "a cancelled call continues in its thread: end it by wakeup() or close(); ",
    "poll_columns": "do not cancel it, its records would be lost: end it by wakeup() or close(); ",
    "commit": "do not cancel it, its outcome would be unknown; ",
}
_AWAITED = "or use kclient.aio.Consumer, whose calls are awaited"

R = TypeVar("R")


class Consumer(
    ProcessBound,
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

    The result of a `poll` that is released without being used counts as not received: the next call
    resets the positions, so that no commit covers these records and the next `poll` returns them.
    So a cancelled ``await asyncio.to_thread(consumer.poll)`` loses none.

    Ctrl-C takes effect where a call waits, or runs code of the application; a call that does
    neither completes before. The consumer stays usable. Records that a `poll` did not return are
    returned by the next one: ``records = consumer.poll()`` loses none. The outcome of an
    interrupted commit is unknown. A callback of `subscribe` that was interrupted runs again, or its
    partitions are reported as lost. The same holds for any handler of SIGINT or SIGTERM that
    raises an exception; after one of another signal's handler, close the consumer.

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
        # The default gives type checkers the type of keys and values without a deserializer.
        key_deserializer: DeserializerOf[DeserializedKey] | None = keep_bytes,  # type: ignore[assignment]
        value_deserializer: DeserializerOf[DeserializedValue] | None = keep_bytes,  # type: ignore[assignment]
        runtime: Runtime | None = None,
        **options: Unpack[PlainConsumerOptions],
    ) -> None:
        given = given_deserializers(key_deserializer, value_deserializer)
        runtime = system_runtime() if runtime is None else runtime
        with deferred_signals():
            settings = CONSUMER_CONFIG.parse(merged(config, {**options, **given}))
            core = ConsumerCore(settings, runtime)
        self._lock = core.lock
        self._monotonic_ms = runtime.clock.monotonic_ms
        self._caller_id, self._process_id = runtime.tasks.caller_id, runtime.tasks.process_id
        self._created_in = self._process_id()
        self._core = core  # last: after Ctrl-C before it there is nothing to close

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
        core = self._core
        records = self._run("poll", core.poll(timeout, max_records), timeout)
        # No call from here to the return, where another thread or a signal handler could run.
        if core.unreturned is not records:
            raise used_by_another_thread("poll")
        core.unreturned = None
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
                partition from one response (``max.partition.fetch.bytes``), at most 64 MiB in a
                column unless the first row is larger, which is fastest: nothing is copied.

        Raises:
            ConfigError: pyarrow is not installed.
            KafkaError: As `poll`.
        """
        refuse_keywords("Consumer.poll_columns", _unknown, POLL)
        core = self._core
        batch = self._run("poll_columns", core.poll_columns(timeout, max_records), timeout)
        # No call from here to the return, as in `poll`.
        if core.unreturned is not batch:
            raise used_by_another_thread("poll_columns")
        core.unreturned = None
        return to_arrow(()) if batch is None else batch

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord[K_co, V_co]:
        """Return the next record, and wait for it without limit; stop if the consumer is closed.

        Automatic commits count a record as processed when the next one is requested; `commit` as
        soon as it was returned.
        """
        core = self._core
        if (
            self._monotonic_ms() >= core.next_tick_ms
            or self._caller_id() != self._lock.last_owner
            or self._process_id() != self._created_in
        ):
            self._fetch_pending()
        while True:
            # No call between reading a record and advancing the index: another thread, or a signal
            # handler, in between would return the record twice or skip it.
            index = core.next_pending
            try:
                record = core.pending[index]
            except IndexError:
                self._fetch_pending()
            else:
                core.next_pending = index + 1
                return record

    # --- subscription and assignment

    def subscribe(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
        **_unknown: Never,
    ) -> None:
        """Subscribe to topics as a member of the group, which assigns the partitions.

        The subscription replaces an earlier one. The callbacks run inside `poll`.

        Args:
            topics: Topic names; a str is one topic, an empty list unsubscribes.
            pattern: Instead of `topics`: a Python regular expression that matches whole topic
                names, including topics created later.
            on_assigned: Called with the new partitions.
            on_revoked: Called with the partitions about to be revoked; commit here.
            on_lost: Called instead of `on_revoked` if they are lost already.

        Raises:
            IllegalStateError: There is no ``group_id``, or `assign` is in use.
            InvalidArgumentError: Both or neither of `topics` and `pattern`, or an invalid name.
            InvalidTypeError: An argument has the wrong type.
        """
        refuse_keywords("Consumer.subscribe", _unknown, SUBSCRIBE)
        listener = RebalanceListener(on_assigned, on_revoked, on_lost)
        self._core.subscribe(topics, pattern, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions, without group management; an empty list unsubscribes.

        Raises:
            IllegalStateError: `subscribe` is in use.
            InvalidTypeError: It is not a list of TopicPartition.
            InvalidArgumentError: A topic name or partition number is invalid.
        """
        self._core.assign(partitions)

    def unsubscribe(self) -> None:
        """Remove subscription and assignment, and leave the group.

        `on_revoked` is called with the assigned partitions.
        """
        run_steps(self._core.unsubscribe(), self._core.clock)

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions; may be called from any thread."""
        return set(self._core.assigned())

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, those that match now.

        May be called from any thread.
        """
        return self._core.subscribed_topics()

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic from the cached metadata; a recreated topic has another id.

        None if the topic is not in the metadata, or the brokers do not support topic ids.

        Args:
            topic: Name of the topic.

        Raises:
            InvalidArgumentError: The topic name is invalid.
        """
        return self._core.topic_id(topic)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; buffered records are kept.

        A rebalance ends the pause.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._core.set_paused("pause", partitions, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._core.set_paused("resume", partitions, paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions; may be called from any thread."""
        return self._core.paused()

    # --- positions

    def position(
        self, partition: TopicPartition, timeout: float | None = None, **_unknown: Never
    ) -> int:
        """Return the offset of the next record to be returned.

        Waits if the position has to be looked up. If it is known, any thread may call this, even
        while another one is in a call.

        Args:
            partition: An assigned partition.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; with 0, repeated
                calls return the position once it is known.

        Raises:
            IllegalStateError: The partition is not assigned.
            NoOffsetForPartitionError: No offset is committed and the reset policy is ``none``.
            UnknownTopicOrPartitionError: The brokers have confirmed that it does not exist.
            KafkaTimeoutError: The position was not found in time.
        """
        refuse_keywords("Consumer.position", _unknown, TIMEOUT)
        known = self._core.known_position(partition)
        if known is not None:
            return known
        return self._run("position", self._core.position(partition, timeout), timeout)

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata | OffsetAndTimestamp
    ) -> None:
        """Set the position of a partition.

        Args:
            partition: An assigned partition.
            offset: Offset of the next record, or a result of `committed` or `offsets_for_times`:
                if that has a leader epoch, the position is validated first.

        Raises:
            IllegalStateError: The partition is not assigned.
            InvalidArgumentError: The offset is negative.
            InvalidTypeError: An argument has the wrong type.
        """
        self._core.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Set the position to the first record; without arguments, in every assigned partition.

        The offset is looked up by the next `poll` or `position`.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._core.reset("seek_to_beginning", EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Set the position after the last record; without arguments, in every assigned partition.

        The offset is looked up by the next `poll` or `position`.

        Raises:
            IllegalStateError: A partition is not assigned.
        """
        self._core.reset("seek_to_end", LATEST, partitions)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition; they need not be assigned.

        Args:
            partitions: Partitions to look up.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; 0 never succeeds,
                since a response takes time.

        Raises:
            UnknownTopicOrPartitionError: The brokers have confirmed that one does not exist.
            KafkaTimeoutError: The offsets were not found in time.
            TopicAuthorizationError: Not authorized to read a topic.
        """
        steps = self._core.beginning_offsets(partitions, timeout)
        return self._run("beginning_offsets", steps, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record of each partition.

        With ``isolation_level="read_committed"`` that is the last stable offset. Arguments and
        errors are those of `beginning_offsets`.
        """
        return self._run("end_offsets", self._core.end_offsets(partitions, timeout), timeout)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after a time in each partition, None if there is none.

        Args:
            timestamps: Milliseconds since the epoch, or a datetime with a time zone, by partition.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; 0 never succeeds,
                since a response takes time.

        Raises:
            UnknownTopicOrPartitionError: The brokers have confirmed that one does not exist.
            KafkaTimeoutError: The offsets were not found in time.
            TopicAuthorizationError: Not authorized to read a topic.
        """
        steps = self._core.offsets_for_times(timestamps, timeout)
        return self._run("offsets_for_times", steps, timeout)

    def lag(self, partition: TopicPartition) -> int:
        """Return the number of offsets between the position and the end of the readable log.

        The end is that of the last fetch; before the first fetch it is looked up. May be called
        from any thread; it does not wait if another thread uses the consumer.

        Raises:
            IllegalStateError: The partition is not assigned; or another thread uses the consumer,
                and has not fetched from the partition yet.
            KafkaTimeoutError: Position or end offset was not found in time.
        """
        known = self._core.known_lag(partition)
        return self._run("lag", self._core.lag(partition)) if known is None else known

    # --- commits

    def commit(
        self,
        offsets: CommitOffsets | None = None,
        timeout: float | None = None,
        **_unknown: Never,
    ) -> None:
        """Commit offsets and wait for the response.

        Retriable errors are retried until the timeout.

        Args:
            offsets: Offset of the next record to read, by partition; or a processed record, which
                commits the offset after it; None commits the positions of all assigned partitions:
                after the last records returned. A member that uses `subscribe` cannot commit
                revoked partitions, whose offsets belong to their new owners; a consumer of the
                group that uses `assign` can, while the group has no members.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; 0 sends the request
                and raises KafkaTimeoutError, since the response takes time.

        Raises:
            CommitFailedError: The consumer is not a member of the group any more, or one of the
                partitions was revoked; nothing was committed.
            RebalanceInProgressError: The group is rebalancing; `poll`, then commit again.
            FencedInstanceIdError: Another consumer uses the same ``group.instance.id``.
            UnknownTopicOrPartitionError: The brokers have confirmed that a partition does not
                exist; nothing was committed for it.
            KafkaTimeoutError: There was no response in time; the outcome is unknown.
            IllegalStateError: There is no ``group_id``.
            InvalidTypeError: An argument has the wrong type.
            InvalidArgumentError: An offset is negative.
        """
        refuse_keywords("Consumer.commit", _unknown, COMMIT)
        self._run("commit", self._core.commit(offsets, timeout), timeout)

    def commit_async(
        self, offsets: CommitOffsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit offsets without waiting; asynchronous commits keep their order.

        Args:
            offsets: As for `commit`.
            callback: Called with the offsets and the error or None, inside a later call of this
                consumer. Failed commits are not retried, since a later commit may have succeeded.

        Raises:
            IllegalStateError: There is no ``group_id``.
            InvalidTypeError: An argument has the wrong type.
            InvalidArgumentError: An offset is negative.
        """
        self._core.commit_async(offsets, callback)

    def committed(
        self,
        partitions: Iterable[TopicPartition],
        timeout: float | None = None,
        **_unknown: Never,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of the group, None for partitions without.

        Args:
            partitions: Partitions to look up; they need not be assigned.
            timeout: Longest wait, seconds; None is ``default.api.timeout.ms``; with 0, repeated
                calls for the same partitions return the response once it has arrived.

        Raises:
            IllegalStateError: There is no ``group_id``.
            KafkaTimeoutError: There was no response in time.
        """
        refuse_keywords("Consumer.committed", _unknown, TIMEOUT)
        return self._run("committed", self._core.committed(partitions, timeout), timeout)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata that a transactional producer needs to commit offsets.

        If the membership has ended since the last assignment, the producer's call fails.

        Raises:
            IllegalStateError: There is no ``group_id``.
        """
        return self._core.group_metadata()

    # --- lifecycle

    def wakeup(self) -> None:
        """Make the call in progress, or the next that waits, raise `WakeupError`.

        May be called from any thread and from signal handlers.

        Raises:
            ForkedClientError: The consumer was created in another process.
        """
        self._core.wakeup()

    def metrics(self) -> dict[str, float]:
        """Return metrics under Kafka's names; may be called from any thread.

        An iteration counts its records every 100 ms.
        """
        return self._core.metrics_snapshot()

    @property
    def client_id(self) -> str:
        """The ``client.id`` that brokers receive."""
        return self._core.client_id

    @property
    def enable_auto_commit(self) -> bool:
        """Whether the consumer commits offsets by itself (``enable.auto.commit``)."""
        return self._core.enable_auto_commit

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Trace records, or none any more; used by `kclient.journey.Journey`. For any thread."""
        self._core.set_tracer(tracer)

    def close(self, timeout: float | None = _CLOSE_TIMEOUT_S, **_unknown: Never) -> None:
        """Commit if auto-commit is enabled, revoke the partitions, leave the group, and disconnect.

        If another thread is in a call, this is woken as by `wakeup`, and awaited; records that its
        `poll` returns nevertheless are not committed. A second call does nothing, and neither does
        a call in a forked child. Failures are logged; only the error of an application's callback
        is raised, at the end.

        Args:
            timeout: Longest time for all of it, seconds; None is ``default.api.timeout.ms``.

        Raises:
            ConcurrentAccessError: The call of another thread did not end in time, since it runs
                code of the application.
        """
        refuse_keywords("Consumer.close", _unknown, CLOSE)
        run_steps(self._core.close(timeout), self._core.clock)

    def __enter__(self) -> Self:
        """Return the consumer; the end of the block closes it.

        Raises:
            ClosedError: It is closed.
        """
        with self._core.call():
            return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:  # the last records may not have been processed
            self._core.skip_last_commit()
        self.close()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # Modules may be gone at interpreter shutdown, hence the default argument.
        core = getattr(self, "_core", None)  # missing if the constructor has failed
        if core is None or core.is_closed():
            return
        core.stop_background()
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        core = getattr(self, "_core", None)  # missing if the constructor has failed
        if core is None:
            return "<Consumer>"
        return f"<Consumer of {core.describe()}{', closed' if core.is_closed() else ''}>"

    def _run(self, call: str, steps: Steps[R], timeout: float | None = None) -> R:
        """Make a call in the calling thread, unless it may wait there and runs an event loop."""
        core = self._core
        if (timeout is None or timeout > 0) and is_inside_event_loop() and not core.lock.is_held():
            hint = _HINT_ON_CANCELLING.get(call, "") + _AWAITED
            refuse_in_event_loop(call, f"consumer.{call}, …", hint=hint)
        with deferred_signals():  # as `run_steps`, with fewer Python calls
            return perform(steps, core.clock)

    def _fetch_pending(self) -> None:
        if self._core.closed:
            raise StopIteration
        self._run("poll", self._core.fetch_pending())
