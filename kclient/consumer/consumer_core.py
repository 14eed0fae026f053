"""Core of the consumer: its parts, and its calls in steps."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kclient.common.arguments import check_callback, check_timeout
from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
    InvalidArgumentError,
    KafkaError,
)
from kclient.common.event_loop import may_be_awaited
from kclient.common.interrupts import deferred_signals
from kclient.common.log_context import LogContext
from kclient.common.metrics import Metrics
from kclient.common.offsets import check_partition
from kclient.common.runtime import Runtime
from kclient.common.types import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
    check_topic_name,
)
from kclient.common.uuids import uuid_to_text
from kclient.common.waiting import NetworkWait, Steps, perform
from kclient.consumer.arguments import (
    CommitOffsets,
    check_commit,
    check_each,
    check_max_records,
    check_partitions,
    check_pattern,
    check_seek,
    check_timestamps,
    check_topics,
)
from kclient.consumer.auto_offset_reset import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    AutoOffsetReset,
)
from kclient.consumer.collected import Collected, CollectedColumns, CollectedRecords
from kclient.consumer.commits import CommitCallback, Offsets
from kclient.consumer.committed_offsets import Committed
from kclient.consumer.consumer_config import READ_COMMITTED, ConsumerConfig
from kclient.consumer.consumer_lock import ConsumerLock
from kclient.consumer.consumer_metrics import (
    ConsumerFetchMetrics,
    ConsumerRequestMetrics,
    seconds_since,
)
from kclient.consumer.consumer_network_client import CLIENT_ID, ConsumerNetworkClient
from kclient.consumer.consumer_records import ConsumerRecords, Receipt
from kclient.consumer.fetching import Fetching
from kclient.consumer.group import Group
from kclient.consumer.interceptors import ConsumerInterceptors
from kclient.consumer.poll_loop import PollLoop
from kclient.consumer.positions import Positions
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.subscription_state import SubscriptionState, SubscriptionType
from kclient.consumer.topic_partition_state import TopicPartitionState
from kclient.record import ConsumerRecord
from kclient.record.arrow import record_schema, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

C = TypeVar("C", bound=Collected)
R = TypeVar("R")

# Interval at which an iteration runs coordinator and auto-commit work.
_ITERATION_TICK_MS = 100.0
_POLL_TIMEOUT_MS = 1000.0
_ALL = 2**31 - 1
_BEING_TAKEN = object()
_instances = count(1)
# Longest wait until a task that was cancelled releases the result of its poll.
_RECEIPT_WAIT_MS = 50.0
_RECEIPT_LOOK_MS = 1.0


class CallWithLock(deferred_signals):
    """Context of a call: holds the lock; signals take effect where the call waits, or after it."""

    __slots__ = ("_core",)

    def __init__(self, core: "ConsumerCore") -> None:
        self._core = core

    def __enter__(self) -> None:
        super().__enter__()
        try:
            self._core.begin_call()
        except BaseException as error:
            super().__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._core.end_call()
        finally:
            super().__exit__(kind, error, trace)


class ConsumerCore:
    """State and calls of a consumer. Opens no connection and starts no task before the first call.

    Calls take the arguments of `Consumer`, and check them before the first step. A call that waits
    returns its steps, which hold the lock; a driver performs their waits.
    The methods under "any thread" take no lock; attributes that they read are replaced as a whole,
    never changed in place.

    Attributes:
        client_id: The ``client.id`` that brokers receive.
        enable_auto_commit: Whether the consumer commits offsets by itself.
        clock: Clock.
        log_context: Creates loggers of this consumer.
        lock: Is held during calls.
        subscriptions: Subscription and assignment.
        network: Requests and metadata.
        group: Membership and commits, None without ``group.id``.
        positions: Fetch positions.
        fetching: Fetches and fetched records.
        loop: Loop of polls.
        closed: Whether the consumer is closed.
        pending: Records of the iteration; those from `next_pending` on are not returned yet.
        next_pending: Index of the next record of the iteration.
        next_tick_ms: Time at which the iteration enters a call again.
        unreturned: Result of a poll that is not returned to its caller yet.
        tracer: Receives the start and the end of polls, or None.
    """

    def __init__(self, config: ConsumerConfig, runtime: Runtime) -> None:
        self._config = config
        self.client_id = config.client_id or CLIENT_ID
        self.clock, self._tasks = runtime.clock, runtime.tasks
        self.lock = lock = ConsumerLock(runtime.tasks)
        self.log_context = log_context = _log_context(config)
        self._metrics = metrics = Metrics(
            runtime.clock,
            runtime.tasks,
            num_samples=config.metrics_num_samples,
            sample_window_ms=config.metrics_sample_window_ms,
        )
        self._interceptors = interceptors = ConsumerInterceptors(
            config.interceptor_classes, lock.run_user_code, log_context
        )
        self.subscriptions = subscriptions = SubscriptionState(
            config.auto_offset_reset, exclude_internal=config.exclude_internal_topics
        )
        self.network = network = ConsumerNetworkClient(config, runtime, log_context)
        self.group: Group | None = None
        if config.group_id is not None:
            on_committed = interceptors.on_commit
            self.group = Group(
                config, runtime, network, subscriptions, lock, on_committed, metrics, log_context
            )
        committed = None if self.group is None else self.group.committed_offsets
        fetch_metrics = ConsumerFetchMetrics(metrics)
        self.positions = positions = Positions(
            config, runtime, network, subscriptions, committed, fetch_metrics, log_context
        )
        self.fetching = fetching = Fetching(
            config, runtime, network, subscriptions, fetch_metrics, log_context
        )
        self.loop = PollLoop(
            config, runtime, network, self.group, positions, fetching, lock, metrics, log_context
        )
        self._collector, self._unconfirmed = self.fetching.collector, self.fetching.unconfirmed
        self.enable_auto_commit = config.enable_auto_commit and config.group_id is not None
        self._committed_only = config.isolation_level == READ_COMMITTED
        self._add_gauges()
        self._start()

    def _start(self) -> None:
        self.closed = False
        self.pending: list[ConsumerRecord] = []
        self.next_pending, self.next_tick_ms = 0, 0.0
        self.unreturned: object = None
        self.tracer: RecordTracer | None = None
        # The pending records while they are being put back.
        self._putting_back: tuple[list[ConsumerRecord], int] | None = None
        self._polling, self._may_commit = False, True
        # Thread that closes the consumer: calls of others are refused before they take the lock.
        self._closing_caller: int | None = None

    def _add_gauges(self) -> None:
        gauge, subscriptions = self._metrics.gauge, self.subscriptions
        gauge("fetches-buffered", lambda: len(self.fetching.buffer))
        gauge("assigned-partitions", lambda: len(subscriptions.assigned))
        gauge(
            "records-lag-max",
            partial(subscriptions.largest_lag, committed_only=self._committed_only),
        )
        if self.group is not None:
            requests = ConsumerRequestMetrics(self._metrics)
            self.network.on_response(requests.record)
            since = seconds_since(requests.last_heartbeat_ms, self.clock.monotonic_ms)
            gauge("last-heartbeat-seconds-ago", since)

    # --- calls

    def call(self) -> CallWithLock:
        """Return a context that holds the lock during a call that does not wait."""
        return CallWithLock(self)

    def begin_call(self, *, polls: bool = False) -> None:
        """Acquire the lock, and put back records of an earlier call that were not returned.

        `end_call` must follow. Calls that wait do both in their steps.
        """
        if self._closing_caller is not None:
            self._check_not_closing()
        is_outermost = self.lock.acquire()
        try:
            if self.closed:
                raise ClosedError("this consumer was closed")
            if is_outermost:
                if self.unreturned is not None:
                    self.put_back_unreturned()
                if self._unconfirmed.has_unread():
                    self._unconfirmed.undo_lost()
            if self.pending:
                self._put_back()
            if polls:
                self._begin_poll()
        except BaseException:
            self.lock.release()
            raise

    def put_back_unreturned(self) -> None:
        """Put back records of a poll that were not returned; they count as not received."""
        # First, without a call in between: the other poll returns no records then.
        self.unreturned = None
        self.fetching.undo()

    def end_call(self, *, polls: bool = False) -> None:
        """Release the lock."""
        if polls:
            self._polling = False
        self.lock.release()

    def _in_call(self, steps: Steps[R]) -> Steps[R]:
        self.begin_call()
        try:
            return (yield from steps)
        finally:
            self.end_call()

    def _deadline_ms(self, timeout: float | None) -> float:
        """Return the deadline of a call, by ``default.api.timeout.ms`` for None."""
        timeout_ms = check_timeout(timeout, default_ms=self._config.default_api_timeout_ms)
        return self.clock.monotonic_ms() + timeout_ms

    # --- polls

    def poll(
        self, timeout: float | None, max_records: int | None
    ) -> Steps[ConsumerRecords[Any, Any] | None]:
        """Return records, None if there are none; see `Consumer.poll`.

        Until the caller clears `unreturned`, the next call puts the records back.
        """
        target = CollectedRecords(check_max_records(max_records, self._config.max_poll_records))
        timeout_ms = check_timeout(timeout, default_ms=_POLL_TIMEOUT_MS)
        return self._poll(target, self._take_records, timeout_ms)

    def poll_columns(
        self, timeout: float | None, max_records: int | None
    ) -> "Steps[pa.RecordBatch | None]":
        """Return records as columns, None if there are none; see `Consumer.poll_columns`.

        Until the caller clears `unreturned`, the next call puts the records back.
        """
        limit = check_max_records(max_records, _ALL)
        record_schema()  # raises without pyarrow, before any record is taken
        target = CollectedColumns(limit, single=max_records is None)
        timeout_ms = check_timeout(timeout, default_ms=_POLL_TIMEOUT_MS)
        return self._poll(target, self._take_columns, timeout_ms)

    def fetch_pending(self) -> Steps[None]:
        """Fetch the next records of the iteration, and wait for them without limit."""
        while True:
            target = CollectedRecords(self._config.max_poll_records, single=True)
            yield from self._poll(target, self._set_pending, _POLL_TIMEOUT_MS)
            if self.pending:
                return

    def _poll(self, target: C, finish: Callable[[C], R], timeout_ms: float) -> Steps[R | None]:
        """Collect records into `target`, waiting for them, and return `finish(target)`."""
        self.begin_call(polls=True)
        try:
            if (tracer := self.tracer) is not None:
                tracer.poll_started()
            if self._unconfirmed.held:
                yield from self._await_receipts()
            found = self.loop.take_buffered(target)
            if not found:
                found = yield from self.loop.poll(target, timeout_ms)
            self.unreturned = result = finish(target) if found else None
            if found and (tracer := self.tracer) is not None:  # set by another thread
                tracer.poll_returned()
        finally:
            self.end_call(polls=True)
        return result

    def _take_records(self, collected: CollectedRecords) -> ConsumerRecords[Any, Any]:
        """Count collected records as consumed, and return them after the interceptors."""
        self._collector.count(collected.count)
        records = self._intercepted(collected)
        # A new receipt: interceptors may have used the records.
        self._unconfirmed.last = records.receipt = receipt = Receipt(records)
        receipt.is_read = False
        return records

    def _take_columns(self, collected: CollectedColumns) -> "pa.RecordBatch":
        """Count collected columns as consumed, and return them as an Arrow batch."""
        self._collector.count(collected.count)
        return to_arrow(collected.pieces)

    def _begin_poll(self) -> None:
        if self._polling:
            raise IllegalStateError("poll was called from within one of its callbacks")
        if self.subscriptions.kind is SubscriptionType.NONE:
            raise IllegalStateError("poll: nothing to read; call subscribe() or assign() first")
        if self.group is not None and self.subscriptions.is_group_managed():
            self.group.heartbeats.start(self._tasks, "kclient-consumer-heartbeat")
        self._unconfirmed.begin_poll()
        self.unreturned = _BEING_TAKEN
        self._polling = True

    def _set_pending(self, collected: CollectedRecords) -> None:
        records = list(self._intercepted(collected))
        self.next_tick_ms = self.clock.monotonic_ms() + _ITERATION_TICK_MS
        self.pending, self.next_pending, self.unreturned = records, 0, None

    def _intercepted(self, collected: CollectedRecords) -> ConsumerRecords[Any, Any]:
        if self._interceptors.any:
            return self._interceptors.on_consume(collected.by_partition, collected.again)
        return ConsumerRecords(collected.by_partition)

    def _put_back(self) -> None:
        """Put back the records of the iteration that are not returned yet."""
        # No call in this line: from here on no other thread gets one of them, see `__next__`.
        self._putting_back, self.pending = (self.pending, self.next_pending), []
        self._collector.put_back(*self._putting_back)
        self._putting_back = None

    # --- subscription and assignment

    def subscribe(
        self,
        topics: str | Iterable[str] | None,
        pattern: str | re.Pattern[str] | None,
        listener: RebalanceListener,
    ) -> None:
        """Subscribe to topics, or to those that match a pattern; an empty list unsubscribes."""
        if (topics is None) == (pattern is None):
            raise InvalidArgumentError("subscribe: expected either topics or pattern")
        names = [] if topics is None else check_topics(topics)
        compiled = None if pattern is None else check_pattern(pattern)
        with self.call():
            if names or compiled is not None:
                self._subscribe(names, compiled, listener)
            else:
                self._unsubscribe_at_once("subscribe: got no topics")

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions; an empty list unsubscribes."""
        checked = check_partitions(partitions)
        with self.call():
            if checked:
                self._assign(checked)
            else:
                self._unsubscribe_at_once("assign: got no partitions")

    def unsubscribe(self) -> Steps[None]:
        """Remove subscription and assignment, and leave the group."""
        return self._in_call(self._unsubscribe())

    def set_paused(
        self, call: str, partitions: tuple[TopicPartition, ...], *, paused: bool
    ) -> None:
        """Pause or resume partitions."""
        checked = check_each(call, partitions)
        with self.call():
            self._set_paused(checked, paused=paused)

    def _subscribe(
        self, topics: list[str], pattern: re.Pattern[str] | None, listener: RebalanceListener
    ) -> None:
        membership = self._the_group("subscribe").membership
        if pattern is None:
            self.subscriptions.subscribe(topics, listener)
            version = self.network.metadata.set_topics(self.subscriptions.metadata_topics())
        else:
            self.subscriptions.subscribe_pattern(pattern, listener)
            self.network.metadata.set_topics(())
            version = self.network.metadata.set_topic_filter(self.subscriptions.accepts)
        membership.subscription_changed(version)
        self.loop.service_at_next_poll()

    def _assign(self, partitions: list[TopicPartition]) -> None:
        if self.subscriptions.is_group_managed():
            raise IllegalStateError(
                f"assign while {self.subscriptions.describe_kind()} is in use; "
                "the two exclude each other: call unsubscribe() first"
            )
        if self.group is not None:
            self.group.queue_last_commit()
        self.subscriptions.assign_from_user(partitions)
        self.fetching.buffer.retain(self.subscriptions.assigned)
        self.network.metadata.set_topics(self.subscriptions.topics)
        self.loop.service_at_next_poll()

    def _unsubscribe_at_once(self, given: str) -> None:
        if self.subscriptions.listener.must_be_awaited():
            raise IllegalStateError(
                f"{given}, which unsubscribes, while on_revoked or on_lost is a coroutine "
                "function; use await consumer.unsubscribe()"
            )
        perform(self._unsubscribe(), self.clock)

    def _unsubscribe(self) -> Steps[None]:
        if self.group is not None:
            self.group.queue_last_commit()
        try:
            if self.group is not None:
                yield from self.group.leave()
        finally:
            self.subscriptions.unsubscribe()
            self.fetching.buffer.clear()
            self.network.metadata.set_topic_filter(None)
            self.network.metadata.set_topics(())
            self.loop.service_at_next_poll()

    def _set_paused(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        states = [self.subscriptions.state(partition) for partition in partitions]
        for state in states:
            state.set_paused(paused=paused)
            self.fetching.buffer.follow_pause(state)
        self.loop.service_at_next_poll()

    # --- positions

    def position(self, partition: TopicPartition, timeout: float | None) -> Steps[int]:
        """Return the position of a partition, and wait until it is known."""
        checked = check_partition(partition)
        return self._in_call(self.positions.find(checked, self._deadline_ms(timeout)))

    def lag(self, partition: TopicPartition) -> Steps[int]:
        """Return the lag of a partition, and wait until position and end offset are known."""
        return self._in_call(self._lag(check_partition(partition)))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Look up the first offset of each partition."""
        checked = dict.fromkeys(check_partitions(partitions), EARLIEST_TIMESTAMP)
        return self._in_call(self.positions.look_up_ends(checked, self._deadline_ms(timeout)))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Look up the offset after the last readable record of each partition."""
        checked = dict.fromkeys(check_partitions(partitions), LATEST_TIMESTAMP)
        return self._in_call(self.positions.look_up_ends(checked, self._deadline_ms(timeout)))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """Look up the first offset at or after a time in each partition."""
        checked = check_timestamps(timestamps)
        return self._in_call(self.positions.look_up(checked, self._deadline_ms(timeout)))

    def seek(
        self, partition: TopicPartition, offset: int | OffsetAndMetadata | OffsetAndTimestamp
    ) -> None:
        """Set the position of a partition."""
        checked = check_partition(partition)
        target = check_seek(checked, offset)
        with self.call():
            self._seek(checked, target.offset, target.leader_epoch)

    def reset(
        self, call: str, policy: AutoOffsetReset, partitions: tuple[TopicPartition, ...]
    ) -> None:
        """Reset the positions of partitions, of all assigned ones if there are none."""
        checked = check_each(call, partitions)
        with self.call():
            self._reset(policy, checked)

    def _lag(self, partition: TopicPartition) -> Steps[int]:
        position = yield from self.positions.find(partition, self._deadline_ms(None))
        lag = self.subscriptions.state(partition).lag(committed_only=self._committed_only)
        if lag is not None:
            return lag
        end = {partition: LATEST_TIMESTAMP}
        ends = yield from self.positions.look_up_ends(end, self._deadline_ms(None))
        return max(0, ends[partition] - position)

    def _seek(self, partition: TopicPartition, offset: int, leader_epoch: int) -> None:
        self.positions.seek(partition, offset, leader_epoch)
        self._unconfirmed.clear()
        self.fetching.buffer.drop(partition)
        self.loop.service_at_next_poll()

    def _reset(self, policy: AutoOffsetReset, partitions: list[TopicPartition]) -> None:
        chosen = partitions or list(self.subscriptions.assigned)
        self.positions.reset(policy, chosen)
        for partition in chosen:
            self.fetching.buffer.drop(partition)
        self._unconfirmed.clear()
        self.loop.service_at_next_poll()

    # --- commits

    def commit(self, offsets: CommitOffsets | None, timeout: float | None) -> Steps[None]:
        """Commit offsets, or all positions for None, and wait for the response."""
        checked = None if offsets is None else check_commit(offsets)
        return self._in_call(self._commit(checked, self._deadline_ms(timeout)))

    def commit_async(self, offsets: CommitOffsets | None, callback: CommitCallback | None) -> None:
        """Commit offsets, or all positions for None, without waiting."""
        checked = None if offsets is None else check_commit(offsets)
        check_callback("callback", callback, "a callable (offsets, error)")
        with self.call():
            group = self._the_group("commit_async")
            group.commit_async(self._consumed() if checked is None else checked, callback)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[Committed]:
        """Look up committed offsets."""
        checked = check_partitions(partitions)
        return self._in_call(self._committed(checked, self._deadline_ms(timeout)))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata for a transactional producer."""
        with self.call():
            return self._the_group("group_metadata").membership.metadata()

    def _commit(self, offsets: Offsets | None, deadline_ms: float) -> Steps[None]:
        group = self._the_group("commit")
        if offsets is None:
            yield from self._await_receipts()
        chosen = self._consumed() if offsets is None else offsets
        yield from group.commit(chosen, deadline_ms)

    def _committed(
        self, partitions: Sequence[TopicPartition], deadline_ms: float
    ) -> Steps[Committed]:
        group = self._the_group("committed")
        return (yield from group.committed(partitions, deadline_ms))

    def _the_group(self, call: str) -> Group:
        if self.group is None:
            raise IllegalStateError(f"{call}: got no group, expected a consumer with group_id")
        return self.group

    def _await_receipts(self) -> Steps[None]:
        """Wait shortly while an event loop may still discard the result of a cancelled poll."""
        until_ms = self.clock.monotonic_ms() + _RECEIPT_WAIT_MS
        while self._unconfirmed.has_unread() and may_be_awaited():
            now_ms = self.clock.monotonic_ms()
            if now_ms >= until_ms:
                return
            yield NetworkWait(self.network, min(now_ms + _RECEIPT_LOOK_MS, until_ms))
            self._unconfirmed.undo_lost()

    def _consumed(self) -> Offsets:
        """Return the positions to commit; the records before them count as received."""
        self._unconfirmed.clear()
        return self.subscriptions.all_consumed()

    # --- closing

    def skip_last_commit(self) -> None:
        """Make `close` commit no positions automatically."""
        self._may_commit = False

    def close(self, timeout: float | None) -> Steps[None]:
        """Commit, leave the group and disconnect; raise the first error of a callback.

        The call of another thread is woken and awaited first; what a woken poll returns counts as
        not received. From then on, calls of other threads raise ClosedError.
        """
        return self.close_until(self._deadline_ms(timeout))

    def close_until(self, deadline_ms: float) -> Steps[None]:
        """Close as `close`, with a deadline in the clock's milliseconds."""
        if self.is_closed():
            return
        yield from self._end_other_call(deadline_ms)
        if not self.is_closed():
            yield from self._in_call(self._close_in_call(deadline_ms))

    def _end_other_call(self, deadline_ms: float) -> Steps[None]:
        if not self.lock.is_held_elsewhere():
            return
        if self._closing_caller is None:
            self._closing_caller = self._tasks.caller_id()
            self.network.wakeup()
        was_polling = self._polling
        yield from self.lock.await_release(deadline_ms)
        if self.lock.is_held_elsewhere():
            if self._closing_caller == self._tasks.caller_id():
                self._closing_caller = None
            raise ConcurrentAccessError(
                "close: the call of another thread did not end in time; the consumer is not closed"
            )
        if was_polling and not self.closed:
            with self.call():
                self.fetching.undo()

    def _close_in_call(self, deadline_ms: float) -> Steps[None]:
        self._closing_caller = self._tasks.caller_id()
        with suppress(KafkaError):  # which must not keep the consumer from being closed
            yield from self._await_receipts()
        first: BaseException | None = None
        for step in self._closing_steps(deadline_ms):
            try:
                yield from step() or ()
            except GeneratorExit:  # the event loop has ended: nothing can be awaited
                raise
            except BaseException as error:  # noqa: BLE001 (raised after the last step)
                first = first or error
        self.closed = True
        if first is not None:
            raise first

    def _closing_steps(self, deadline_ms: float) -> list[Callable[[], Steps[None] | None]]:
        """Return the steps of closing; each runs even if an earlier one failed."""
        group = self.group
        steps: list[Callable[[], Steps[None] | None]] = [self.network.forget_wakeup]
        if group is not None:
            steps.append(partial(group.commit_last, deadline_ms, may_commit=self._may_commit))
            steps += [group.revoke_all, partial(group.leave_at_close, deadline_ms)]
        steps.append(self.fetching.close)
        if group is not None:
            steps.append(partial(group.heartbeats.stop, deadline_ms))
        steps += [self.network.close, self.network.metadata.close, self._interceptors.close]
        return steps

    # --- any thread

    def known_position(self, partition: TopicPartition) -> int | None:
        """Return a valid position without the lock if another thread uses the consumer."""
        partition = check_partition(partition)
        self._check_open()
        if not self.lock.is_used_elsewhere():
            return None
        state = self.subscriptions.state(partition)
        offset, position = self._first_pending_offset(partition), state.position
        if not state.has_valid_position() or position is None:
            return None
        return position.offset if offset is None else offset

    def known_lag(self, partition: TopicPartition) -> int | None:
        """Return a lag without the lock if another thread uses the consumer, else None.

        Raises:
            IllegalStateError: Nothing was fetched from the partition yet.
        """
        partition = check_partition(partition)
        self._check_open()
        if not self.lock.is_used_elsewhere():
            return None
        state = self.subscriptions.state(partition)
        offset = self._first_pending_offset(partition)
        lag = state.lag(committed_only=self._committed_only, offset=offset)
        if lag is None:
            raise IllegalStateError(
                f"lag of {partition}: not known yet; another thread uses this consumer, and "
                "has not fetched from the partition yet"
            )
        return lag

    def assigned(self) -> dict[TopicPartition, TopicPartitionState]:
        """Return the state of each assigned partition."""
        self._check_open()
        return self.subscriptions.assigned

    def subscribed_topics(self) -> set[str]:
        """Return the subscribed topics."""
        self._check_open()
        managed = self.subscriptions.is_group_managed()
        return set(self.subscriptions.topics) if managed else set()

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Report the steps of records to a tracer, or to none any more."""
        self.tracer = tracer
        self.fetching.set_tracer(tracer)
        if self.group is not None:
            self.group.commits.tracer = tracer

    def metrics_snapshot(self) -> dict[str, float]:
        """Return the metrics."""
        self._check_open()
        self.loop.flush_metrics()
        return self._metrics.snapshot()

    def wakeup(self) -> None:
        """Make the call in progress, or the next that waits, raise `WakeupError`."""
        self.lock.check_process()
        self.network.wakeup()

    def is_closed(self) -> bool:
        """Return whether it is closed, or belongs to the parent process."""
        return self.closed or self.lock.is_foreign_process()

    def stop_background(self) -> None:
        """Stop the heartbeat task of a consumer that was never closed."""
        self.lock.stop()

    def describe(self) -> str:
        """Return group and subscription."""
        group_id = self._config.group_id
        name = "no group" if group_id is None else f"group {group_id!r}"
        return f"{name}, {self.subscriptions.describe()}"

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic in the metadata, None if it has none."""
        checked = check_topic_name(topic)
        self._check_open()
        found = self.network.metadata.cluster().topic_id(checked)
        return None if found is None else uuid_to_text(found)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {partition for partition, state in self.assigned().items() if state.paused}

    def _check_not_closing(self) -> None:
        if self.closed:
            raise ClosedError("this consumer was closed")
        if self._closing_caller != self._tasks.caller_id():
            raise ClosedError("this consumer is being closed by another thread")

    def _check_open(self) -> None:
        self.lock.check_process()
        if self.closed:
            raise ClosedError("this consumer was closed")

    def _first_pending_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset of the iteration's next record, None without one."""
        records, index = self._putting_back or (self.pending, self.next_pending)
        if index < len(records) and records[index].topic_partition == partition:
            return records[index].offset
        return None


def used_by_another_thread(call: str) -> ConcurrentAccessError:
    """Return the error of a poll whose records another thread got."""
    return ConcurrentAccessError(
        f"{call}: another thread called this consumer during the call and gets these records; "
        "a consumer must be used by one thread at a time"
    )


def _log_context(config: ConsumerConfig) -> LogContext:
    client_id = config.client_id
    names: dict[str, str | None] = {"clientId": client_id or CLIENT_ID}
    if not client_id:  # consumers of one process still differ in their log lines
        names["instance"] = str(next(_instances))
    names["groupId"] = config.group_id
    return LogContext("Consumer", names)
