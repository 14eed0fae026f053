"""Tasks, locks and exit callbacks of a process of a simulation."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.common.runtime import Clock, Condition, Lock, Task
from kclient.common.waiting import Steps, perform
from kclient.testing.virtual.virtual_lock import VirtualCondition, VirtualLock
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_process import VirtualProcess


class VirtualTasks:
    """Starts the tasks of one process and creates its locks and conditions."""

    def __init__(self, process: "VirtualProcess", scheduler: VirtualScheduler) -> None:
        self._process = process
        self._scheduler = scheduler
        self._at_exit: dict[int, Callable[[], None]] = {}
        self._registered = 0

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Call `step` repeatedly in its own task until it returns False."""

        def loop() -> None:
            while step():
                pass

        return self._process.spawn(name, loop)

    def run(self, name: str, steps: Steps[None], clock: Clock) -> Task:
        """Perform the waits of a loop in its own task until the loop returns."""
        return self._process.spawn(name, lambda: perform(steps, clock))

    def condition(self) -> Condition:
        """Return a condition with a re-entrant lock of its own."""
        return VirtualCondition(self._process, self._scheduler)

    def lock(self) -> Lock:
        """Return a re-entrant lock."""
        return VirtualLock(self._process, self._scheduler)

    def process_id(self) -> int:
        """Return the id of the process.

        When the process is dead, only its own tasks get this id, so that they do not notice; any
        other caller (a finalizer of an object that outlived it) gets the id of another process.
        """
        process = self._process
        if process.alive:
            return process.id
        if process.owns(self._scheduler.current):
            process.refuse()
        return -1

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once before the process exits; not if it is killed."""
        self._registered += 1
        number = self._registered
        self._at_exit[number] = callback

        def forget() -> None:
            self._at_exit.pop(number, None)

        return forget

    def run_exits(self) -> None:
        """Run the exit callbacks, the last one first."""
        while self._at_exit:
            _, callback = self._at_exit.popitem()
            callback()

    def caller_id(self) -> int:
        """Return the id of the running task."""
        return self._scheduler.current.number
