"""Timer of delayed operations."""

import heapq
import itertools

from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.common.runtime import Condition

_PURGE_FLOOR = 1000
IDLE_MS = 200.0
"""Maximum sleep of `OperationTimer.wait`, so that it notices a shutdown."""


class OperationTimer:
    """Heap of deadlines (Kafka: SystemTimer, a hierarchical wheel).

    The condition guards the heap and `_wake_at`.
    """

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._heap: list[tuple[float, int, DelayedOperation]] = []
        self._order = itertools.count()
        self._purge_at = _PURGE_FLOOR
        self._wake_at = float("inf")

    def add(self, operation: DelayedOperation) -> None:
        """Add an operation's deadline."""
        with self._condition:
            heapq.heappush(self._heap, (operation.deadline_ms, next(self._order), operation))
            if len(self._heap) >= self._purge_at:
                self._purge()
            if operation.deadline_ms < self._wake_at:
                self._condition.notify_all()

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
        with self._condition:
            while self._heap and (self._heap[0][0] <= now_ms or self._heap[0][2].is_completed):
                due.append(heapq.heappop(self._heap)[2])
        return due

    def _purge(self) -> None:
        # Completed operations would keep their responses in memory until the deadline.
        self._heap = [entry for entry in self._heap if not entry[2].is_completed]
        heapq.heapify(self._heap)
        self._purge_at = max(_PURGE_FLOOR, 2 * len(self._heap))
