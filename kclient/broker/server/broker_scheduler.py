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

    def step(self, now_ms: float) -> float:
        """Take one round of both loops; return the milliseconds until there is more to do."""
        deadline_ms = self._expire(now_ms)
        delay_ms = self._upkeep(now_ms)
        deadline_ms = min(self._timer.next_deadline_ms(), deadline_ms)
        return max(0.0, min(deadline_ms - now_ms, delay_ms))

    def _expire(self, now_ms: float) -> float:
        """Answer what has waited long enough; return when the groups want to be asked again."""
        self._timer.advance(now_ms)
        try:
            next_ms = self._groups(now_ms)
        except Exception:  # noqa: BLE001 (one failed round must not end the loop for good)
            _log.exception("a step of the groups failed; it is tried again")
            next_ms = None
        return now_ms + _IDLE_MS if next_ms is None else next_ms

    def _upkeep(self, now_ms: float) -> float:
        """Look after the logs; return the milliseconds until there is something to do again."""
        try:
            return self._logs(now_ms)
        except Exception:  # noqa: BLE001 (as above)
            _log.exception("upkeep of the logs failed; it is tried again")
            return _IDLE_MS

    def _expire_once(self) -> bool:
        now_ms = self._runtime.clock.monotonic_ms()
        next_ms = self._expire(now_ms)
        if self._running:
            self._timer.wait(now_ms, next_ms)
        return self._running

    def _upkeep_once(self) -> bool:
        delay_ms = self._upkeep(self._runtime.clock.monotonic_ms())
        with self._idle:
            if self._running:
                self._idle.wait(min(_IDLE_MS, max(1.0, delay_ms)) / 1000.0)
        return self._running
