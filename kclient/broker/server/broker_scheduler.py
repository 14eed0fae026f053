"""The broker's own clockwork: deadlines of waiting requests and groups, and upkeep of the logs."""

import logging
from collections.abc import Callable

from kclient.broker.replication.operation_timer import OperationTimer
from kclient.common.runtime import Condition, Runtime, Task

_log = logging.getLogger(__name__)

_IDLE_MS = 500.0

GroupStep = Callable[[float], float | None]
"""Does what is due; returns the monotonic time to come again, or None for whenever."""

LogStep = Callable[[float], float]
"""Does what is due; returns the milliseconds until there is something to do again."""


class BrokerScheduler:
    """Two loops: a quick one for deadlines, and one for work on files (Kafka: KafkaScheduler).

    They are apart because forcing a log to disk may take long, and nobody's deadline should.
    """

    def __init__(
        self, runtime: Runtime, timer: OperationTimer, groups: GroupStep, logs: LogStep
    ) -> None:
        self._runtime = runtime
        self._timer = timer
        self._groups = groups
        self._logs = logs
        self._idle: Condition = runtime.tasks.condition()
        self._running = False
        self._tasks: list[Task] = []

    def start(self) -> None:
        """Start both loops."""
        self._running = True
        spawn = self._runtime.tasks.spawn
        self._tasks = [
            spawn("kclient-expiration", self._expire_once),
            spawn("kclient-log-upkeep", self._upkeep_once),
        ]

    def shutdown(self, timeout: float) -> None:
        """End both loops, waiting up to `timeout` seconds for each."""
        self._running = False
        self._timer.wakeup()
        with self._idle:
            self._idle.notify_all()
        for task in self._tasks:
            if not task.join(timeout):
                _log.warning("%s did not end within %s s", task.name, timeout)

    def expire(self, now_ms: float) -> float | None:
        """Answer what has waited long enough; return when to come again."""
        self._timer.advance(now_ms)
        return self._guarded(self._groups, now_ms)

    def upkeep(self, now_ms: float) -> float | None:
        """Look after the logs; return the milliseconds until there is something to do again."""
        return self._guarded(self._logs, now_ms)

    def _expire_once(self) -> bool:
        now_ms = self._runtime.clock.monotonic_ms()
        next_ms = self.expire(now_ms)
        if self._running:
            self._timer.wait(now_ms, next_ms)
        return self._running

    def _upkeep_once(self) -> bool:
        delay_ms = self.upkeep(self._runtime.clock.monotonic_ms())
        wait_ms = _IDLE_MS if delay_ms is None else min(_IDLE_MS, max(1.0, delay_ms))
        with self._idle:
            if self._running:
                self._idle.wait(wait_ms / 1000.0)
        return self._running

    def _guarded(self, step: GroupStep, now_ms: float) -> float | None:
        try:
            return step(now_ms)
        except Exception:  # noqa: BLE001 (one failed round must not end the loop for good)
            _log.exception("a scheduled step failed; it is tried again")
            return None
