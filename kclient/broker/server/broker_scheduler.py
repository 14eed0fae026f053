"""Background work of the broker: deadlines of operations, groups and followers, log upkeep."""

import logging
from collections.abc import Callable, Sequence

from kclient.broker.replication.delayed_operation import OperationTimer
from kclient.common.runtime import Clock, Condition, Task, Tasks

_log = logging.getLogger(__name__)

_IDLE_MS = 500.0

DeadlineStep = Callable[[float], float | None]
"""Runs due work; returns the monotonic time of the next call, or None if none is needed."""

LogStep = Callable[[float], float]
"""Runs due work; returns the milliseconds until the next call."""


class BrokerScheduler:
    """Two background tasks: one for deadlines, one for log files (Kafka: KafkaScheduler).

    They are separate because a flush may take long and must not delay a deadline.
    """

    def __init__(
        self,
        tasks: Tasks,
        clock: Clock,
        timer: OperationTimer,
        deadlines: Sequence[DeadlineStep],
        logs: LogStep,
    ) -> None:
        self._spawn = tasks.spawn
        self._clock = clock
        self._timer = timer
        self._deadlines = deadlines
        self._logs = logs
        self._idle: Condition = tasks.condition()
        self._running = False
        self._tasks: list[Task] = []

    def start(self) -> None:
        """Start both tasks."""
        self._running = True
        self._tasks = [
            self._spawn("kclient-expiration", self._expire_once),
            self._spawn("kclient-log-upkeep", self._maintain_once),
        ]

    def shutdown(self, timeout: float) -> None:
        """Stop both tasks, waiting up to `timeout` seconds for each."""
        self._running = False
        self._timer.wakeup()
        with self._idle:
            self._idle.notify_all()
        for task in self._tasks:
            if not task.join(timeout):
                _log.warning("%s did not end within %s s", task.name, timeout)

    def step(self, now_ms: float) -> float:
        """Run one round of both tasks; return the milliseconds until the next."""
        deadline_ms = self._expire(now_ms)
        delay_ms = self._maintain(now_ms)
        deadline_ms = min(self._timer.next_deadline_ms(), deadline_ms)
        return max(0.0, min(deadline_ms - now_ms, delay_ms))

    def _expire(self, now_ms: float) -> float:
        """Expire operations whose deadline has passed; return the time of the next step."""
        self._timer.advance(now_ms)
        return min((self._run(step, now_ms) for step in self._deadlines), default=now_ms + _IDLE_MS)

    @staticmethod
    def _run(step: DeadlineStep, now_ms: float) -> float:
        next_ms = None
        try:
            next_ms = step(now_ms)
        except Exception:  # noqa: BLE001 (one failed round must not end the task)
            _log.exception("a step of groups or followers failed; it is retried")
        return now_ms + _IDLE_MS if next_ms is None else next_ms

    def _maintain(self, now_ms: float) -> float:
        """Run log maintenance; return the milliseconds until the next round."""
        try:
            return self._logs(now_ms)
        except Exception:  # noqa: BLE001 (as above)
            _log.exception("log maintenance failed; it is retried")
            return _IDLE_MS

    def _expire_once(self) -> bool:
        now_ms = self._clock.monotonic_ms()
        next_ms = self._expire(now_ms)
        if self._running:
            self._timer.wait(now_ms, next_ms)
        return self._running

    def _maintain_once(self) -> bool:
        delay_ms = self._maintain(self._clock.monotonic_ms())
        with self._idle:
            if self._running:
                self._idle.wait(min(_IDLE_MS, max(1.0, delay_ms)) / 1000.0)
        return self._running
