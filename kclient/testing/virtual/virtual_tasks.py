"""Tasks, locks and exit callbacks of a process of a simulation."""

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from kclient.common.runtime import Clock, Condition, Lock, Task
from kclient.common.waiting import Steps, perform
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler
from kclient.testing.virtual.virtual_task import DeadlockError, VirtualTask

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_process import VirtualProcess


class VirtualLock:
    """A re-entrant lock, as `threading.RLock`; a task may yield when it acquires it.

    Attributes:
        owner: The task that holds it, or None.
        depth: How many times the owner has acquired it.
    """

    __slots__ = ("_process", "_scheduler", "_waiting", "depth", "owner")

    def __init__(self, process: "VirtualProcess", scheduler: VirtualScheduler) -> None:
        self.owner: VirtualTask | None = None
        self.depth = 0
        self._process = process
        self._scheduler = scheduler
        self._waiting: deque[VirtualTask] = deque()

    def __repr__(self) -> str:
        return f"a lock of {self._process.name} held by {self.owner}"

    def __enter__(self) -> bool:
        """Acquire the lock, waiting until no other task holds it."""
        if not self._process.alive:
            self._process.refuse()
        scheduler = self._scheduler
        scheduler.countdown -= 1
        if scheduler.countdown <= 0:
            scheduler.give_way()
        task = scheduler.current
        if self.owner is None:
            self.owner = task
            self.depth = 1
        elif self.owner is task:
            self.depth += 1
        else:
            self._await(task)
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Release the lock."""
        scheduler = self._scheduler
        if not self._process.alive:
            return
        if self.owner is not scheduler.current:
            raise RuntimeError("cannot release un-acquired lock")
        self.depth -= 1
        if self.depth == 0:
            self.owner = None
            if self._waiting:
                scheduler.wake(self._waiting.popleft())
            scheduler.countdown -= 1
            if scheduler.countdown <= 0:
                scheduler.give_way()

    def _await(self, task: VirtualTask) -> None:
        self._check_circle(task)
        while self.owner is not None:
            self._waiting.append(task)
            self._scheduler.park(None, self)
        self.owner = task
        self.depth = 1

    def _check_circle(self, task: VirtualTask) -> None:
        """Raise if the holder of the lock waits, directly or indirectly, for the task."""
        holder = self.owner
        while holder is not None and isinstance(holder.waits_for, VirtualLock):
            holder = holder.waits_for.owner
            if holder is task:
                raise DeadlockError(
                    f"{task} waits for {self}, which waits for {task}\n\n{self._scheduler.stacks()}"
                )


class _Sleeper:
    """A task that waits for a notification."""

    __slots__ = ("notified", "task")

    def __init__(self, task: VirtualTask) -> None:
        self.task = task
        self.notified = False


class VirtualCondition(VirtualLock):
    """A lock with waiters, as `threading.Condition`."""

    __slots__ = ("_sleepers",)

    def __init__(self, process: "VirtualProcess", scheduler: VirtualScheduler) -> None:
        super().__init__(process, scheduler)
        self._sleepers: deque[_Sleeper] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait for a notification or for `timeout` seconds, reacquire it."""
        if not self._process.alive:
            self._process.refuse()
        scheduler = self._scheduler
        task = scheduler.current
        if self.owner is not task:
            raise RuntimeError("cannot wait on un-acquired lock")
        sleeper = _Sleeper(task)
        self._sleepers.append(sleeper)
        depth, self.owner = self.depth, None
        if self._waiting:
            scheduler.wake(self._waiting.popleft())
        try:
            scheduler.park(
                None if timeout is None else max(0.0, timeout * 1000.0),
                f"a condition of {self._process.name}",
            )
        except BaseException:
            self.owner, self.depth = task, depth  # for the end of the with block
            raise
        if not sleeper.notified:
            self._sleepers.remove(sleeper)
        self._await(task)
        self.depth = depth
        return sleeper.notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `predicate()` holds; return its last value."""
        clock = self._scheduler.clock
        end_ms = None if timeout is None else clock.now_ms + timeout * 1000.0
        result = predicate()
        while not result:
            left = None if end_ms is None else (end_ms - clock.now_ms) / 1000.0
            if left is not None and left <= 0.0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` waiters."""
        if not self._process.alive:
            self._process.refuse()
        if self.owner is not self._scheduler.current:
            raise RuntimeError("cannot notify on un-acquired lock")
        while n > 0 and self._sleepers:
            sleeper = self._sleepers.popleft()
            sleeper.notified = True
            self._scheduler.wake(sleeper.task)
            n -= 1

    def notify_all(self) -> None:
        """Wake every waiter."""
        self.notify(len(self._sleepers))


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

    def run_shared(
        self,
        name: str,
        steps: Steps[None],
        clock: Clock,
        _wakeup: Callable[[], None],
        _has_work: Callable[[], bool],
    ) -> Task:
        """Run a loop in its own task: a change of the task costs nothing."""
        return self.run(name, steps, clock)

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

    def after_fork(self, _callback: Callable[[], None]) -> Callable[[], None]:
        """Register nothing: no virtual process forks."""
        return lambda: None

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
