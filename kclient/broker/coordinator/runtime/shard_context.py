"""Lock, timers, pending writes and replies of the coordinator of one partition."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kclient.broker.coordinator.runtime.coordinator_record import (
    CoordinatorRecord,
    CoordinatorShard,
    WriteCallback,
)
from kclient.broker.coordinator.runtime.partition_log import (
    PartitionLog,
    TransactionEnd,
    TransactionOwner,
)
from kclient.broker.coordinator.runtime.timers import Timers
from kclient.common.broker_errors import CoordinatorNotAvailableError, NotCoordinatorError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.record import NO_PRODUCER_ID

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Write:
    """Records or the end of a transaction that are to be replicated.

    Both are absent for a reply that waits for earlier writes.
    """

    records: Sequence[CoordinatorRecord]
    on_done: WriteCallback | None
    replay: bool = True
    transaction_of: TransactionOwner | None = None
    end: TransactionEnd | None = None
    end_offset: int = -1
    is_done: bool = False
    error: KafkaError | None = None

    @property
    def record_count(self) -> int:
        """Number of records in the log."""
        return len(self.records) if self.end is None else 1

    def apply(self, shard: CoordinatorShard) -> None:
        """Apply the replicated write to the shard."""
        if self.end is not None:
            shard.end_transaction(self.end.producer.producer_id, committed=self.end.committed)
        elif self.replay:
            producer = self.transaction_of
            producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
            for offset, record in enumerate(self.records, self.end_offset - len(self.records)):
                shard.replay(record, offset, producer_id)


def _nothing() -> None:
    return None


class ShardContext:
    """Lock, timers, pending writes and replies of one shard, in one leader epoch.

    The lock guards the shard and all of this. It is held while records are appended, so that the
    log has the order of the decisions, and released before replies are sent. Lock order: this lock,
    then those of partition and log. `run` acquires it; the other methods require it.

    Writes complete in the order of the log: each is applied when the high watermark has passed its
    records and all earlier writes are complete. A failed append leaves nothing to undo. If
    the fate of records is unknown, or the log has others than this context has written, the shard
    cannot follow the log any more: the context ends, and the partition is loaded again.

    Attributes:
        partition: Partition of the log.
        leader_epoch: Leader epoch in which this broker leads it.
        timers: Timers of the shard.
        on_diverged: Called after the lock is released when the shard differs from its log.
    """

    def __init__(
        self,
        runtime: Runtime,
        log: PartitionLog,
        partition: int,
        leader_epoch: int,
        timeout_ms: float,
    ) -> None:
        self.timers = Timers()
        self.on_diverged: Callable[[], None] = _nothing
        self._clock = runtime.clock
        self._log = log
        self.partition = partition
        self.leader_epoch = leader_epoch
        self._timeout_ms = timeout_ms
        self._lock = runtime.tasks.condition()
        self._depth = 0
        self._end_offset = -1
        self._is_closed = False
        self._shard: CoordinatorShard | None = None
        self._appending: _Write | None = None
        self._queued: deque[_Write] = deque()
        self._pending: deque[_Write] = deque()
        self._replies: list[Callable[[], None]] = []

    def attach(self, shard: CoordinatorShard) -> None:
        """Set the shard that runs in this context."""
        self._shard = shard

    def activate(self, end_offset: int) -> None:
        """Start with a loaded shard.

        Args:
            end_offset: End offset of the records it was loaded from.
        """
        self._end_offset = end_offset
        if self._shard is not None:
            self._shard.on_loaded()

    def continue_in(self, leader_epoch: int) -> bool:
        """Continue in the next epoch, which this broker leads too; return whether that is possible.

        It is not if records are pending, which can only be committed in the epoch of their append.
        """
        if self._is_closed or self._pending:
            return False
        self.leader_epoch = leader_epoch
        return True

    def run(self, action: Callable[[], T], *, is_request: bool = False) -> T:
        """Run an action under the lock, append what it wrote, and reply after the release.

        Args:
            action: The action.
            is_request: Whether to refuse it if the context is closed.

        Raises:
            NotCoordinatorError: The context is closed.
        """
        with self._lock:
            if is_request and self._is_closed:
                raise NotCoordinatorError("the partition has moved")
            self._depth += 1
            try:
                result = action()
            finally:
                if self._depth == 1:
                    self._append_queued()
                self._depth -= 1
            replies: list[Callable[[], None]] = []
            if not self._depth:
                replies, self._replies = self._replies, replies
        for reply in replies:
            reply()
        return result

    def reply(self, reply: Callable[[T], None], response: T) -> None:
        """Call `reply` with a response after the lock is released."""
        self._replies.append(partial(reply, response))

    def write(
        self,
        records: Sequence[CoordinatorRecord],
        on_done: WriteCallback | None = None,
        *,
        replay: bool = True,
        transaction_of: TransactionOwner | None = None,
    ) -> None:
        """Append records at the end of the current action; without records, wait for earlier ones.

        Args:
            records: Records to append in one batch.
            on_done: Called under the lock when they are committed, or failed.
            replay: Whether to replay them when they are committed; otherwise `on_done` changes the
                state.
            transaction_of: Producer whose transaction the records are part of, or None.
        """
        self._queued.append(_Write(records, on_done, replay, transaction_of))

    def write_end(self, end: TransactionEnd, on_done: WriteCallback) -> None:
        """Append the marker that ends a transaction at the end of the current action.

        Args:
            end: End of the transaction.
            on_done: Called under the lock when it is applied, or failed.
        """
        self._queued.append(_Write((), on_done, end=end))

    def uncommitted_records(
        self, *, only_transactional: bool = False
    ) -> Iterator[CoordinatorRecord]:
        """Yield the records that are not applied yet, oldest first."""
        for writes in (self._pending, self._queued):
            for write in writes:
                if write.transaction_of is not None or not only_transactional:
                    yield from write.records

    def step(self, now_ms: float) -> float | None:
        """Run due timers; return the next deadline, or None."""
        if self.timers.is_empty:
            return None
        self.run(partial(self.timers.run_due, now_ms))
        with self._lock:
            return self.timers.next_deadline_ms()

    def close(self, error: KafkaError) -> None:
        """Fail everything that is pending; later actions change and write nothing."""
        self._is_closed = True
        self.timers.clear()
        if self._shard is not None:
            self._shard.on_unloaded(error)
        writes = [*self._pending, *self._queued]
        self._pending.clear()
        self._queued.clear()
        for write in writes:
            self._report(write, error)
        # A failed write may have started another rebalance, which is the next coordinator's task.
        self._queued.clear()
        self.timers.clear()

    def _append_queued(self) -> None:
        while self._queued and not self._is_closed:
            write = self._queued.popleft()
            self._pending.append(write)
            if write.record_count:
                self._append(write)
            else:
                self._complete(write, None, -1)
            if not write.is_done:
                deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
                self.timers.schedule(write, deadline_ms, partial(self._expire, write))

    def _append(self, write: _Write) -> None:
        self._end_offset += write.record_count
        write.end_offset = self._end_offset

        def on_appended(error: KafkaError | None, end_offset: int) -> None:
            self.run(partial(self._complete, write, error, end_offset))

        self._appending = write
        where = (self.partition, self.leader_epoch)
        if write.end is not None:
            self._log.append_marker(*where, write.end, on_appended)
        else:
            records = [record.encode() for record in write.records]
            self._log.append(*where, records, on_appended, write.transaction_of)
        self._appending = None

    def _complete(self, write: _Write, error: KafkaError | None, end_offset: int) -> None:
        if self._is_closed:
            return
        write.is_done, write.error = True, error
        if write.record_count and not self._follows_log(write, error, end_offset):
            self._diverge(write)
            return
        while self._pending and self._pending[0].is_done:
            first = self._pending.popleft()
            self.timers.cancel(first)
            if first.error is None and self._shard is not None:
                first.apply(self._shard)
            self._report(first, first.error)

    def _follows_log(self, write: _Write, error: KafkaError | None, end_offset: int) -> bool:
        """Return whether the shard is what its log says once all pending writes are applied."""
        if error is None:
            return end_offset == write.end_offset
        # An append that fails at once has written nothing; if it has, the next one shows it.
        self._end_offset -= write.record_count
        return write is self._appending

    def _diverge(self, write: _Write) -> None:
        """Let the partition be loaded again; all pending requests fail."""
        self._is_closed = True
        self._report(write, write.error or NotCoordinatorError("the log has other records"))
        self._replies.append(self.on_diverged)

    def _expire(self, write: _Write) -> None:
        """Report a write that is not committed in time. If it is later, it is replayed."""
        self._report(write, CoordinatorNotAvailableError("the write is not replicated in time"))

    @staticmethod
    def _report(write: _Write, error: KafkaError | None) -> None:
        on_done, write.on_done = write.on_done, None
        if on_done is not None:
            on_done(error)
