"""Delayed operations, the purgatory in which they wait, and the timer of their deadlines."""

import heapq
import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Generic, TypeVar

from kclient.common.runtime import Condition

_log = logging.getLogger(__name__)

_PURGE_FLOOR = 1000
IDLE_MS = 200.0
"""Maximum sleep of `OperationTimer.wait`, so that it notices a shutdown."""

OperationT = TypeVar("OperationT", bound="DelayedOperation")


class DelayedOperation(ABC):
    """Operation that may have to wait (Kafka: DelayedOperation).

    Any thread may try to complete it. The lock guards only the completed flag: the thread that sets
    it runs `on_complete`, outside the lock and exactly once.

    Attributes:
        deadline_ms: Time at which it is forced to complete.
        release: Removes the operation from its purgatory; called on completion.
        timer_number: Number of the operation in the timer, -1 if it has none.
    """

    def __init__(self, lock: Condition, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self.release: Callable[[], None] | None = None
        self.timer_number = -1
        self._lock = lock
        self._completed = False

    @property
    def is_completed(self) -> bool:
        """Whether a thread has completed or is completing the operation."""
        return self._completed

    def force_complete(self) -> bool:
        """Complete the operation unless it is completed; return whether this call did."""
        with self._lock:
            if self._completed:
                return False
            self._completed = True
        release, self.release = self.release, None  # without it, the operation is no cycle
        if release is not None:
            release()
        try:
            self.on_complete()
        except Exception:  # noqa: BLE001 (must not affect the thread that completes it)
            _log.exception("%s: completion failed", type(self).__name__)
        return True

    def expire(self) -> None:
        """Complete because the deadline has passed."""
        if self.force_complete():
            self.on_expiration()

    @abstractmethod
    def try_complete(self) -> bool:
        """Call `force_complete` if the condition holds; return whether that completed it."""

    @abstractmethod
    def on_complete(self) -> None:
        """Finish the operation."""

    def on_expiration(self) -> None:
        """Finish the operation if its deadline, not its condition, completed it."""
        return


class OperationTimer:
    """Heap of deadlines (Kafka: SystemTimer, a hierarchical wheel).

    The heap has numbers instead of operations, so that a completed operation is freed at once and
    not when its deadline has passed: the garbage collector would look at thousands of them.

    The condition guards the heap, the operations and `_wake_at`.
    """

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._heap: list[tuple[float, int]] = []
        self._operations: dict[int, DelayedOperation] = {}
        self._order = itertools.count()
        self._purge_at = _PURGE_FLOOR
        self._wake_at = float("inf")

    def add(self, operation: DelayedOperation) -> None:
        """Add an operation's deadline."""
        with self._condition:
            operation.timer_number = number = next(self._order)
            self._operations[number] = operation
            heapq.heappush(self._heap, (operation.deadline_ms, number))
            if operation.is_completed:  # meanwhile; its `remove` found nothing
                del self._operations[number]
            if len(self._heap) >= self._purge_at:
                self._purge()
            if operation.deadline_ms < self._wake_at:
                self._condition.notify_all()

    def remove(self, operation: DelayedOperation) -> None:
        """Remove an operation that is completed, if it was added."""
        with self._condition:
            self._operations.pop(operation.timer_number, None)

    def advance(self, now_ms: float) -> None:
        """Expire every operation whose deadline has passed."""
        for operation in self._due(now_ms):
            operation.expire()

    def wait(self, now_ms: float, until_ms: float | None = None) -> None:
        """Sleep until the next deadline, `until_ms` or `IDLE_MS`, or until one is added."""
        with self._condition:
            self._wake_at = now_ms + IDLE_MS
            if until_ms is not None:
                self._wake_at = min(self._wake_at, until_ms)
            if self._heap:
                self._wake_at = min(self._wake_at, self._heap[0][0])
            if self._wake_at > now_ms:
                self._condition.wait((self._wake_at - now_ms) / 1000.0)
            self._wake_at = float("inf")

    def next_deadline_ms(self) -> float:
        """Return the nearest deadline, infinity if there is none."""
        with self._condition:
            return self._heap[0][0] if self._heap else float("inf")

    def __len__(self) -> int:
        with self._condition:
            return len(self._heap)

    def wakeup(self) -> None:
        """Wake up a current `wait`."""
        with self._condition:
            self._condition.notify_all()

    def _due(self, now_ms: float) -> list[DelayedOperation]:
        due = []
        heap, operations = self._heap, self._operations
        with self._condition:
            while heap and (heap[0][0] <= now_ms or heap[0][1] not in operations):
                operation = operations.pop(heapq.heappop(heap)[1], None)
                if operation is not None:
                    due.append(operation)
        return due

    def _purge(self) -> None:
        self._heap[:] = [entry for entry in self._heap if entry[1] in self._operations]
        heapq.heapify(self._heap)
        self._purge_at = max(_PURGE_FLOOR, 2 * len(self._heap))


class DelayedOperationPurgatory(Generic[OperationT]):
    """Delayed operations by watch key, with a timer (Kafka: DelayedOperationPurgatory).

    The lock guards the watch lists; operations complete outside it.

    Attributes:
        watched_keys: Keys that have operations. Read without the lock: an operation that is added
            at the same time tries again itself.
    """

    def __init__(self, lock: Condition, timer: OperationTimer) -> None:
        self._lock = lock
        self._timer = timer
        self._watchers: dict[Hashable, dict[OperationT, None]] = {}
        self.watched_keys = self._watchers.keys()

    def try_complete_else_watch(self, operation: OperationT, keys: Sequence[Hashable]) -> bool:
        """Complete the operation now, or watch it under every key.

        The condition may become true between the first try and the registration, when
        `check_and_complete` does not find the operation yet. Hence the second try.

        Returns:
            Whether the operation is complete.
        """
        if operation.try_complete():
            return True
        operation.release = partial(self._forget, operation, keys)
        with self._lock:
            for key in keys:
                self._watchers.setdefault(key, {})[operation] = None
        if operation.try_complete():
            return True
        if operation.is_completed:
            # Completed by another thread, possibly before `release` was set.
            self._forget(operation, keys)
            return True
        self._timer.add(operation)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try to complete every operation watched under `key`; return how many completed."""
        if key not in self.watched_keys:
            return 0
        with self._lock:
            operations = list(self._watchers.get(key, ()))
        return sum(operation.try_complete() for operation in operations)

    def complete_all(self, key: Hashable) -> int:
        """Force completion of every operation watched under `key`; return how many completed."""
        with self._lock:
            operations = list(self._watchers.get(key, ()))
        return sum(operation.force_complete() for operation in operations)

    def watched(self) -> int:
        """Return the number of watched (operation, key) pairs."""
        with self._lock:
            return sum(len(operations) for operations in self._watchers.values())

    def _forget(self, operation: OperationT, keys: Sequence[Hashable]) -> None:
        self._timer.remove(operation)
        with self._lock:
            for key in keys:
                operations = self._watchers.get(key)
                if operations is not None:
                    operations.pop(operation, None)
                    if not operations:
                        del self._watchers[key]
