"""What a process of a virtual world has for threads."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.common.runtime import Condition, Lock, Task
from kclient.testing.virtual.virtual_lock import VirtualCondition, VirtualLock
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_process import VirtualProcess


class VirtualTasks:
    """Starts tasks of one process and makes what they wait on."""

    def __init__(self, process: "VirtualProcess", scheduler: VirtualScheduler) -> None:
        self._process = process
        self._scheduler = scheduler
        self._at_exit: dict[int, Callable[[], None]] = {}
        self._registered = 0

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        """Call `step` in a task of its own until it returns False."""

        def loop() -> None:
            while step():
                pass

        return self._process.spawn(name, loop)

    def condition(self) -> Condition:
        """Return a condition with a re-entrant lock of its own."""
        return VirtualCondition(self._process, self._scheduler)

    def lock(self) -> Lock:
        """Return a re-entrant lock."""
        return VirtualLock(self._process, self._scheduler)

    def process_id(self) -> int:
        """Return the id of the process.

        Once it is dead, nobody but its own tasks can ask, and they are not to notice; whoever else
        does (a finalizer of an object that outlived it) is told that this is another process.
        """
        process = self._process
        if process.alive:
            return process.id
        if process.owns(self._scheduler.current):
            process.refuse()
        return -1

    def at_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once before the process exits by itself; not if it is killed."""
        self._registered += 1
        number = self._registered
        self._at_exit[number] = callback

        def forget() -> None:
            self._at_exit.pop(number, None)

        return forget

    def run_exits(self) -> None:
        """Call what is to be called at the end, the last one first."""
        while self._at_exit:
            _, callback = self._at_exit.popitem()
            callback()

    def caller_id(self) -> int:
        """Return the id of the running task."""
        return self._scheduler.current.number
