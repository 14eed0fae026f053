"""A task of a simulation, which yields wherever a thread would wait, and errors that end it.

No error of a simulation is an `Exception`, so that the code under test does not handle it as one of
its own.
"""

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.common.extras import missing_package
from kclient.common.runtime import Clock, EndOfTaskError
from kclient.common.waiting import ConditionWait
from kclient.testing.virtual.virtual_clock import Timer

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ImportError as missing:
    raise ImportError(
        missing_package("kclient.testing.virtual", "greenlet", "testing")
    ) from missing

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_scheduler import VirtualScheduler

__all__ = [
    "DeadlockError",
    "LivelockError",
    "ProcessKilledError",
    "SimulationError",
    "TaskFailedError",
    "TimeIsUpError",
    "VirtualTask",
    "getcurrent",
]

_HERE = __file__.rpartition("/")[0]
_UNWINDINGS = 10  # a cleanup that waits is unwound again


class SimulationError(EndOfTaskError):
    """The simulation cannot continue."""


class DeadlockError(SimulationError):
    """Tasks wait for each other, or for an event that never happens."""


class LivelockError(SimulationError):
    """Tasks run without end while time does not pass."""


class TimeIsUpError(SimulationError):
    """The condition that `VirtualWorld.run` waited for did not hold in time."""


class TaskFailedError(SimulationError):
    """An exception ended a task while the main program waited; it is the cause."""


class ProcessKilledError(SimulationError):
    """A killed process tried to have an effect."""


class VirtualTask:
    """A task, or the main program while it waits.

    Attributes:
        name: Its name, for messages.
        number: Unique in the simulation; what `Tasks.caller_id` returns.
        waits_for: Description of what it waits for; empty while it runs or can run.
        over: Whether it has ended or was killed.
        error: The exception that ended it, or None.
        result: Return value of its function.
        joining: Tasks that are woken when it ends.
        greenlet: What the scheduler switches to in its turns.
    """

    def __init__(
        self, scheduler: "VirtualScheduler", name: str, number: int, run: Callable[[], object]
    ) -> None:
        self.name = name
        self.number = number
        self.waits_for: object = ""
        self.over = False
        self.killed = False
        self.paused = False
        self.queued = False
        self.error: BaseException | None = None
        self.result: object = None
        self.timer: Timer | None = None
        self._scheduler = scheduler
        self._run = run
        self.joining: list[VirtualTask] = []
        self.greenlet = greenlet(self.main, scheduler.hub)

    def __repr__(self) -> str:
        return self.name

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the task to end; return whether it has."""
        scheduler = self._scheduler
        caller = scheduler.current
        if not self.over and caller is not self:
            self.joining.append(caller)
            scheduler.park(None if timeout is None else timeout * 1000.0, f"the end of {self.name}")
            if caller in self.joining:
                self.joining.remove(caller)
        return self.over

    def is_alive(self) -> bool:
        """Return whether the task can still run."""
        return not self.over

    def is_current(self) -> bool:
        """Return whether the caller runs inside this task."""
        return self._scheduler.current is self

    def needs_wakeup(self) -> bool:
        """Return True."""
        return True

    def await_change(self, wait: ConditionWait, clock: Clock) -> None:
        """Wait for the notification of a change."""
        wait.await_notification(clock)

    def kill(self) -> None:
        """Never run it again; it is not notified."""
        self.killed = self.over = True
        self._scheduler.forget(self)

    def unwind(self) -> None:
        """Release the resources of a killed task; it can have no effect meanwhile."""
        scheduler = self._scheduler
        for _ in range(_UNWINDINGS):
            if not self.greenlet:  # it has not started, or has ended
                return
            caller, scheduler.current = scheduler.current, self
            try:
                self.greenlet.throw(ProcessKilledError(f"{self.name} was killed"))
            finally:
                scheduler.current = caller

    def stack(self) -> str:
        """Return its stack like a traceback, the innermost call last."""
        frame = self.greenlet.gr_frame
        if frame is None:
            return "  it has not started, or is running\n"
        calls = traceback.extract_stack(frame)
        return "".join(
            traceback.format_list([call for call in calls if not call.filename.startswith(_HERE)])
        )

    def main(self) -> None:
        """Run its function to the end, in its greenlet."""
        try:
            self.result = self._run()
        except (ProcessKilledError, GreenletExit):
            if not self.killed:
                raise
        except BaseException as error:  # noqa: BLE001 (top of a task; `run` raises it)
            if not self.killed:
                self.error = error
                self._scheduler.failed(self)
        if not self.killed:
            self._end()

    def _end(self) -> None:
        self.over = True
        for task in self.joining:
            self._scheduler.wake(task)
        self._scheduler.ended(self)
