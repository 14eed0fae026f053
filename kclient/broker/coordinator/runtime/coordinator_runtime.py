"""Runtime of a coordinator: its shards, with their timers and pending writes."""

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from kclient.broker.coordinator.runtime.partition_log import PartitionLog
from kclient.common.broker_errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
from kclient.common.errors import KafkaError
from kclient.common.files import WireBytes
from kclient.common.runtime import Runtime
from kclient.protocol.message import VersionedRecord
from kclient.protocol.messages.group_records import CoordinatorKey


class Timers:
    """Named timers; scheduling a name again moves its deadline.

    Rescheduling or cancelling leaves the old heap entry, which is skipped later: a heartbeat
    reschedules a timer on every request, and a search would be expensive.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Hashable]] = []
        self._live: dict[Hashable, tuple[int, Callable[[], None]]] = {}
        self._count = 0

    def schedule(self, name: Hashable, deadline_ms: float, action: Callable[[], None]) -> None:
        """Run `action` once at `deadline_ms`; replaces the timer of this name."""
        self._count += 1
        self._live[name] = (self._count, action)
        heapq.heappush(self._heap, (deadline_ms, self._count, name))
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._live):
            self._compact()

    def cancel(self, name: Hashable) -> None:
        """Cancel a timer; idempotent."""
        self._live.pop(name, None)

    @property
    def is_empty(self) -> bool:
        """Whether no timer is scheduled."""
        return not self._live

    def clear(self) -> None:
        """Cancel all timers."""
        self._live.clear()
        self._heap.clear()

    def has(self, name: Hashable) -> bool:
        """Return whether a timer of this name is scheduled."""
        return name in self._live

    def run_due(self, now_ms: float) -> None:
        """Run every due action; timers that these schedule run in the next call."""
        due: deque[tuple[float, int, Hashable]] = deque()
        while self._heap and self._heap[0][0] <= now_ms:
            due.append(heapq.heappop(self._heap))
        try:
            while due:
                _, count, name = due.popleft()
                live = self._live.get(name)
                if live is not None and live[0] == count:
                    del self._live[name]
                    live[1]()
        finally:
            for entry in due:  # where an action failed
                heapq.heappush(self._heap, entry)

    def next_deadline_ms(self) -> float | None:
        """Return the earliest deadline, or None if there is none."""
        while self._heap:
            deadline_ms, count, name = self._heap[0]
            live = self._live.get(name)
            if live is not None and live[0] == count:
                return deadline_ms
            heapq.heappop(self._heap)
        return None

    def _compact(self) -> None:
        self._heap = [
            entry for entry in self._heap if self._live.get(entry[2], (None,))[0] == entry[1]
        ]
        heapq.heapify(self._heap)


T = TypeVar("T")

WriteCallback = Callable[[KafkaError | None], None]
"""Receives None once the records are committed, or the error."""


class CoordinatorRecord(NamedTuple):
    """Record of a coordinator's log (Kafka: CoordinatorRecord).

    Attributes:
        key: Key, whose version is the type of the record.
        value: Value, or None for a tombstone.
        value_version: Version in which the value is written.
    """

    key: CoordinatorKey
    value: VersionedRecord | None = None
    value_version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value as bytes."""
        value = None if self.value is None else self.value.encode_versioned(self.value_version)
        return self.key.encode_versioned(), value


class CoordinatorShard(Protocol):
    """State of a coordinator in one partition of its log (Kafka: CoordinatorShard).

    Every method runs under the shard's lock.
    """

    def load(self, raw_key: bytes, raw_value: bytes | None) -> None:
        """Apply a record of the log."""
        ...

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record that this shard has written and that is committed."""
        ...

    def on_loaded(self) -> None:
        """Start timers: all records of the log are applied."""
        ...

    def on_unloaded(self, error: KafkaError) -> None:
        """Fail the pending requests: another broker is the coordinator."""
        ...


@dataclass(slots=True, eq=False)
class _Write:
    """Records that are to be committed; none for a reply that waits for earlier writes."""

    records: Sequence[CoordinatorRecord]
    on_done: WriteCallback | None
    replay: bool
    is_done: bool = False
    error: KafkaError | None = None


class ShardContext:
    """Lock, timers, pending writes and replies of one shard.

    The lock guards the shard and all of this. It is held while records are appended, so that the
    log has the order of the decisions, and released before replies are sent. Lock order: this lock,
    then those of partition and log. `run` acquires it; the other methods require it.

    Writes complete in the order of the log: each is applied when the high watermark has passed its
    records and all earlier writes are complete.
    """

    def __init__(
        self, runtime: Runtime, log: PartitionLog, partition: int, timeout_ms: float
    ) -> None:
        self.timers = Timers()
        self._clock = runtime.clock
        self._log = log
        self._partition = partition
        self._timeout_ms = timeout_ms
        self._lock = runtime.tasks.condition()
        self._depth = 0
        self._shard: CoordinatorShard | None = None
        self._queued: deque[_Write] = deque()
        self._pending: deque[_Write] = deque()
        self._replies: list[Callable[[], None]] = []

    def attach(self, shard: CoordinatorShard) -> None:
        """Set the shard that runs in this context."""
        self._shard = shard

    def run(self, action: Callable[[], T]) -> T:
        """Run an action under the lock, append what it wrote, and reply after the release."""
        with self._lock:
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
    ) -> None:
        """Append records at the end of the current action; without records, wait for earlier ones.

        Args:
            records: Records to append in one batch.
            on_done: Called under the lock when they are committed, or failed.
            replay: Whether to replay them when they are committed; otherwise `on_done` changes the
                state.
        """
        self._queued.append(_Write(records, on_done, replay))

    def step(self, now_ms: float) -> float | None:
        """Run due timers; return the next deadline, or None."""
        if self.timers.is_empty:
            return None
        self.run(partial(self.timers.run_due, now_ms))
        with self._lock:
            return self.timers.next_deadline_ms()

    def close(self, error: KafkaError) -> None:
        """Fail everything that is pending."""
        self.timers.clear()
        if self._shard is not None:
            self._shard.on_unloaded(error)
        writes = [*self._pending, *self._queued]
        self._pending.clear()
        self._queued.clear()
        for write in writes:
            self._report(write, error)

    def _append_queued(self) -> None:
        while self._queued:
            write = self._queued.popleft()
            self._pending.append(write)
            if write.records:
                self._append(write)
            else:
                self._complete(write, None)
            if not write.is_done:
                deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
                self.timers.schedule(write, deadline_ms, partial(self._expire, write))

    def _append(self, write: _Write) -> None:
        records = [record.encode() for record in write.records]

        def on_appended(error: KafkaError | None) -> None:
            self.run(partial(self._complete, write, error))

        self._log.append(self._partition, records, on_appended)

    def _complete(self, write: _Write, error: KafkaError | None) -> None:
        write.is_done, write.error = True, error
        while self._pending and self._pending[0].is_done:
            first = self._pending.popleft()
            self.timers.cancel(first)
            if first.error is None and first.replay and self._shard is not None:
                for record in first.records:
                    self._shard.replay(record)
            self._report(first, first.error)

    def _expire(self, write: _Write) -> None:
        """Report a write that is not committed in time. If it is later, it is replayed."""
        self._report(write, CoordinatorNotAvailableError("the write is not replicated in time"))

    @staticmethod
    def _report(write: _Write, error: KafkaError | None) -> None:
        on_done, write.on_done = write.on_done, None
        if on_done is not None:
            on_done(error)


ShardT = TypeVar("ShardT", bound=CoordinatorShard)


class CoordinatorRuntime(Generic[ShardT]):
    """Shards of a coordinator by partition of its log (Kafka: CoordinatorRuntime).

    A shard decides and writes records through its context; the runtime appends them and replies
    when they are committed. The lock guards the table of shards, which is read without it. Lock
    order: this lock, then a shard's.

    Args:
        runtime: Clock and locks.
        log: Log of the coordinator.
        make_shard: Returns a new shard for a context.
        write_timeout_ms: Time after which a pending write is reported as failed.
    """

    def __init__(
        self,
        runtime: Runtime,
        log: PartitionLog,
        make_shard: Callable[[ShardContext], ShardT],
        write_timeout_ms: float,
    ) -> None:
        self._runtime = runtime
        self._log = log
        self._make_shard = make_shard
        self._write_timeout_ms = write_timeout_ms
        self._lock = runtime.tasks.condition()
        self._shards: dict[int, tuple[ShardContext, ShardT]] = {}
        self._was_loaded = False

    def load(self, partition: int) -> None:
        """Build a shard from its partition, unless it is loaded; until then requests fail."""
        with self._lock:
            if partition in self._shards:
                return
            context = ShardContext(self._runtime, self._log, partition, self._write_timeout_ms)
            shard = self._make_shard(context)
            context.attach(shard)
            context.run(partial(self._replay_log, partition, shard))
            self._shards = {**self._shards, partition: (context, shard)}
            self._was_loaded = True

    def unload(self, partition: int) -> None:
        """Drop a shard, whose partition has another leader; its pending requests fail."""
        with self._lock:
            context, _ = self._shards.get(partition, (None, None))
            self._shards = {key: each for key, each in self._shards.items() if key != partition}
        if context is not None:
            context.run(partial(context.close, NotCoordinatorError("the partition has moved")))

    def run(self, partition: int, operation: Callable[[ShardT], T]) -> T:
        """Run an operation of a shard under its lock, append its records, then reply.

        Raises:
            CoordinatorLoadInProgressError: The log is not loaded yet.
            NotCoordinatorError: The partition is led by another broker.
        """
        found = self._shards.get(partition)
        if found is None:
            if self._was_loaded:
                raise NotCoordinatorError(f"partition {partition} is led by another broker")
            raise CoordinatorLoadInProgressError
        context, shard = found
        return context.run(partial(operation, shard))

    def run_all(self, operation: Callable[[ShardT], T]) -> list[T]:
        """Run an operation of every shard; return the results.

        Raises:
            CoordinatorLoadInProgressError: The log is not loaded yet.
        """
        if not self._was_loaded:
            raise CoordinatorLoadInProgressError
        shards = self._shards.values()
        return [context.run(partial(operation, shard)) for context, shard in shards]

    def shards(self) -> list[ShardT]:
        """Return the loaded shards, for reads that need no lock."""
        return [shard for _, shard in self._shards.values()]

    def step(self, now_ms: float) -> float | None:
        """Run due timers of all shards; return the next deadline, or None."""
        deadlines = [context.step(now_ms) for context, _ in self._shards.values()]
        return min((each for each in deadlines if each is not None), default=None)

    def _replay_log(self, partition: int, shard: ShardT) -> None:
        for key, value in _latest(self._log.read(partition)).items():
            shard.load(key, value)
        shard.on_loaded()


def _latest(
    records: Iterable[tuple[WireBytes | None, WireBytes | None]],
) -> dict[bytes, bytes | None]:
    """Return the last value of each key, in the order of the log.

    A log contains many versions of an offset; decoding costs more than reading.
    """
    latest: dict[bytes, bytes | None] = {}
    for raw_key, value in records:
        if raw_key is not None:
            key = bytes(raw_key)
            latest.pop(key, None)
            latest[key] = None if value is None else bytes(value)
    return latest
