"""Runtime of a coordinator: its partitions, which follow their leaders."""

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

from kclient.broker.coordinator.runtime.coordinator_loader import CoordinatorLoader, LoadProgress
from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorShard
from kclient.broker.coordinator.runtime.partition_log import PartitionLog
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.broker.log.log_dir_failure_channel import is_transient
from kclient.common.broker_errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedLeaderEpochError,
    KafkaStorageError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
)
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Runtime

_log = logging.getLogger(__name__)

_LEADERSHIP_LOST = (FencedLeaderEpochError, NotLeaderOrFollowerError)

_WAIT_MS = 5.0
"""Time between two looks at a high watermark that has to advance."""

_RETRY_MS = 100.0
_RETRY_MAX_MS = 10_000.0
"""Time after which a failed step of loading is repeated: doubles from the first to the second."""

T = TypeVar("T")
ShardT = TypeVar("ShardT", bound=CoordinatorShard)


class CoordinatorState(Enum):
    """State of the coordinator of one partition (Kafka: CoordinatorRuntime.CoordinatorState)."""

    INITIAL = "initial"
    """Created; nothing is read yet."""
    LOADING = "loading"
    """Reads its log, or waits until what it has read is committed."""
    ACTIVE = "active"
    """Serves requests."""
    FAILED = "failed"
    """The log cannot be read, or differs from what the coordinator has written."""
    CLOSED = "closed"
    """Another broker is the coordinator."""


# state -> states that may come before it
PREVIOUS: dict[CoordinatorState, frozenset[CoordinatorState]] = {
    CoordinatorState.INITIAL: frozenset(),
    CoordinatorState.LOADING: frozenset({CoordinatorState.INITIAL}),
    CoordinatorState.ACTIVE: frozenset({CoordinatorState.LOADING}),
    CoordinatorState.FAILED: frozenset({CoordinatorState.LOADING, CoordinatorState.ACTIVE}),
    CoordinatorState.CLOSED: frozenset(CoordinatorState) - {CoordinatorState.CLOSED},
}


def check_transition(partition: int, old: CoordinatorState, new: CoordinatorState) -> None:
    """Raise IllegalStateError if the table has no transition from `old` to `new`."""
    if old not in PREVIOUS[new]:
        raise IllegalStateError(
            f"coordinator of partition {partition} cannot go from {old.value} to {new.value}"
        )


class _Coordinator(Generic[ShardT]):
    """Coordinator of one partition in one leader epoch."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        context: ShardContext,
        shard: ShardT,
        loader: CoordinatorLoader,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.context = context
        self.shard = shard
        self.loader = loader
        self.state = CoordinatorState.INITIAL
        self.due_ms = 0.0
        self.failed_attempts = 0

    def transition_to(self, state: CoordinatorState) -> None:
        check_transition(self.partition, self.state, state)
        self.state = state

    def load_step(self) -> LoadProgress | None:
        """Run one step of loading; return its progress, or None if it has failed."""
        try:
            return self.loader.step()
        except _LEADERSHIP_LOST as error:
            _log.info("partition %d: loading ended: %s", self.partition, error)
        except Exception as error:  # noqa: BLE001 (the others must still be loaded)
            if isinstance(error, KafkaStorageError) and is_transient(error):
                level = logging.DEBUG if self.failed_attempts else logging.WARNING
                _log.log(level, "partition %d: loading is retried: %s", self.partition, error)
                return LoadProgress.RETRYING
            _log.exception("partition %d: loading failed", self.partition)
        return None

    def delay_ms(self, progress: LoadProgress) -> float:
        """Return the time until the next step of loading."""
        if progress is LoadProgress.RETRYING:
            self.failed_attempts += 1
            return min(_RETRY_MS * 2.0 ** (self.failed_attempts - 1), _RETRY_MAX_MS)
        return _WAIT_MS if progress is LoadProgress.WAITING else 0.0


class CoordinatorRuntime(Generic[ShardT]):
    """Shards of a coordinator by partition of its log (Kafka: CoordinatorRuntime).

    A shard decides and writes records through its context; the runtime appends them and replies
    when they are committed. The epoch of a coordinator is the leader epoch of its partition;
    nothing of an earlier epoch completes. The lock guards the table of coordinators; that of the
    active ones is read without it. Lock order: this lock, then a shard's.

    Args:
        runtime: Clock and locks.
        log: Log of the coordinator.
        make_shard: Returns a new shard for a context.
        write_timeout_ms: Time after which a pending write is reported as failed.

    Attributes:
        wakeup: Called when `step` has work before the time that it returned last.
    """

    def __init__(
        self,
        runtime: Runtime,
        log: PartitionLog,
        make_shard: Callable[[ShardContext], ShardT],
        write_timeout_ms: float,
    ) -> None:
        self.wakeup: Callable[[], None] = _nothing
        self._runtime = runtime
        self._log = log
        self._make_shard = make_shard
        self._write_timeout_ms = write_timeout_ms
        self._lock = runtime.tasks.condition()
        self._is_running = False
        self._epochs: dict[int, int] = {}
        self._coordinators: dict[int, _Coordinator[ShardT]] = {}
        self._active: dict[int, tuple[ShardContext, ShardT]] = {}
        self._loading: list[_Coordinator[ShardT]] = []

    # -- leadership ------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin to serve; until then requests fail with COORDINATOR_NOT_AVAILABLE."""
        self._is_running = True

    def shutdown(self) -> None:
        """Unload every partition; pending and later requests fail."""
        self._is_running = False
        for partition in list(self._coordinators):
            self.on_resignation(partition, None)

    def on_leadership(self, partition: int, leader_epoch: int) -> None:
        """Load a partition that this broker leads; an epoch that is not newer is ignored.

        The loading is done by `step`. Pending requests of an earlier epoch fail. If this broker has
        led the previous epoch too and nothing is pending, the coordinator remains active: no other
        broker can have written to the log.
        """
        with self._lock:
            known = self._epochs.get(partition, -1)
            if leader_epoch <= known:
                return
            self._epochs[partition] = leader_epoch
            if leader_epoch == known + 1 and self._continue(partition, leader_epoch):
                return
            old = self._remove(partition)
            self._start_loading(partition, leader_epoch)
        self._close(old)
        self.wakeup()

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """Unload a partition that another broker leads; its pending requests fail.

        Args:
            partition: The partition.
            leader_epoch: Epoch of the other leader, ignored if it is not newer; None if the
                partition was deleted, whose epochs start again.
        """
        with self._lock:
            if leader_epoch is None:
                self._epochs.pop(partition, None)
            elif leader_epoch <= self._epochs.get(partition, -1):
                return
            else:
                self._epochs[partition] = leader_epoch
            old = self._remove(partition)
        self._close(old)

    def leader_epoch(self, partition: int) -> int | None:
        """Return the epoch of the coordinator of a partition, or None if there is none."""
        coordinator = self._coordinators.get(partition)
        return None if coordinator is None else coordinator.leader_epoch

    def state(self, partition: int) -> CoordinatorState:
        """Return the state of a partition; CLOSED if another broker leads it."""
        coordinator = self._coordinators.get(partition)
        return CoordinatorState.CLOSED if coordinator is None else coordinator.state

    def _continue(self, partition: int, leader_epoch: int) -> bool:
        """Let an active coordinator continue in the next epoch; return whether it does."""
        coordinator = self._coordinators.get(partition)
        if coordinator is None or coordinator.state is not CoordinatorState.ACTIVE:
            return False
        context = coordinator.context
        if not context.run(partial(context.continue_in, leader_epoch)):
            return False
        coordinator.leader_epoch = leader_epoch
        return True

    def _remove(self, partition: int) -> _Coordinator[ShardT] | None:
        coordinator = self._coordinators.pop(partition, None)
        self._active = {key: each for key, each in self._active.items() if key != partition}
        self._loading = [each for each in self._loading if each is not coordinator]
        return coordinator

    @staticmethod
    def _close(coordinator: _Coordinator[ShardT] | None) -> None:
        """Fail the pending requests; the caller holds no lock."""
        if coordinator is not None:
            error = NotCoordinatorError("the partition has moved")
            coordinator.transition_to(CoordinatorState.CLOSED)
            coordinator.context.run(partial(coordinator.context.close, error))

    def _start_loading(self, partition: int, leader_epoch: int) -> None:
        context = ShardContext(
            self._runtime, self._log, partition, leader_epoch, self._write_timeout_ms
        )
        shard = self._make_shard(context)
        context.attach(shard)
        loader = CoordinatorLoader(self._log, partition, leader_epoch, shard)
        coordinator = _Coordinator(partition, leader_epoch, context, shard, loader)
        context.on_diverged = partial(self._reload, coordinator)
        coordinator.transition_to(CoordinatorState.LOADING)
        self._coordinators[partition] = coordinator
        self._loading.append(coordinator)

    def _reload(self, coordinator: _Coordinator[ShardT]) -> None:
        """Load a partition again whose shard differs from its log."""
        partition = coordinator.partition
        with self._lock:
            if self._coordinators.get(partition) is not coordinator:
                return
            _log.warning("partition %d: a write has failed; it is loaded again", partition)
            coordinator.transition_to(CoordinatorState.FAILED)
            self._remove(partition)
            self._start_loading(partition, coordinator.leader_epoch)
        self._close(coordinator)
        self.wakeup()

    # -- loading ---------------------------------------------------------------------------

    def load_now(self, budget_ms: float | None = None) -> None:
        """Load partitions until all are loaded or wait for their high watermarks.

        Args:
            budget_ms: Time after which the rest is left to `step`, None for no limit.
        """
        clock = self._runtime.clock
        now_ms = started_ms = clock.monotonic_ms()
        next_ms = self.load_step(now_ms)
        while next_ms is not None and next_ms <= now_ms:
            now_ms = clock.monotonic_ms()
            if budget_ms is not None and now_ms - started_ms > budget_ms:
                break
            next_ms = self.load_step(now_ms)
        self.wakeup()  # loaded shards have timers

    def load_step(self, now_ms: float) -> float | None:
        """Run one step of loading; return the time of the next one, or None.

        It reads at most one chunk of one partition. Several threads may call it.
        """
        with self._lock:
            ready = next((each for each in self._loading if each.due_ms <= now_ms), None)
            if ready is None:
                return min((each.due_ms for each in self._loading), default=None)
            self._loading.remove(ready)
        progress = ready.load_step()
        with self._lock:
            if self._coordinators.get(ready.partition) is ready:
                self._take_progress(ready, progress, now_ms)
            return min((each.due_ms for each in self._loading), default=None)

    def _take_progress(
        self, coordinator: _Coordinator[ShardT], progress: LoadProgress | None, now_ms: float
    ) -> None:
        if progress is None:
            coordinator.transition_to(CoordinatorState.FAILED)
        elif progress is LoadProgress.LOADED:
            context = coordinator.context
            context.run(partial(context.activate, coordinator.loader.end_offset))
            coordinator.transition_to(CoordinatorState.ACTIVE)
            active = (context, coordinator.shard)
            self._active = {**self._active, coordinator.partition: active}
            if coordinator.failed_attempts:
                loaded = "partition %d is loaded after %d failed attempts"
                _log.info(loaded, coordinator.partition, coordinator.failed_attempts)
        else:
            delay_ms = coordinator.delay_ms(progress)
            coordinator.due_ms = now_ms + delay_ms
            self._loading.insert(len(self._loading) if delay_ms else 0, coordinator)

    # -- requests --------------------------------------------------------------------------

    def run(self, partition: int, operation: Callable[[ShardT], T]) -> T:
        """Run an operation of a shard under its lock, append its records, then reply.

        Raises:
            NotCoordinatorError: The partition is led by another broker, or could not be loaded.
            CoordinatorLoadInProgressError: It is not loaded yet.
            CoordinatorNotAvailableError: The coordinator is not started.
        """
        found = self._active.get(partition)
        if found is None:
            raise self._not_active(partition)
        context, shard = found
        return context.run(partial(operation, shard), is_request=True)

    def _not_active(self, partition: int) -> KafkaError:
        if not self._is_running:
            return CoordinatorNotAvailableError("the coordinator is not running")
        if self.state(partition) in {CoordinatorState.CLOSED, CoordinatorState.FAILED}:
            return NotCoordinatorError(f"partition {partition} is led by another broker")
        return CoordinatorLoadInProgressError(f"partition {partition} is being loaded")

    def run_all(self, operation: Callable[[ShardT], T]) -> list[T]:
        """Run an operation of every shard of this broker; return the results.

        Raises:
            CoordinatorLoadInProgressError: A partition is not loaded yet.
            NotCoordinatorError: A partition could not be loaded.
            CoordinatorNotAvailableError: The coordinator is not started.
        """
        if not self._is_running:
            raise CoordinatorNotAvailableError("the coordinator is not running")
        with self._lock:
            partitions = list(self._coordinators)
        return [self.run(partition, operation) for partition in partitions]

    def run_active(self, operation: Callable[[ShardT], None]) -> None:
        """Run an operation of every active shard; those that move meanwhile are left out."""
        for partition in self._active:
            try:
                self.run(partition, operation)
            except (NotCoordinatorError, CoordinatorLoadInProgressError) as error:
                _log.debug("partition %d: %s", partition, error)

    def shards(self) -> list[ShardT]:
        """Return the active shards, for reads that need no lock."""
        return [shard for _, shard in self._active.values()]

    def step(self, now_ms: float) -> float | None:
        """Run due timers of all shards, and a step of loading; return the next time, or None."""
        # Loading first: a shard that becomes active has timers.
        times = [self.load_step(now_ms)] if self._loading else []
        times += [context.step(now_ms) for context, _ in self._active.values()]
        return min((each for each in times if each is not None), default=None)


def _nothing() -> None:
    return None
