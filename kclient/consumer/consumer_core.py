"""Core of the consumer: what its calls do once their arguments are valid and the lock is held."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from kclient.client.client_metadata import ConsumerMetadata
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.arguments import check_timeout
from kclient.common.errors import (
    ClosedError,
    ConcurrentAccessError,
    IllegalStateError,
    KafkaError,
)
from kclient.common.event_loop import (
    is_inside_event_loop,
    may_be_awaited,
    refuse_in_event_loop,
)
from kclient.common.interrupts import deferred_signals
from kclient.common.metrics import Metrics
from kclient.common.runtime import Clock, Tasks
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.common.waiting import NetworkWait, Steps, perform
from kclient.consumer.auto_offset_reset import AutoOffsetReset
from kclient.consumer.closing import Closing
from kclient.consumer.collected import Collected, CollectedColumns, CollectedRecords
from kclient.consumer.commit_calls import CommitCalls
from kclient.consumer.commits import Offsets
from kclient.consumer.consumer_config import READ_COMMITTED, ConsumerConfig
from kclient.consumer.consumer_lock import Call, ConsumerLock
from kclient.consumer.consumer_metrics import ConsumerCommitMetrics
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.consumer_records import ConsumerRecords, Receipt
from kclient.consumer.fetch_buffer import FetchBuffer
from kclient.consumer.fetch_collector import FetchCollector
from kclient.consumer.fetcher import Fetcher
from kclient.consumer.group import Group
from kclient.consumer.heartbeat_task import HeartbeatTask
from kclient.consumer.interceptors import ConsumerInterceptors
from kclient.consumer.list_offsets_requests import ListOffsetsRequests
from kclient.consumer.missing_partitions import ExistenceCheck
from kclient.consumer.offset_fetcher import OffsetLookup
from kclient.consumer.poll_loop import PollLoop
from kclient.consumer.position_updater import PositionUpdater
from kclient.consumer.rebalance_listener import RebalanceListener
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.subscription_state import SubscriptionState, SubscriptionType
from kclient.consumer.topic_partition_state import (
    FetchPosition,
    TopicPartitionState,
    current_leader,
)
from kclient.consumer.unconfirmed_polls import UnconfirmedPolls
from kclient.record import ConsumerRecord
from kclient.record.arrow import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

C = TypeVar("C", bound=Collected)
R = TypeVar("R")

# Interval at which an iteration runs coordinator and auto-commit work.
_ITERATION_TICK_MS = 100.0
_POLL_TIMEOUT_MS = 1000.0
_BEING_TAKEN = object()
_HINT_ON_CANCELLING = {
    "poll": "a cancelled call continues in its thread: end it by wakeup() or close()",
    "poll_columns": "do not cancel it, its records would be lost: end it by wakeup() or close()",
    "commit": "do not cancel it, its outcome would be unknown",
}
# Longest wait until a task that was cancelled releases the result of its poll.
_RECEIPT_WAIT_MS = 50.0
_RECEIPT_LOOK_MS = 1.0


class ConsumerCore:
    """State and calls of a consumer; `wiring` creates it.

    A call holds the lock: `with core.call(): core.seek(...)`. A call that waits takes a deadline,
    and is made in steps: `core.run(core.position(...))`.
    The methods under "any thread" take no lock; attributes that they read are replaced as a whole,
    never changed in place.

    Attributes:
        client_id: The ``client.id`` that brokers receive.
        closed: Whether the consumer is closed.
        pending: Records of the iteration; those from `next_pending` on are not returned yet.
        next_pending: Index of the next record of the iteration.
        next_tick_ms: Time at which the iteration enters a call again.
        unreturned: Result of a poll that is not returned to its caller yet.
        unconfirmed: Receipts of polls of which it is unknown whether they were received.
        tracer: Receives the start and the end of polls, or None.
    """

    def __init__(
        self,
        *,
        config: ConsumerConfig,
        client_id: str,
        clock: Clock,
        tasks: Tasks,
        lock: ConsumerLock,
        backoff: ExponentialBackoff,
        metrics: Metrics,
        interceptors: ConsumerInterceptors,
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        network: ConsumerNetworkClient,
        buffer: FetchBuffer,
        fetcher: Fetcher,
        collector: FetchCollector,
        offset_requests: ListOffsetsRequests,
        positions: PositionUpdater,
        loop: PollLoop,
        group: Group | None,
        commit_calls: CommitCalls | None,
        commit_metrics: ConsumerCommitMetrics,
        heartbeats: HeartbeatTask | None,
        closing: Closing,
    ) -> None:
        self.config = config
        self.client_id = client_id
        self.clock = clock
        self.tasks = tasks
        self.lock = lock
        self.backoff = backoff
        self.metrics = metrics
        self.interceptors = interceptors
        self.subscriptions = subscriptions
        self.metadata = metadata
        self.network = network
        self.buffer = buffer
        self.fetcher = fetcher
        self.collector = collector
        self.offset_requests = offset_requests
        self.positions = positions
        self.loop = loop
        self.group = group
        self.commit_calls = commit_calls
        self.commit_metrics = commit_metrics
        self.heartbeats = heartbeats
        self.closing = closing
        self._start()

    def _start(self) -> None:
        self.closed = False
        self.pending: list[ConsumerRecord] = []
        self.next_pending, self.next_tick_ms = 0, 0.0
        self.unreturned: object = None
        self.unconfirmed = UnconfirmedPolls(self.collector)
        self.tracer: RecordTracer | None = None
        # The pending records while they are being put back.
        self._putting_back: tuple[list[ConsumerRecord], int] | None = None
        self._polling, self._may_commit = False, True
        # Thread that closes the consumer: calls of others are refused before they take the lock.
        self._closing_caller: int | None = None

    # --- calls

    def call(self) -> Call:
        """Return a context that holds the lock during a call."""
        return Call(self)

    def run(self, steps: Steps[R]) -> R:
        """Make a call in steps, whose waits block the calling thread."""
        with self.call():
            return perform(steps, self.clock)

    def begin_call(self, *, polls: bool = False) -> None:
        """Acquire the lock, and put back records of an earlier call that were not returned.

        A driver of an event loop calls it before the first step of a call, and `end_call` after the
        last one.
        """
        if self._closing_caller is not None:
            self._check_not_closing()
        is_outermost = self.lock.acquire()
        try:
            if self.closed:
                raise ClosedError("this consumer was closed")
            if is_outermost:
                if self.unreturned is not None:
                    # First, without a call in between: the other poll returns no records then.
                    self.unreturned = None
                    self.collector.undo()
                    self.unconfirmed.last = None
                if self.unconfirmed.has_unread():
                    self.unconfirmed.undo_lost()
            if self.pending:
                self._put_back()
            if polls:
                self._begin_poll()
        except BaseException:
            self.lock.release()
            raise

    def end_call(self, *, polls: bool = False) -> None:
        """Release the lock."""
        if polls:
            self._polling = False
        self.lock.release()

    def deadline_ms(self, timeout: float | None, call: str = "") -> float:
        """Return the deadline of a call, by ``default.api.timeout.ms`` for None.

        Args:
            timeout: Seconds.
            call: Name of a call that must not be made in an event loop.
        """
        timeout_ms = check_timeout(timeout, default_ms=self.config.default_api_timeout_ms)
        if call and timeout_ms > 0:
            self.refuse_in_event_loop(call)
        return self.clock.monotonic_ms() + timeout_ms

    def refuse_in_event_loop(self, call: str) -> None:
        """Reject a waiting call in an event loop, unless it is nested in another call."""
        if is_inside_event_loop() and not self.lock.is_held():
            hint = _HINT_ON_CANCELLING.get(call, "")
            refuse_in_event_loop(call, f"consumer.{call}, …", hint=hint)

    # --- polls

    @property
    def max_poll_records(self) -> int:
        """Maximum number of records of a poll, ``max.poll.records``."""
        return self.config.max_poll_records

    def poll(
        self, name: str, target: C, finish: Callable[[C], R], timeout: float | None
    ) -> R | None:
        """Collect records into `target`, waiting for them, and return `finish(target)`.

        Until the caller clears `unreturned`, the next call puts the records back.
        """
        timeout_ms = check_timeout(timeout, default_ms=_POLL_TIMEOUT_MS)
        if timeout_ms > 0:
            self.refuse_in_event_loop(name)
        with deferred_signals():  # as in `call`, with fewer Python calls
            self.begin_call(polls=True)
            try:
                if (tracer := self.tracer) is not None:
                    tracer.poll_started()
                if self.unconfirmed.held:
                    perform(self._await_receipts(), self.clock)
                found = self.loop.take_buffered(target) or perform(
                    self.loop.poll(target, timeout_ms), self.clock
                )
                self.unreturned = result = finish(target) if found else None
                if found and (tracer := self.tracer) is not None:  # set by another thread
                    tracer.poll_returned()
            finally:
                self.end_call(polls=True)
        return result

    def take_records(self, collected: CollectedRecords) -> ConsumerRecords[Any, Any]:
        """Count collected records as consumed, and return them after the interceptors."""
        self.collector.count(collected.count())
        records = self._intercepted(collected)
        # A new receipt: interceptors may have used the records.
        self.unconfirmed.last = records.receipt = receipt = Receipt(records)
        receipt.is_read = False
        return records

    def take_columns(self, collected: CollectedColumns) -> "pa.RecordBatch":
        """Count collected columns as consumed, and return them as an Arrow batch."""
        self.collector.count(collected.count())
        return to_arrow(collected.pieces)

    def fetch_pending(self) -> None:
        """Fetch the next records of the iteration."""
        if self.closed:
            raise StopIteration
        limit = self.config.max_poll_records
        while True:
            target = CollectedRecords(limit, single=True)
            self.poll("poll", target, self._set_pending, None)
            if self.pending:
                return

    def _begin_poll(self) -> None:
        if self._polling:
            raise IllegalStateError("poll was called from within one of its callbacks")
        if self.subscriptions.kind is SubscriptionType.NONE:
            raise IllegalStateError("poll: nothing to read; call subscribe() or assign() first")
        if self.heartbeats is not None and self.subscriptions.is_group_managed():
            self.heartbeats.start(self.tasks, "kclient-consumer-heartbeat")
        self.unconfirmed.begin_poll()
        self.unreturned = _BEING_TAKEN
        self._polling = True

    def _set_pending(self, collected: CollectedRecords) -> None:
        records = list(self._intercepted(collected))
        self.next_tick_ms = self.clock.monotonic_ms() + _ITERATION_TICK_MS
        self.pending, self.next_pending, self.unreturned = records, 0, None

    def _intercepted(self, collected: CollectedRecords) -> ConsumerRecords[Any, Any]:
        if self.interceptors.any:
            return self.interceptors.on_consume(collected.by_partition, collected.again)
        return ConsumerRecords(collected.by_partition)

    def _put_back(self) -> None:
        """Put back the records of the iteration that are not returned yet."""
        # No call in this line: from here on no other thread gets one of them, see `__next__`.
        self._putting_back, self.pending = (self.pending, self.next_pending), []
        self.collector.put_back(*self._putting_back)
        self._putting_back = None

    # --- subscription and assignment

    def subscribe(
        self, topics: list[str], pattern: re.Pattern[str] | None, listener: RebalanceListener
    ) -> None:
        """Subscribe to topics, or to those that match a pattern."""
        membership = self.the_group("subscribe").membership
        if pattern is None:
            self.subscriptions.subscribe(topics, listener)
            version = self.metadata.set_topics(self.subscriptions.metadata_topics())
        else:
            self.subscriptions.subscribe_pattern(pattern, listener)
            self.metadata.set_topics(())
            version = self.metadata.set_topic_filter(self.subscriptions.accepts)
        membership.subscription_changed(version)
        self.loop.service_at_next_poll()

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign exactly these partitions."""
        if self.subscriptions.is_group_managed():
            raise IllegalStateError(
                f"assign while {self.subscriptions.describe_kind()} is in use; "
                "the two exclude each other: call unsubscribe() first"
            )
        if self.group is not None:
            self.group.queue_last_commit()
        self.subscriptions.assign_from_user(partitions)
        self.buffer.retain(self.subscriptions.assigned)
        self.metadata.set_topics(self.subscriptions.topics)
        self.loop.service_at_next_poll()

    def unsubscribe(self) -> None:
        """Remove subscription and assignment, and leave the group."""
        if self.group is not None:
            self.group.queue_last_commit()
        try:
            self._leave_group()
        finally:
            self.subscriptions.unsubscribe()
            self.buffer.clear()
            self.metadata.set_topic_filter(None)
            self.metadata.set_topics(())
            self.loop.service_at_next_poll()

    def set_paused(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        """Pause or resume partitions."""
        states = [self.subscriptions.state(partition) for partition in partitions]
        for state in states:
            state.set_paused(paused=paused)
            self.buffer.follow_pause(state)
        self.loop.service_at_next_poll()

    def _leave_group(self) -> None:
        if self.group is not None and self.subscriptions.is_group_managed():
            membership = self.group.membership
            try:
                membership.revoke_partitions()
            finally:
                membership.leave("unsubscribed")

    # --- positions

    def position(self, partition: TopicPartition, deadline_ms: float) -> Steps[int]:
        """Return the position of a partition, and wait until it is known."""
        state = self.subscriptions.state(partition)
        existence = ExistenceCheck(self.metadata, [partition])

        def step(now_ms: float) -> float:
            existence.raise_missing(now_ms)
            self.positions.step(now_ms)
            return self.backoff.backoff(0)

        yield from self.loop.wait_for(
            state.has_valid_position, step, deadline_ms, f"position of {partition}"
        )
        if state.position is None:
            raise IllegalStateError(f"{partition} was revoked during the call")
        return state.position.offset

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int) -> None:
        """Set the position of a partition."""
        state = self.subscriptions.state(partition)
        leader = current_leader(self.metadata.cluster(), partition)
        state.seek_unvalidated(FetchPosition(offset, leader_epoch, leader))
        self.unconfirmed.clear()
        self.buffer.drop(partition)
        self.loop.service_at_next_poll()

    def reset(self, policy: AutoOffsetReset, partitions: list[TopicPartition]) -> None:
        """Reset the positions of partitions, of all assigned ones if the list is empty."""
        chosen = partitions or list(self.subscriptions.assigned)
        states = [self.subscriptions.state(partition) for partition in chosen]
        for state in states:
            state.reset(policy, lost=False)
            self.buffer.drop(state.partition)
        self.unconfirmed.clear()
        self.loop.service_at_next_poll()

    def end_lag(self, partition: TopicPartition) -> int | None:
        """Return the lag by the last fetch, None before the first fetch."""
        return self.subscriptions.state(partition).lag(committed_only=self._committed_only())

    def look_up(
        self, timestamps: Mapping[TopicPartition, int], deadline_ms: float
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """Look up the first offset at or after each timestamp, or a special position."""
        lookup = OffsetLookup(timestamps)
        existence = ExistenceCheck(self.metadata, timestamps)

        def step(now_ms: float) -> float:
            existence.raise_missing(now_ms)
            return lookup.step(self.offset_requests, self.backoff, now_ms)

        self.metadata.set_transient_topics({partition.topic for partition in timestamps})
        try:
            yield from self.loop.wait_for(
                lambda: lookup.done,
                step,
                deadline_ms,
                f"offsets of {', '.join(map(str, timestamps))}",
            )
        finally:
            self.metadata.set_transient_topics(())
        return lookup.found

    # --- commits

    def commit(self, offsets: Offsets | None, deadline_ms: float) -> Steps[None]:
        """Commit offsets, or all positions for None, and wait for the response."""
        calls = self._commits("commit")
        if offsets is None:
            yield from self._await_receipts()
        chosen = self._consumed() if offsets is None else offsets
        yield from self.commit_metrics.commit(calls.commit(chosen, deadline_ms))

    def commit_async(
        self, offsets: Offsets | None, callback: "Callable[..., object] | None"
    ) -> None:
        """Commit offsets, or all positions for None, without waiting."""
        calls = self._commits("commit_async")
        calls.commit_async(self._consumed() if offsets is None else offsets, callback)

    def committed(
        self, partitions: Sequence[TopicPartition], deadline_ms: float
    ) -> Steps[dict[TopicPartition, Any]]:
        """Look up committed offsets."""
        member = self.the_group("committed").membership.metadata()
        calls = self._commits("committed")
        steps = calls.committed(partitions, member, deadline_ms)
        return (yield from self.commit_metrics.committed(steps))

    def the_group(self, call: str) -> Group:
        """Return the group; raise `IllegalStateError` without one."""
        if self.group is None:
            raise _no_group(call)
        return self.group

    def _await_receipts(self) -> Steps[None]:
        """Wait shortly while an event loop may still discard the result of a cancelled poll."""
        until_ms = self.clock.monotonic_ms() + _RECEIPT_WAIT_MS
        while self.unconfirmed.has_unread() and may_be_awaited():
            now_ms = self.clock.monotonic_ms()
            if now_ms >= until_ms:
                return
            yield NetworkWait(self.network, min(now_ms + _RECEIPT_LOOK_MS, until_ms))
            self.unconfirmed.undo_lost()

    def _consumed(self) -> Offsets:
        """Return the positions to commit; the records before them count as received."""
        self.unconfirmed.clear()
        return self.subscriptions.all_consumed()

    def _commits(self, call: str) -> CommitCalls:
        if self.commit_calls is None:
            raise _no_group(call)
        return self.commit_calls

    # --- closing

    def skip_last_commit(self) -> None:
        """Make `close` commit no positions automatically."""
        self._may_commit = False

    def end_other_call(self, deadline_ms: float) -> Steps[None]:
        """Before `close`: wake the call of another thread, and wait for its end.

        Later calls of other threads raise ClosedError. What a woken poll returns counts as not
        received.

        Raises:
            ConcurrentAccessError: The call did not end before the deadline.
        """
        if not self.lock.is_held_elsewhere():
            return
        if self._closing_caller is None:
            self._closing_caller = self.tasks.caller_id()
            self.network.wakeup()
        was_polling = self._polling
        yield from self.lock.await_release(deadline_ms)
        if self.lock.is_held_elsewhere():
            if self._closing_caller == self.tasks.caller_id():
                self._closing_caller = None
            raise ConcurrentAccessError(
                "close: the call of another thread did not end in time; the consumer is not closed"
            )
        if was_polling and not self.closed:
            with self.call():
                self.collector.undo()
                self.unconfirmed.last = None

    def close(self, deadline_ms: float) -> Steps[None]:
        """Commit, leave the group and disconnect; raise the first error of a callback."""
        self._closing_caller = self.tasks.caller_id()
        with suppress(KafkaError):  # which must not keep the consumer from being closed
            yield from self._await_receipts()
        error = yield from self.closing.run(deadline_ms, may_commit=self._may_commit)
        self.closed = True
        if error is not None:
            raise error

    # --- any thread

    def known_position(self, partition: TopicPartition) -> int | None:
        """Return a valid position without the lock if another thread uses the consumer."""
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
        self._check_open()
        if not self.lock.is_used_elsewhere():
            return None
        state = self.subscriptions.state(partition)
        offset = self._first_pending_offset(partition)
        lag = state.lag(committed_only=self._committed_only(), offset=offset)
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
        self.tracer = self.collector.tracer = tracer
        self.fetcher.set_tracer(tracer)
        if self.group is not None:
            self.group.set_tracer(tracer)

    def metrics_snapshot(self) -> dict[str, float]:
        """Return the metrics."""
        self._check_open()
        self.loop.flush_metrics()
        return self.metrics.snapshot()

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
        group_id = self.config.group_id
        name = "no group" if group_id is None else f"group {group_id!r}"
        return f"{name}, {self.subscriptions.describe()}"

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic in the metadata."""
        self._check_open()
        return self.metadata.cluster().topic_id(topic)

    def _check_not_closing(self) -> None:
        if self.closed:
            raise ClosedError("this consumer was closed")
        if self._closing_caller != self.tasks.caller_id():
            raise ClosedError("this consumer is being closed by another thread")

    def _check_open(self) -> None:
        self.lock.check_process()
        if self.closed:
            raise ClosedError("this consumer was closed")

    def _committed_only(self) -> bool:
        return self.config.isolation_level == READ_COMMITTED

    def _first_pending_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset of the iteration's next record, None without one."""
        records, index = self._putting_back or (self.pending, self.next_pending)
        if index < len(records) and records[index].topic_partition == partition:
            return records[index].offset
        return None


def _no_group(call: str) -> IllegalStateError:
    return IllegalStateError(f"{call}: got no group, expected a consumer with group_id")


def used_by_another_thread(call: str) -> ConcurrentAccessError:
    """Return the error of a poll whose records another thread got."""
    return ConcurrentAccessError(
        f"{call}: another thread called this consumer during the call and gets these records; "
        "a consumer must be used by one thread at a time"
    )
