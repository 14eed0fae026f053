"""Runtime of a coordinator: loads, unloads and drives its shards."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from kclient.broker.coordinator.runtime.coordinator_shard import CoordinatorShard, ShardContext
from kclient.broker.coordinator.runtime.partition_log import PartitionLog
from kclient.common.broker_errors import CoordinatorLoadInProgressError, NotCoordinatorError
from kclient.common.files import WireBytes
from kclient.common.runtime import Runtime

T = TypeVar("T")
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
